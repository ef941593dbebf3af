"""Adds documents to a library, replaces them when they changed, and removes them.

A document is read and cut to the end before Lucene sees any of it, and one commit makes all changes of a call visible
together with the manifest that lists the documents. Killed before that, the library is what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import file_digest, sha256
from itertools import chain, count
from pathlib import Path
from stat import S_ISREG
from threading import Event
from typing import Any, Literal

from assistant.errors import LibraryError
from assistant.library.originals import Originals
from assistant.library.readers import reader_of
from assistant.library.reading import Content, read_apart, read_here
from assistant.library.scans import is_by_ocr
from assistant.library.shelves import OWN_PREFIX, is_library, is_prebuilt, library_folder, locked
from assistant.library.starter import NAME as STARTER
from assistant.library.writer import Writer, writing
from assistant.protocols import Progress, silent
from assistant.retrieve.bm25 import read_manifest
from assistant.settings import Settings
from assistant.text.sentences import clean
from assistant.types import Passage

# Searches wait for no more than this many passages.
BATCH = 100
# What is told of a file: so many parts of the whole are for reading it, the others for indexing what was read.
READING_PARTS, ALL_PARTS = 9, 10
UPLOAD = "upload:"
# Counted up when readers or chunks give other passages of a document than before.
READING_VERSION = 4
Status = Literal["added", "replaced", "unchanged", "removed", "skipped"]


@dataclass(frozen=True, slots=True)
class Document:
    """What a library knows of one document. `path` is "" for an uploaded one; `hash` is the SHA-256 of its bytes.

    `reading` says which way of reading its passages came of: one that was read otherwise than documents are today is
    searched as it is, and read anew when it is added again.
    `by_ocr` says that it carries no text, and that characters were recognised on pictures of its pages. A `note` tells
    which of its pages are such pictures, and whether they were read. `file` is the name of the file that it came as, by
    which it is read; "" where that is the last part of its own.
    """

    id: str
    name: str
    passages: int
    hash: str = ""
    path: str = ""
    reading: int = 0
    by_ocr: bool = False
    note: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file; `reason` says why it was skipped or removed, or what of it was not read as usual."""

    name: str
    status: Status
    passages: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _File:
    """A file to index: its name as a reader of the library sees it, and what makes it the same document next time."""

    path: Path
    name: str
    key: str

    @property
    def id(self) -> str:
        return sha256(self.key.encode("utf-8", "surrogatepass")).hexdigest()[:12]

    @property
    def is_upload(self) -> bool:
        return self.key.startswith(UPLOAD)


ReadFile = Callable[[_File, Progress], Content]


def add_documents(  # noqa: PLR0913 - what uploads need beside a name and files
    library: str,
    paths: Sequence[Path],
    settings: Settings,
    progress: Progress = silent,
    *,
    uploaded: bool = False,
    names: Mapping[Path, str] | None = None,
    stop: Event | None = None,
    check: Callable[[Sequence[Document]], None] = lambda _: None,
) -> list[Outcome]:
    """Bring files, and all files of folders, into a library, which is made if there is none of this name.

    A file that is in it and has not changed is passed over; a changed one is replaced; one that vanished from an
    indexed folder is removed. What can't be read is skipped, with the reason, and the rest is indexed.

    Args:
        library: its name.
        paths: files and folders.
        settings: say where libraries are.
        progress: told bytes.
        uploaded: whether they come from users of the page: known by their names alone, wherever they lie now, and
            read apart.
        names: what uploaded files are called, where that is not their own name.
        stop: where it is given, too, files are read apart: in a process of its own, within limits of time and memory,
            and a copy of each is kept beside the index. When it is set, no file is read any further. One that is read
            apart and has the content of another document is skipped.
        check: sees the documents that are there, which nobody else changes meanwhile; an error of it refuses all files.

    Raises:
        LibraryError: the library itself can't be written.
    """
    folder = _changeable_folder(library, settings)
    files, outcomes = _files_to_index(paths, uploaded, names or {})
    is_apart = uploaded or stop is not None
    read_file = _reader_apart(stop or Event()) if is_apart else _read_file
    with locked(folder):
        documents = _documents(folder)
        check(list(documents.values()))
        folder.mkdir(exist_ok=True)
        with writing(folder) as writer:
            shelf = _Shelf(writer, documents, library.startswith(OWN_PREFIX), Originals(folder) if is_apart else None)
            outcomes += list(_add_all(shelf, files, progress, read_file))
            outcomes += list(_drop(writer, documents, _vanished(documents, files, paths), "it is gone from the folder"))
            if any(outcome.status in {"added", "replaced", "removed"} for outcome in outcomes):
                writer.commit(_manifest(documents))
        _sweep(folder, documents)
    return outcomes


