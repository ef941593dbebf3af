"""Post-fusion as a filter: passages that gave no answer alone are dropped, and the others are then read together.

The second prompt has the answers of the first round as candidates (post-fusion, section 3.3, "concatenation as the
distiller").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.protocols import Parts
from assistant.strategies.post_fusion import ask_each
from assistant.strategies.shared.pool import NO_ANSWER, vote
from assistant.strategies.shared.reading import read
from assistant.text.sentences import normalise
from assistant.types import Candidate, Turn

TITLE = "One by one, then together"
SUMMARY = "Asks each passage alone, sets aside those without an answer, and reads the others at once."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `pool`, with its votes, and `answer`."""
    turn = replace(turn, pool=vote(ask_each(turn, parts, stop), turn.choices.form, parts.embedder))
    yield turn
    if stop.is_set():
        return
    if all(candidate.unknown for candidate in turn.pool):
        yield replace(turn, answer=NO_ANSWER)
    else:
        yield from _distil(turn, parts, stop)


def _distil(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    answering_ids = {candidate.passage_id for candidate in turn.pool if not candidate.unknown}
    passages = tuple(passage for passage in turn.shown if passage.id in answering_ids)
    yield from read("pf_concat", turn, parts, stop, passages=passages, candidates=_distinct_answers(turn.pool))


def _distinct_answers(pool: tuple[Candidate, ...]) -> tuple[str, ...]:
    """The candidates' texts, best passage first, equal ones once."""
    answers = [candidate.text for candidate in pool if not candidate.unknown]
    return tuple({normalise(text): text for text in reversed(answers)}.values())[::-1]
