"""Post-fusion as a sieve: passages that gave no answer alone are dropped, the others are read together once more.

In the second round the model is shown the answers of the first as candidates (post-fusion, section 3.3, "concatenation
as the distiller").
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant import citations
from assistant.budget import fit
from assistant.pool import vote
from assistant.strategies.concat import FACTOID_ROOM
from assistant.strategies.post_fusion import ask_each
from assistant.text import finished, normalise
from assistant.types import Answer, Candidate, Completion, Options, Parts, Turn
from assistant.uncertainty import Asked, unknown

TITLE = "One by one, then together"
SUMMARY = "Asks each passage alone, sets aside those without an answer, and reads the others at once."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `pool`, with its votes, and `answer` with its citations."""
    turn = turn.grow(pool=vote(ask_each(turn, parts, stop), turn.choices.form, parts.embedder))
    yield turn
    if stop.is_set():
        return
    if all(candidate.unknown for candidate in turn.pool):
        yield turn.grow(answer=Answer("unknown", unknown=True, origin="pool"))
    else:
        yield from _distil(turn, parts, stop)


def _distil(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    form = turn.choices.form
    room = parts.settings.turn.answer_tokens if form == "chat" else FACTOID_ROOM
    useful = {candidate.passage_id for candidate in turn.pool if not candidate.unknown}
    values = {
        "passages": tuple(passage for passage in turn.shown if passage.id in useful),
        "candidates": _distinct(turn.pool),
        "facts": turn.used_facts,
        "question": turn.question,
    }
    messages, cuts = fit(f"{form}/pf_concat", parts.llm, room, **values)
    turn = turn.grow(cuts=turn.cuts + cuts)
    completion = Completion("")
    for completion in parts.llm.stream(messages, Options(max_tokens=room), stop):
        turn = turn.grow(answer=Answer(finished(completion, form)))
        yield turn
    if turn.answer is not None:
        [lost] = unknown([Asked(messages, completion, turn.passages)], turn.choices.form, parts, stop)
        yield from citations.settle(turn.grow(answer=Answer(turn.answer.text, unknown=lost)), parts, stop)


def _distinct(pool: tuple[Candidate, ...]) -> tuple[str, ...]:
    """The candidates' texts, best passage first, equal ones once."""
    known = [candidate.text for candidate in pool if not candidate.unknown]
    return tuple({normalise(text): text for text in reversed(known)}.values())[::-1]