def remove_documents(library: str, names: Sequence[str | Path], settings: Settings) -> list[Outcome]:
    """Take documents out of a library: by id, by name, or by the path (or folder) that they were indexed from.

    Raises:
        LibraryError: the library can't be written, or there is none.
    """
    folder = _changeable_folder(library, settings)
    with locked(folder):
        if not is_library(folder):
            raise LibraryError(
                f"There is no library '{library}'; python -m assistant index --list shows those there are."
            )
        documents = _documents(folder)
        outcomes: list[Outcome] = []
        with writing(folder) as writer:
            for name in names:
                matching_documents = [document for document in documents.values() if _is_match(document, str(name))]
                outcomes += _drop(writer, documents, matching_documents, "")
                if not matching_documents:
                    outcomes.append(Outcome(str(name), "skipped", reason="it is not in the library"))
            writer.commit(_manifest(documents))
        _sweep(folder, documents)
    return outcomes


def list_documents(library: str, settings: Settings) -> list[Document]:
    """The documents of a library, by name; none where there is no library yet.

    Raises:
        LibraryError: the library can't be read.
    """
    folder = library_folder(library, settings)
    return sorted(_documents(folder).values(), key=lambda document: (document.name.lower(), document.id))


def originals_of(library: str, settings: Settings) -> Originals:
    """The copies of uploaded documents that are kept with a library."""
    return Originals(library_folder(library, settings))


def _changeable_folder(library: str, settings: Settings) -> Path:
    if library == STARTER:
        raise LibraryError(f"The library '{STARTER}' comes with Sequitur and can't be changed; choose another name.")
    folder = library_folder(library, settings)
    if is_prebuilt(folder):
        raise LibraryError(f"The library '{library}' was fetched whole and can't be changed; choose another name.")
    return folder


def _documents(folder: Path) -> dict[str, Document]:
    if not is_library(folder):
        return {}
    entries: dict[str, dict[str, Any]] = read_manifest(folder).get("documents", {})
    return {key: Document(id=key, **entry) for key, entry in entries.items()}


def _manifest(documents: dict[str, Document]) -> dict[str, Any]:
    entries = {document.id: asdict(document) for document in documents.values()}
    return {"documents": {key: {k: v for k, v in entry.items() if k != "id"} for key, entry in entries.items()}}


def _files_to_index(
    paths: Sequence[Path], uploaded: bool, names: Mapping[Path, str]
) -> tuple[list[_File], list[Outcome]]:
    """The files to index, each once, and what can't be one."""
    files: dict[str, _File] = {}
    outcomes = []
    for path in paths:
        if _is_folder(path):
            inner_paths = sorted(
                inner_path
                for inner_path in path.rglob("*")
                if _may_be_file(inner_path) and not _is_hidden(inner_path, path)
            )
            files.update(
                (file.key, file)
                for file in (_file(inner_path, path.resolve().name, path) for inner_path in inner_paths)
            )
        elif not _may_be_file(path):
            outcomes.append(Outcome(str(path), "skipped", reason="there is no such file or folder"))
        elif uploaded and _upload(path, names).key in files:
            outcomes.append(Outcome(clean(path.name), "skipped", reason=_TWICE_REASON))
        else:
            file = _upload(path, names) if uploaded else _file(path, "", path.parent)
            files[file.key] = file
    return list(files.values()), outcomes


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _may_be_file(path: Path) -> bool:
    """Whether it is a file; of what can't be looked at that isn't known, and opening it tells why."""
    try:
        return path.is_file()
    except OSError:
        return True


def _file(path: Path, folder: str, base: Path) -> _File:
    return _File(path, clean((Path(folder) / path.relative_to(base)).as_posix()), str(path.resolve()))


def _upload(path: Path, names: Mapping[Path, str]) -> _File:
    name = names.get(path, path.name)
    return _File(path, clean(name), UPLOAD + name)


def _is_hidden(path: Path, base: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(base).parts)


@dataclass(frozen=True, slots=True)
class _Shelf:
    """A library that is open for changes: whether it is a user's `own`, and where copies of what comes are kept."""

    writer: Writer
    documents: dict[str, Document]
    own: bool
    originals: Originals | None

    def has(self, document: str, digest: str) -> bool:
        """Whether a document is there with this content, and its copy where it is to have one."""
        previous = self.documents.get(document)
        if previous is None or previous.hash != digest or previous.reading != READING_VERSION:
            return False
        return self.originals is None or self.originals.is_intact(digest)

    def name_of(self, file: _File) -> str:
        """What a file is called here: its name, with a number where another document looks to be called the same."""
        taken_names = {document.name for document in self.documents.values() if document.id != file.id}
        names = chain([file.name], (f"{file.name} ({n})" for n in count(2)))
        return next(name for name in names if name not in taken_names)

    def refuse_twin(self, file: _File, digest: str) -> None:
        """Raise an error where another document has the content of a file that was uploaded or lies in a folder."""
        for document in self.documents.values() if self.originals else ():
            if document.hash == digest and document.id != file.id and _is_unchanged(document):
                raise LibraryError(f"it is already here as “{document.name}”")


