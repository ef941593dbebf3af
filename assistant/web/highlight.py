"""Cuts a passage's text where its cited spans begin and end, so that each piece knows which citations it bears."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from assistant.types import Citation, Passage, Turn


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of characters; `cites` are the places, in the turn's citations, of those that quote it."""

    text: str
    cites: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A passage as the sources panel shows it. `n` is its number in the answer, 0 where it is not cited.

    `place` is the place of its first citation in the turn's citations, -1 where it is not cited.
    """

    n: int
    passage: Passage
    pieces: tuple[Piece, ...]
    place: int = -1


def sources(turn: Turn) -> list[Source]:
    """The passages of a turn: the cited ones by their numbers, then the others as they were ranked."""
    all_sources = [_source(passage, _citations_of(turn, passage.id)) for passage in turn.passages]
    return sorted(all_sources, key=lambda source: source.n or len(turn.passages) + 1)


def pieces(text: str, cited: Mapping[int, Citation]) -> Iterator[Piece]:
    """`text` in order, cut at the ends of the citations; spans may overlap and may reach beyond the text."""
    ends = {min(max(end, 0), len(text)) for citation in cited.values() for end in (citation.start, citation.end)}
    cuts = sorted({0, len(text), *ends})
    for start, end in pairwise(cuts):
        cites = tuple(
            position for position, citation in cited.items() if citation.start <= start and end <= citation.end
        )
        yield Piece(text[start:end], cites)


def _source(passage: Passage, cited: Mapping[int, Citation]) -> Source:
    position, first_citation = next(iter(cited.items()), (-1, None))
    return Source(first_citation.n if first_citation else 0, passage, tuple(pieces(passage.text, cited)), position)


def _citations_of(turn: Turn, passage_id: str) -> dict[int, Citation]:
    return {position: citation for position, citation in enumerate(turn.citations) if citation.passage_id == passage_id}
