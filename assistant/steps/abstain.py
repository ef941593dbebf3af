"""What happens when no passage seems to answer the question: by setting, an answer all the same, or none from them.

The confidence of the set is that of its best passage; under the threshold the library counts as not holding the answer
(RE-RAG, section 5.1), and answering from the model's own knowledge instead is the paper's mixed strategy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import Event

from assistant.budget import fit
from assistant.strategies.concat import FACTOID_ROOM
from assistant.text import finished
from assistant.types import Answer, Options, Parts, Step, Turn
from assistant.unknown import says_unknown

OWN = "The library doesn't seem to hold an answer to this. From the model's own knowledge, without a source:"
ASK = (
    "The library doesn't seem to hold an answer to this. Shall I answer from what I know myself, without a source? "
    "You can also add a document that tells it, or ask in other words."
)

# A yes and what may stand around it; any other word asks for something else, and so does a question mark.
_YES = re.compile(
    r"[^\w?]*(?:yes|yeah|yep|yup|sure|ok|okay|please|fine|go ahead|go on|do(?! you)|of course|why not)\b"
    r"(?:[^\w?]+(?:yes|please|do|it|that|so|go|ahead|on|and|then|just|answer|tell|me|us|from|what|you|your|own|know|"
    r"knowledge|think|yourself|thanks|thank|of course|i|would|d|like|love|want|s|fine|good|great|by all means|anyway|"
    r"say|now|if|can|without (?:an?y? )?sources?)\b)*[^\w?]*",
    re.IGNORECASE,
)


def consents(turn: Turn) -> bool:
    """Whether the utterance says yes to `ASK`, in a few words that ask for nothing else."""
    said = turn.utterance.strip()
    offered = bool(turn.history) and turn.history[-1].reply == ASK
    return offered and bool(_YES.fullmatch(said))


def own(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `question`, that of the exchange before, and an `answer` to it from the model's own knowledge."""
    yield from _own(turn.grow(question=turn.history[-1].question, rewritten=True), parts, stop)


def unless_supported(strategy: Step) -> Step:
    """The strategy, run only where the passages are relevant enough, or where the settings say so all the same."""

    def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
        """Adds what the strategy adds, or an `answer` without sources, and an event that says why."""
        below = turn.choices.below or parts.settings.relevance.below
        if turn.confidence is None or turn.confidence.level != "none" or below == "answer":
            yield from strategy(turn, parts, stop)
        else:
            yield from _instead(below, turn.told(why(turn)), parts, stop)

    return run


def why(turn: Turn) -> str:
    """The event that tells why a turn has no answer from passages; "" where nobody estimated them."""
    if turn.confidence is None:
        return ""
    value, threshold = turn.confidence.value, turn.confidence.threshold
    return f"No passage seems to answer this (confidence {value:.2f}, below {threshold:.2f})."


def _instead(below: str, turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    if below == "own":
        yield from _own(turn, parts, stop)
    elif below == "ask" and turn.choices.form == "chat":
        yield turn.grow(answer=Answer(ASK, origin="model"))
    else:
        yield turn.grow(answer=Answer("unknown", unknown=True))


def _own(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    form = turn.choices.form
    room = parts.settings.turn.answer_tokens if form == "chat" else FACTOID_ROOM
    head = f"{OWN}\n\n" if form == "chat" else ""
    messages, cuts = fit(f"{form}/closed_book", parts.llm, room, facts=turn.used_facts, question=turn.question)
    turn = turn.grow(cuts=turn.cuts + cuts)
    for completion in parts.llm.stream(messages, Options(max_tokens=room), stop):
        text = finished(completion, form)
        lost = bool(completion.finish) and says_unknown(text)
        yield turn.grow(answer=Answer(text if lost else head + text, lost, "model"))