def _add_all(shelf: _Shelf, files: list[_File], progress: Progress, read_file: ReadFile) -> Iterator[Outcome]:
    sizes = [max(_size(file.path), 1) for file in files]
    done, total = 0, sum(sizes)
    for file, size in zip(files, sizes, strict=True):
        start = done
        tell = lambda step, steps: progress(start + size * step // steps, total)  # noqa: B023, E731
        yield _add(shelf, file, tell, read_file)
        done += size
        progress(done, total)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read_file(file: _File, progress: Progress) -> Content:
    return read_here(file.path, file.id, file.name, progress)


def _reader_apart(stop: Event) -> ReadFile:
    return lambda file, progress: read_apart(file.path, file.id, file.name, stop, progress)


def _add(shelf: _Shelf, file: _File, progress: Progress, read_file: ReadFile) -> Outcome:
    writer, previous = shelf.writer, shelf.documents.get(file.id)
    file = replace(file, name=shelf.name_of(file))
    try:
        digest = _digest(file.path)
        if previous and shelf.has(file.id, digest):
            return Outcome(file.name, "unchanged", previous.passages)
        shelf.refuse_twin(file, digest)
        passages, note = read_file(file, lambda done, total: progress(READING_PARTS * done, ALL_PARTS * total))
        _check_is_unchanged(file.path, digest)
        if shelf.originals:
            shelf.originals.store(file.path, digest)
    except LibraryError as error:
        return Outcome(file.name, "skipped", reason=str(error) + (_KEPT_REASON if previous else ""))
    writer.remove(file.id)
    if _has_ids(file.path) and (shelf.own or writer.holds_any([passage.id for passage in passages])):
        passages = [_renamed(passage, file.id) for passage in passages]
    for start in range(0, len(passages), BATCH):
        writer.add(file.id, passages[start : start + BATCH])
        added_count, total = min(start + BATCH, len(passages)), len(passages)
        progress(READING_PARTS * total + (ALL_PARTS - READING_PARTS) * added_count, ALL_PARTS * total)
    path, by_ocr = "" if file.is_upload else file.key, is_by_ocr(passages)
    original_name = "" if file.path.name == Path(file.name).name else file.path.name
    shelf.documents[file.id] = Document(
        file.id, file.name, len(passages), digest, path, READING_VERSION, by_ocr, note, original_name
    )
    return Outcome(file.name, "replaced" if previous else "added", len(passages), note)


_KEPT_REASON = "; what was indexed of it before is kept"
_TWICE_REASON = "another file of this name is in the same upload"


def _is_unchanged(document: Document) -> bool:
    """Whether the file of a document has the content that was indexed; nothing else can be said of an uploaded one."""
    try:
        return not document.path or _digest(Path(document.path)) == document.hash
    except LibraryError:
        return False


def _check_is_unchanged(path: Path, digest: str) -> None:
    if _digest(path) != digest:
        raise LibraryError("it changed while it was read; add it again when it is finished")


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise LibraryError(f"it can't be opened ({error.strerror})") from error


def _has_ids(path: Path) -> bool:
    reader = reader_of(path)
    return reader is not None and reader.RECORDS


def _renamed(passage: Passage, document: str) -> Passage:
    """Two documents may number their records alike; the second one's ids are told apart by the document's.

    Those of a user's own documents always are: they are searched beside another library, which has ids like them.
    """
    return replace(passage, id=f"{document}-{passage.id}")


def _vanished(documents: dict[str, Document], files: list[_File], paths: Sequence[Path]) -> list[Document]:
    """The documents of these folders whose files are gone; one that the search passed over, as hidden, may be there."""
    folders = [path.resolve() for path in paths if _is_folder(path)]
    present_ids = {file.id for file in files}
    return [
        document
        for document in documents.values()
        if document.path
        and document.id not in present_ids
        and any(Path(document.path).is_relative_to(folder) for folder in folders)
        and _is_gone(Path(document.path))
    ]


def _is_gone(path: Path) -> bool:
    """Whether there is no such file any more; of one that can't be looked at for now, that isn't known."""
    try:
        return not S_ISREG(path.stat().st_mode)
    except OSError as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError)


def _sweep(folder: Path, documents: dict[str, Document]) -> None:
    Originals(folder).sweep({document.hash for document in documents.values()})


def _drop(
    writer: Writer, documents: dict[str, Document], gone_documents: Sequence[Document], reason: str
) -> Iterator[Outcome]:
    for document in gone_documents:
        writer.remove(document.id)
        del documents[document.id]
        yield Outcome(document.name, "removed", document.passages, reason)


def _is_match(document: Document, name: str) -> bool:
    if name in {document.id, document.name}:
        return True
    return bool(document.path) and Path(document.path).is_relative_to(Path(name).resolve())
