"""What happens when no passage seems to answer the question: by setting, an answer all the same, or none from them.

The confidence of the set is that of its best passage; under the threshold the library counts as not holding the answer
(RE-RAG, section 5.1), and answering from the model's own knowledge instead is the paper's mixed strategy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.prompting.budget import fit
from assistant.prompting.unknown import says_unknown
from assistant.protocols import Parts, Step
from assistant.settings import Below
from assistant.strategies.concat import FACTOID_ROOM
from assistant.text.markers import read
from assistant.text.sentences import finished
from assistant.types import Answer, Options, Turn

OWN = "Not from your library: this is the model's own knowledge, without a source."
NOTHING_SUITS = "What was found doesn't suit what you told me, so it was left out."
ASK = (
    "The library doesn't seem to hold an answer to this. The model can answer from its own knowledge, without a "
    "source, or from what was found all the same. You can also add a document that tells it, or ask in other words."
)


def unless_supported(strategy: Step) -> Step:
    """The strategy, run only where the passages are relevant enough, or where the settings say so all the same."""

    def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
        """Adds what the strategy adds, or an `answer` without sources, and an event that says why."""
        if turn.left_out and not turn.shown:
            yield replace(turn, answer=Answer(NOTHING_SUITS))
        elif supported(turn, parts):
            yield from strategy(turn, parts, stop)
        else:
            yield from _instead(below_of(turn, parts), turn.told(why(turn)), parts, stop)

    return run


def supported(turn: Turn, parts: Parts) -> bool:
    """Whether this turn is answered from its passages: they are relevant enough, or that is set all the same."""
    return turn.confidence is None or turn.confidence.level != "none" or below_of(turn, parts) == "answer"


def below_of(turn: Turn, parts: Parts) -> Below:
    """What happens to this turn where no passage answers."""
    return turn.choices.below or parts.settings.relevance.below_for(turn.choices.form)


def why(turn: Turn) -> str:
    """The event that tells why a turn has no answer from passages; "" where nobody estimated them."""
    if turn.confidence is None:
        return ""
    value, threshold = turn.confidence.value, turn.confidence.threshold
    return f"No passage seems to answer this (confidence {value:.2f}, below {threshold:.2f})."


def own(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds an `answer` from the model's own knowledge, which says so; unknown where the model doesn't know either."""
    form = turn.choices.form
    room = parts.settings.turn.answer_tokens if form == "chat" else FACTOID_ROOM
    messages, cuts = fit(f"{form}/closed_book", parts.llm, room, facts=turn.used_facts, question=turn.question)
    turn = replace(turn, cuts=turn.cuts + cuts)
    for completion in parts.llm.stream(messages, Options(max_tokens=room), stop):
        if completion.read:
            yield turn.reading(completion)
            continue
        text = finished(completion, form)
        lost = bool(completion.finish) and says_unknown(text)
        yield replace(turn, answer=Answer(text, lost, "model") if lost or form == "factoid" else unbacked(text))


def unbacked(text: str) -> Answer:
    """A chat answer that rests on no source, says so first, and keeps no marker that the model wrote."""
    return Answer(f"{OWN}\n\n{read(text).text}", origin="model")


def said(answer: Answer) -> str:
    """What an answer says, without the line that tells that it rests on no source."""
    return answer.text.removeprefix(OWN).lstrip() if answer.origin == "model" else answer.text


def _instead(below: Below, turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    if below == "own":
        yield from own(turn, parts, stop)
    elif below == "ask" and turn.choices.form == "chat":
        yield replace(turn, answer=Answer(ASK, origin="model"))
    else:
        yield replace(turn, answer=Answer("unknown", unknown=True))
