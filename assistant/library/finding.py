"""Search of documents without a model: the passages that have the words, and where in them these stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from assistant.errors import LibraryError
from assistant.library.collections import ALL, MARK, chosen
from assistant.library.passages import document_of
from assistant.protocols import Retriever
from assistant.retrieve.own_documents import DocumentFilter, WithOwn
from assistant.settings import Settings
from assistant.types import Passage, Span, Turn

MOST = 200
EVERYTHING = MARK + ALL
# What Lucene passes over in English, and so finds nothing by.
_PASSED_OVER = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)
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
    """At most `k` passages that have words of the query, best first; those of the user's own documents say so.

    Args:
        query: the words.
        library: its name, that of a collection of the user's ("@recipes"), or `EVERYTHING` that they have.
        user: who searches.
        settings: say where libraries are.
        k: from 1 to `MOST`.

    Raises:
        LibraryError: the query is empty, or there is no such library or collection, or nothing in it.
    """
    if not query.strip():
        raise LibraryError("Type the words to search for.")
    found = _searched(library, user, settings).search(query, min(max(k, 1), MOST))
    return [Found(one, tuple(spots(query, one.text))) for one in found]


def _searched(library: str, user: str, settings: Settings) -> Retriever:
    """What searches a library, a collection or all, and marks what is the user's own."""
    from assistant.library import shelves  # noqa: PLC0415 - starts the JVM

    own = shelves.own_library(user)
    searched: Retriever
    if library == EVERYTHING:
        searched = shelves.open_all(user, settings)
    elif documents := chosen(library, user, settings):
        searched = DocumentFilter(shelves.open_library(own, settings), documents, document_of)
    else:
        searched = shelves.open_library(library, settings)
    has_own = shelves.is_library(shelves.library_folder(own, settings))
    return WithOwn(searched, shelves.open_library(own, settings)) if has_own else searched


def spots(query: str, text: str) -> Iterator[Span]:
    """Where words of the query, or forms of them, stand in a text."""
    words = _WORD.findall(query)
    telling = [word for word in words if word.casefold() not in _PASSED_OVER]
    sought = {_beginning(word) for word in telling or words}
    return (Span(*match.span()) for match in _WORD.finditer(text) if _beginning(match[0]) in sought)


def uses(document: str, turns: Iterable[Turn]) -> Sequence[Turn]:
    """The turns whose replies cite a document."""
    return [turn for turn in turns if any(document_of(one.passage_id) == document for one in turn.citations)]


def _beginning(word: str) -> str:
    return word.casefold()[:_BEGINNING]
