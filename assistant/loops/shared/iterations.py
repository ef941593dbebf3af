"""ITRG: searching and writing alternate, and each improves the other (ITRG, section 2).

The first round searches for the question, each later one for the question and the document written last. How the
document is written depends on the loop; see `loops/itrg_refine.py` and `loops/itrg_refresh.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Event
from typing import Any

from assistant.flow.timing import timed
from assistant.prompting.stream import stream
from assistant.protocols import Parts, Step
from assistant.retrieve.search import search_and_fuse, search_text
from assistant.text.sentences import whole_sentences
from assistant.types import Iteration, Passage, Query, Turn


def iterate(turn: Turn, parts: Parts, stop: Event, document: Step) -> Iterator[Turn]:
    """Adds `iterations`, with the `queries` and `passages` of the last one; `document` writes the document of each."""
    knobs = parts.settings.turn
    for _ in range(knobs.itrg_rounds):
        turn = _searched(turn, parts)
        yield turn
        if knobs.early_stop and _unchanged(turn):
            return
        for turn in timed("document", document, turn, parts, stop):
            yield turn
        if stop.is_set():
            return


def new_passages(turn: Turn) -> tuple[Passage, ...]:
    """The passages of the current iteration that the one before did not find, best first."""
    *earlier, current = turn.iterations
    previous_ids = {passage.id for passage in earlier[-1].passages} if earlier else set()
    return tuple(passage for passage in current.passages if passage.id not in previous_ids)


def write(prompt: str, turn: Turn, parts: Parts, stop: Event, **values: Any) -> Iterator[Turn]:
    """Adds the document of the current iteration as it grows, written greedily by `prompt`."""
    values |= {"facts": turn.used_facts, "question": turn.question}
    for turn, completion in stream(prompt, turn, parts, stop, parts.settings.turn.max_document_tokens, **values):
        text = completion.text.strip()
        document = whole_sentences(text) if completion.finish == "length" else text
        yield turn if completion.read else with_document(turn, document)


def with_document(turn: Turn, document: str) -> Turn:
    """The turn with this document in its current iteration."""
    *earlier, current = turn.iterations
    return replace(turn, iterations=(*earlier, replace(current, document=document)))


def _searched(turn: Turn, parts: Parts) -> Turn:
    """The turn with one more iteration: its passages, and the previous document until a new one is written."""
    query = Query("question", search_text(turn))
    if turn.document:
        query = Query("document", f"{turn.question} {turn.document}")
    earlier_passages = turn.iterations[-1].passages if turn.iterations else ()
    turn = search_and_fuse(turn, parts, query)
    passages = _with_earlier_queries(turn.passages, earlier_passages)
    iteration = Iteration(query.text, passages, turn.document)
    return replace(turn, passages=passages, iterations=(*turn.iterations, iteration))


def _unchanged(turn: Turn) -> bool:
    """Whether the last two iterations found the same passages."""
    last_two = [{passage.id for passage in iteration.passages} for iteration in turn.iterations[-2:]]
    return len(last_two) == 2 and last_two[0] == last_two[1]


def _with_earlier_queries(passages: Sequence[Passage], earlier_passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The passages, with the queries that found them earlier added to `found_by`."""
    earlier_queries = {passage.id: passage.found_by for passage in earlier_passages}
    return tuple(
        replace(passage, found_by=tuple(dict.fromkeys((*earlier_queries.get(passage.id, ()), *passage.found_by))))
        for passage in passages
    )
