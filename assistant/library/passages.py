"""The passages that a document makes."""

from __future__ import annotations

from collections.abc import Iterable

from assistant.text.chunks import Block, chunk
from assistant.types import Passage


def document_of(passage: str) -> str:
    """The id of the document of an upload that the passage of this id stands in, as `passages_of` numbers them."""
    return passage.partition("-")[0]


def passages_of(blocks: Iterable[Block], document: str, source: str) -> list[Passage]:
    """The passages that a document's blocks make.

    A record keeps its id, with #2, #3 ... for what didn't fit into one passage; others are numbered in their document.
    """
    passages: list[Passage] = []
    counts: dict[str, int] = {}
    for block in chunk(blocks):
        key = block.id or document
        counts[key] = n = counts.get(key, 0) + 1
        record_id = block.id if n == 1 else f"{block.id}#{n}"
        full_source = ", ".join(filter(None, (source, block.place, block.by)))
        passage_id = record_id if block.id else f"{document}-{n}"
        passages.append(
            Passage(passage_id, block.title, block.text, source=full_source, page=block.page, heading=block.heading)
        )
    return passages
