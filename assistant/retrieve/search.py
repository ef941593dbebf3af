"""Searches for several queries and fuses what they find."""

from __future__ import annotations

from assistant.retrieve.fusion import fuse
from assistant.types import Parts, Query, Turn


def look(turn: Turn, parts: Parts, *queries: Query) -> Turn:
    """The turn with these `queries`, and the `passages` that they found together, the best first."""
    knobs = parts.settings.retrieve
    rankings = {query.name: parts.retriever.search(query.text, knobs.depth) for query in queries}
    return turn.grow(queries=queries, passages=tuple(fuse(rankings, turn.choices.k, knobs.rrf)))
