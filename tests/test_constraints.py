"""Facts that rule out what was found are in play, however little they have to do with the question's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Event

from assistant.judges.load import UnusableJudge
from assistant.protocols import Parts
from assistant.settings import FactSettings
from assistant.steps import constraints
from assistant.types import Digest, RankedFact, Turn

COELIAC, CHESS, TEA = "I have coeliac disease.", "I play chess.", "I like tea."


@dataclass
class Gluten:
    """Finds that bread clashes with coeliac disease."""

    threshold: float = 0.5
    asked: list[str] = field(default_factory=list)

    def clashes(self, facts: Sequence[str], texts: Sequence[str], stop: Event, question: str = "") -> list[list[float]]:
        self.asked.append(question)
        return [[0.9 * ("coeliac" in fact and "bread" in text) for text in texts] for fact in facts]


def used(parts: Parts, *digests: str, judge: object = Gluten(), stop: Event | None = None) -> tuple[str, ...]:
    facts = tuple(RankedFact(text, text, 0.1, used=text == TEA) for text in (TEA, CHESS, COELIAC))
    turn = Turn(
        "What?",
        question="What should I eat?",
        facts=facts,
        digests=tuple(Digest(str(n), text) for n, text in enumerate(digests)),
    )
    [turn] = constraints.run(turn, replace(parts, suitability=judge), stop or Event())  # type: ignore[arg-type]
    return turn.used_facts


def test_a_fact_that_rules_out_a_sentence_is_in_play(parts: Parts) -> None:
    assert used(parts, "Drink water. Eat bread.", "Sleep well.") == (TEA, COELIAC)


def test_the_judge_is_told_what_was_asked(parts: Parts) -> None:
    judge = Gluten()
    used(parts, "Drink water.", judge=judge)
    assert judge.asked == ["What should I eat?"]


def test_others_stay_out_of_it(parts: Parts) -> None:
    assert used(parts, "Drink water.") == (TEA,)
    assert used(parts) == (TEA,)


def test_without_a_judge_or_when_stopped_nothing_changes(parts: Parts) -> None:
    stop = Event()
    stop.set()
    assert used(parts, "Eat bread.", stop=stop) == (TEA,)
    assert used(parts, "Eat bread.", judge=None) == (TEA,)
    assert used(parts, "Eat bread.", judge=UnusableJudge("It is broken.")) == (TEA,)


def test_it_can_be_switched_off(parts: Parts) -> None:
    off = parts.settings.model_copy(update={"facts": FactSettings(constraints=False)})
    assert used(replace(parts, settings=off), "Eat bread.") == (TEA,)
