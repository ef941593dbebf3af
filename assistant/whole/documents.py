"""The passages of whole documents, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from assistant.errors import LibraryError
from assistant.library.index import Document, list_documents
from assistant.library.passages import document_of
from assistant.library.shelves import open_library
from assistant.settings import Settings
from assistant.types import Passage, Work, WorkKind


def named_work(task: WorkKind, names: Sequence[str], columns: Sequence[str], library: str, settings: Settings) -> Work:
    """The work on documents that are named by their names or ids.

    Raises:
        LibraryError: there is no such document, or two have this name; the message says what to do.
    """
    documents = [_document_named(name, library, settings) for name in names]
    return Work(
        task,
        tuple(document.id for document in documents),
        tuple(document.name for document in documents),
        tuple(columns),
    )


def read_documents(work: Work, library: str, settings: Settings) -> list[Passage]:
    """All passages of the documents to work on, each document's in their order.

    Raises:
        LibraryError: one of them is no longer there.
    """
    passages_of: dict[str, list[Passage]] = {document: [] for document in work.documents}
    for passage in open_library(library, settings).passages():
        if (document := document_of(passage.id)) in passages_of:
            passages_of[document].append(passage)
    missing = [name for name, passages in zip(work.names, passages_of.values(), strict=True) if not passages]
    if missing:
        raise LibraryError(f"{missing[0]} is no longer among the documents; add it again.")
    return [passage for passages in passages_of.values() for passage in sorted(passages, key=_number)]


def _number(passage: Passage) -> int:
    """Which passage of its document it is; 0 of one with an id of its own."""
    number = passage.id.rpartition("-")[2]
    return int(number) if number.isdecimal() and len(number) < 9 else 0


def _document_named(name: str, library: str, settings: Settings) -> Document:
    documents = list_documents(library, settings)
    matches = [document for document in documents if name == document.id] or [
        document for document in documents if name == document.name
    ]
    if not matches:
        raise LibraryError(
            f"There is no document '{name}' here; python -m assistant index --list shows those there are."
        )
    if len(matches) > 1:
        ids = ", ".join(f"{document.id} ({document.passages} passages)" for document in matches)
        raise LibraryError(f"Several documents are named '{name}'; name one by its id: {ids}.")
    return matches[0]
