"""Search of documents without a model: the passages that have the words, and where in them these stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from assistant.errors import LibraryError
from assistant.library.collections import MARK, chosen
from assistant.library.passages import document_of
from assistant.retrieve.document_filter import DocumentFilter
from assistant.settings import Settings
from assistant.types import Passage, Span, Turn

MOST = 50
# Words that begin alike are forms of one, as Lucene's stems have it, but for the shortest.
_BEGINNING = 5
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that was found, and the words of the query in its text."""

    passage: Passage
    spans: tuple[Span, ...]

    def pieces(self) -> Iterator[tuple[str, bool]]:
        """The text in order, each piece with whether it is a word of the query."""
        end = 0
        for span in self.spans:
            yield self.passage.text[end : span.start], False
            yield self.passage.text[span.start : span.end], True
            end = span.end
        yield self.passage.text[end:], False


def find(query: str, library: str, user: str, settings: Settings, k: int = 10) -> list[Found]:
    """At most `k` passages that have words of the query, best first.

    Args:
        query: the words.
        library: its name, or that of a collection of the user's ("@recipes").
        user: who searches.
        settings: say where libraries are.
        k: from 1 to `MOST`.

    Raises:
        LibraryError: the query is empty, or there is no such library or collection, or nothing in it.
    """
    from assistant.library.shelves import open_library, own_library  # noqa: PLC0415 - starts the JVM

    if not query.strip():
        raise LibraryError("Type the words to search for.")
    documents = chosen(library, user, settings)
    searched = open_library(own_library(user) if library.startswith(MARK) else library, settings)
    retriever = DocumentFilter(searched, documents, document_of) if documents else searched
    return [Found(one, tuple(spots(query, one.text))) for one in retriever.search(query, min(max(k, 1), MOST))]


def spots(query: str, text: str) -> Iterator[Span]:
    """Where words of the query, or forms of them, stand in a text."""
    sought = {_beginning(word) for word in _WORD.findall(query)}
    return (Span(*match.span()) for match in _WORD.finditer(text) if _beginning(match[0]) in sought)


def uses(document: str, turns: Iterable[Turn]) -> Sequence[Turn]:
    """The turns whose replies cite a document."""
    return [turn for turn in turns if any(document_of(one.passage_id) == document for one in turn.citations)]


def _beginning(word: str) -> str:
    return word.casefold()[:_BEGINNING]
