"""Which sentences of a reply have support, as the judge says that reads each beside the passages nearest to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event

from assistant.grounding.evidence import READ, Evidence
from assistant.protocols import SupportJudge
from assistant.text.overlap import repeats
from assistant.text.sentences import around, quote
from assistant.types import Claim, Passage, Turn, Verdict

# Passages that the judge reads together, and words that it reads of each.
_TOGETHER, _WORDS = 2, 80
# How much less near than the nearest a passage may be to be read beside a sentence that has support already.
NEAR = 0.5
_ORDER = ("not", "partly", "supported")


@dataclass(frozen=True, slots=True)
class Finding:
    """The passage or two that a sentence was read beside, and what the judge said.

    `further` are the findings of other passages that say the same, each by itself.
    """

    evidence: tuple[Evidence, ...]
    verdict: Verdict
    further: tuple[Finding, ...] = ()

    @property
    def passages(self) -> tuple[Passage, ...]:
        """All that it rests on."""
        return tuple(one.passage for found in (self, *self.further) for one in found.evidence)


def judge_sentences(
    texts: Sequence[str], evidence: Sequence[Sequence[Evidence]], turn: Turn, judge: SupportJudge, stop: Event
) -> list[Finding | None]:
    """What the judge says of each sentence; None for one that claims nothing.

    The nearest passages are read first and at once, the next only for sentences that are not supported yet, and two
    together last.
    """
    given = " ".join(turn.told_facts)
    beside = [_beside(found) for found in evidence]
    found: list[list[Finding]] = [[] for _ in texts]
    for place in range(READ + 1):
        open_ = [n for n, rounds in enumerate(beside) if len(rounds) > place and not _supported(found[n])]
        asked = [(n, some) for n in open_ for some in beside[n][place]]
        if not asked or stop.is_set():
            break
        verdicts = judge.judge([_claim(texts[n], some, turn.question, given) for n, some in asked], stop)
        for (n, some), verdict in zip(asked, verdicts, strict=True):
            found[n].append(Finding(some, verdict))
    return [_settled(one) if text else None for text, one in zip(texts, found, strict=True)]


def _supported(found: Sequence[Finding]) -> list[Finding]:
    return [one for one in found if one.verdict.state == "supported"]


def _claim(text: str, beside: Sequence[Evidence], question: str, given: str) -> Claim:
    """The sentence with the stretch of each passage around what is nearest to it.

    The rest of the passage may name what the sentence names, as the title does, but it supports nothing.
    """
    passages = [one.passage for one in beside]
    near = [quote(one.passage.text, around(one.passage.text, one.span, _WORDS)) for one in beside]
    shown = tuple(replace(passage, text=text) for passage, text in zip(passages, near, strict=True))
    return Claim(text, shown, question, " ".join([given, *(passage.text for passage in passages)]))


def _beside(evidence: Sequence[Evidence]) -> list[list[tuple[Evidence, ...]]]:
    """What a sentence is read beside, in rounds: each near passage alone, each other alone, the first two at once."""
    if not evidence:
        return []
    enough = max(one.nearness for one in evidence) - NEAR
    near = [one for n, one in enumerate(evidence) if n == 0 or one.nearness >= enough]
    rounds: list[list[tuple[Evidence, ...]]] = [[(one,) for one in near]]
    rounds += [[(one,)] for one in evidence if one not in near]
    return [*rounds, [tuple(evidence[:_TOGETHER])]] if len(evidence) >= _TOGETHER else rounds


def _settled(found: Sequence[Finding]) -> Finding:
    """The finding that says most for a sentence, with the further ones that support it.

    Of those that support it the first counts, which is the nearest; a passage that only repeats another is left out.
    """
    if not (supported := _supported(found)):
        return _best(found)
    distinct = list[Finding]()
    for one in supported:
        if not any(repeats(_text(one), _text(other)) for other in distinct):
            distinct.append(one)
    return replace(distinct[0], further=tuple(distinct[1:]))


def _text(found: Finding) -> str:
    return " ".join(one.passage.text for one in found.evidence)


def _best(found: Sequence[Finding]) -> Finding:
    """The finding that says most for a sentence; one passage that says as much as two is enough."""
    return max(
        found,
        key=lambda one: (_ORDER.index(one.verdict.state), -len(one.evidence), one.verdict.probability),
        default=Finding((), Verdict(0.0, "not")),
    )
