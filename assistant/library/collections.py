"""Collections: names that a user gives to some of their documents, to ask those alone ("@recipes how long ...").

They stand in a file beside the index of the user's own documents, and go with it. Two names that differ in capitals
alone are one. `settings` say where libraries are, in every function here.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

from assistant.errors import CollectionError, LibraryError, disk_errors_as
from assistant.library.index import list_documents
from assistant.library.shelves import library_folder, locked, own_library
from assistant.settings import Settings

FILE = "collections.json"
# Categories of the vowel signs and accents that words of some scripts have beside their letters.
_MARKS = frozenset({"Mn", "Mc"})
# Before the name of a collection, in messages and where a library is chosen; and what stands for no collection.
MARK, ALL = "@", "all"
COLLECTIONS_MOST = 100
NAME_CHARS = 40

Collections = Mapping[str, tuple[str, ...]]


def collections(user: str, settings: Settings) -> dict[str, tuple[str, ...]]:
    """The ids of the documents in each of the user's collections, by name; those of removed documents are left out.

    Raises:
        LibraryError: the library can't be read.
    """
    ids_by_name = _load(_file(user, settings))
    present_ids = _document_ids(user, settings) if ids_by_name else set()
    return {
        name: tuple(document_id for document_id in ids if document_id in present_ids)
        for name, ids in sorted(ids_by_name.items())
    }


def make(user: str, name: str, settings: Settings) -> None:
    """Make a collection, which is empty.

    Raises:
        LibraryError: it can't be named so, there is one of this name, or there are too many.
    """
    name = unicodedata.normalize("NFC", name)
    if not _is_valid_name(name):
        raise LibraryError(
            f"A collection can't be named '{name[:50]}'; use up to {NAME_CHARS} letters, digits, - and _."
        )
    with locked(_folder(user, settings)):
        ids_by_name = _load(_file(user, settings))
        if _match_or_empty(name, ids_by_name):
            raise LibraryError(
                f"There is a collection '{_match_or_empty(name, ids_by_name)}' already; choose another name."
            )
        if len(ids_by_name) >= COLLECTIONS_MOST:
            raise LibraryError(f"There are {COLLECTIONS_MOST} collections already; remove one first.")
        _save(_file(user, settings), {**ids_by_name, name: ()})


def remove(user: str, name: str, settings: Settings) -> None:
    """Remove a collection; its documents stay.

    Raises:
        LibraryError: there is none of this name.
    """
    with locked(_folder(user, settings)):
        ids_by_name = _load(_file(user, settings))
        stored_name = _stored_name(name, ids_by_name)
        _save(
            _file(user, settings),
            {other: ids for other, ids in ids_by_name.items() if other != stored_name},
        )


def put(user: str, name: str, document: str, settings: Settings, *, inside: bool = True) -> None:
    """Put a document into a collection, or take it out again where it isn't to be `inside`.

    Raises:
        LibraryError: there is no such collection or document.
    """
    if document not in _document_ids(user, settings):
        raise LibraryError("There is no such document; it may have been removed meanwhile.")
    with locked(_folder(user, settings)):
        ids_by_name = _load(_file(user, settings))
        stored_name = _stored_name(name, ids_by_name)
        other_ids = tuple(document_id for document_id in ids_by_name[stored_name] if document_id != document)
        _save(_file(user, settings), {**ids_by_name, stored_name: (*other_ids, document) if inside else other_ids})


def collection_documents(library: str, user: str, settings: Settings) -> tuple[str, ...] | None:
    """The documents that a chosen library's name stands for, where it is a collection's ("@recipes"); None of others.

    Raises:
        LibraryError: there is no such collection, or no document in it.
    """
    if not library.startswith(MARK):
        return None
    ids_by_name = collections(user, settings)
    documents = ids_by_name[_stored_name(library[1:], ids_by_name)]
    if not documents:
        raise CollectionError(f"The collection {library} is empty; put documents into it, or ask without it.")
    return documents


def library_of(collection: str, user: str, settings: Settings) -> str:
    """The library that a collection is chosen as: "@recipes" for "recipes" and "@recipes".

    Raises:
        LibraryError: there is no such collection, or no document in it; the message names those there are.
    """
    library = MARK + collection.removeprefix(MARK)
    collection_documents(library, user, settings)
    return library


def split_mention(utterance: str, user: str, settings: Settings) -> tuple[str, str]:
    """The library that a message chooses by what it begins with, "" for none, and the message without that.

    "@recipes how long do oats cook?" chooses "@recipes"; "@all" chooses "@all", which is no collection but everything.

    Raises:
        LibraryError: it begins with the name of no collection, or nothing follows.
    """
    first_word, question = [*utterance.split(maxsplit=1), "", ""][:2]
    if not first_word.startswith(MARK) or first_word == MARK:
        return "", utterance
    name = first_word.removeprefix(MARK).rstrip(",:")
    library = MARK + (ALL if name.casefold() == ALL else _stored_name(name, collections(user, settings)))
    if not question:
        raise CollectionError(f"Write a question behind {library}.")
    return library, question


def _is_valid_name(name: str) -> bool:
    """Whether a collection may have this name, which has to be one word of a message."""
    are_valid = all(char in "-_" or char.isalnum() or unicodedata.category(char) in _MARKS for char in name)
    return len(name) <= NAME_CHARS and name[:1].isalnum() and are_valid and name.casefold() != ALL


def _stored_name(name: str, existing_collections: Collections) -> str:
    stored_name = _match_or_empty(name, existing_collections)
    if not stored_name:
        names = ", ".join(MARK + existing_name for existing_name in sorted(existing_collections))
        hint = f"yours are {names}" if names else "you have none yet; make one under Documents"
        raise CollectionError(f"There is no collection '{MARK}{name[:50]}': {hint}.")
    return stored_name


def _match_or_empty(name: str, existing_collections: Collections) -> str:
    """The existing name that is the same but for capitals, as it was given; "" where there is none."""
    key = _comparison_key(name)
    return next((existing_name for existing_name in existing_collections if _comparison_key(existing_name) == key), "")


def _comparison_key(name: str) -> str:
    """What two names have in common that differ in capitals, or in how their letters are put together."""
    return unicodedata.normalize("NFC", name).casefold()


def _document_ids(user: str, settings: Settings) -> set[str]:
    """The ids of the user's own documents."""
    return {document.id for document in list_documents(own_library(user), settings)}


def _folder(user: str, settings: Settings) -> Path:
    return library_folder(own_library(user), settings)


def _file(user: str, settings: Settings) -> Path:
    return _folder(user, settings) / FILE


def _load(file: Path) -> dict[str, tuple[str, ...]]:
    try:
        return {name: tuple(ids) for name, ids in json.loads(file.read_text(encoding="utf-8")).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        raise LibraryError(f"The collections in {file} can't be read; repair the file, or remove it.") from error


def _save(file: Path, ids_by_name: Mapping[str, Sequence[str]]) -> None:
    with disk_errors_as(LibraryError, f"{file} can't be written", "free some space"):
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")  # of one name: what a full disk leaves of it is written over
        partial.write_text(json.dumps(ids_by_name, indent=1), encoding="utf-8")
        partial.replace(file)
