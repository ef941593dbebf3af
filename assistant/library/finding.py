"""Search of documents without a model: the passages that have the words, and where in them these stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from assistant.errors import LibraryError
from assistant.library import shelves
from assistant.library.collections import ALL, MARK, collection_documents
from assistant.library.passages import document_of
from assistant.protocols import Retriever
from assistant.retrieve.own_documents import DocumentFilter, WithOwnDocuments
from assistant.settings import Settings
from assistant.types import Passage, Span, Turn

RESULTS_MOST = 200
EVERYTHING = MARK + ALL
# Lucene's English stop words, by which it finds nothing.
_STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)
# Words that begin alike are forms of one, as Lucene's stems have it, but for the shortest.
_PREFIX_CHARS = 5
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class SearchHit:
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


def find(query: str, library: str, user: str, settings: Settings, k: int = 10) -> list[SearchHit]:
    """At most `k` passages that have words of the query, best first; those of the user's own documents say so.

    Args:
        query: the words.
        library: its name, that of a collection of the user's ("@recipes"), or `EVERYTHING` that they have.
        user: who searches.
        settings: say where libraries are.
        k: from 1 to `RESULTS_MOST`.

    Raises:
        LibraryError: the query is empty, or there is no such library or collection, or nothing in it.
    """
    if not query.strip():
        raise LibraryError("Type the words to search for.")
    passages = _retriever(library, user, settings).search(query, min(max(k, 1), RESULTS_MOST))
    return [SearchHit(passage, tuple(word_spans(query, passage.text))) for passage in passages]


def _retriever(library: str, user: str, settings: Settings) -> Retriever:
    """What searches a library, a collection or all, and marks what is the user's own."""
    own_name = shelves.own_library(user)
    retriever: Retriever
    if library == EVERYTHING:
        retriever = shelves.open_all(user, settings)
    elif documents := collection_documents(library, user, settings):
        retriever = DocumentFilter(shelves.open_library(own_name, settings), documents, document_of)
    else:
        retriever = shelves.open_library(library, settings)
    has_own = shelves.is_library(shelves.library_folder(own_name, settings))
    return WithOwnDocuments(retriever, shelves.open_library(own_name, settings)) if has_own else retriever


def word_spans(query: str, text: str) -> Iterator[Span]:
    """Where words of the query, or forms of them, stand in a text."""
    words = _WORD.findall(query)
    content_words = [word for word in words if word.casefold() not in _STOP_WORDS]
    prefixes = {_prefix(word) for word in content_words or words}
    return (Span(*match.span()) for match in _WORD.finditer(text) if _prefix(match[0]) in prefixes)


def citing_turns(document: str, turns: Iterable[Turn]) -> Sequence[Turn]:
    """The turns whose replies cite a document."""
    return [turn for turn in turns if any(document_of(citation.passage_id) == document for citation in turn.citations)]


def _prefix(word: str) -> str:
    return word.casefold()[:_PREFIX_CHARS]
