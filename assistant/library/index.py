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
READING_VERSION = 6
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

    A file that is in it and has not changed is skipped; a changed one is replaced; one that vanished from an
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
            outcomes += _add_all(shelf, files, progress, read_file)
            outcomes += shelf.drop(_vanished(documents, files, paths), "it is gone from the folder")
            if any(outcome.status in {"added", "replaced", "removed"} for outcome in outcomes):
                shelf.commit()
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
            shelf = _Shelf(writer, documents)
            for name in names:
                matching_documents = [document for document in documents.values() if _is_match(document, str(name))]
                outcomes += shelf.drop(matching_documents)
                if not matching_documents:
                    outcomes.append(Outcome(str(name), "skipped", reason="it is not in the library"))
            shelf.commit()
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


def _files_to_index(
    paths: Sequence[Path], uploaded: bool, names: Mapping[Path, str]
) -> tuple[list[_File], list[Outcome]]:
    """The files to index, each once, and what can't be one."""
    files: dict[str, _File] = {}
    outcomes = []
    for path in paths:
        if _is_folder(path):
            files |= {file.key: file for file in _files_in(path)}
        elif not _may_be_file(path):
            outcomes.append(Outcome(str(path), "skipped", reason="there is no such file or folder"))
        else:
            file = _upload(path, names) if uploaded else _file(path, "", path.parent)
            if uploaded and file.key in files:
                reason = "another file of this name is in the same upload"
                outcomes.append(Outcome(clean(path.name), "skipped", reason=reason))
            else:
                files[file.key] = file
    return list(files.values()), outcomes


def _files_in(folder: Path) -> Iterator[_File]:
    """The files of a folder and of all folders in it, but for hidden ones."""
    for path in sorted(folder.rglob("*")):
        is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not is_hidden and _may_be_file(path):
            yield _file(path, folder.resolve().name, folder)


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


@dataclass(frozen=True, slots=True)
class _Shelf:
    """A library that is open for changes: whether it is a user's `own`, and where copies of what comes are kept."""

    writer: Writer
    documents: dict[str, Document]
    own: bool = False
    originals: Originals | None = None

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

    def put(self, file: _File, digest: str, content: Content, progress: Progress) -> None:
        """Put what was read of a file in the place of what was read of it before."""
        self.writer.remove(file.id)
        passages, total = content.passages, len(content.passages)
        if _has_ids(file.path) and (self.own or self.writer.holds_any([passage.id for passage in passages])):
            passages = [_renamed(passage, file.id) for passage in passages]
        for start in range(0, total, BATCH):
            self.writer.add(file.id, passages[start : start + BATCH])
            added_count = min(start + BATCH, total)
            progress(READING_PARTS * total + (ALL_PARTS - READING_PARTS) * added_count, ALL_PARTS * total)
        self.documents[file.id] = Document(
            id=file.id,
            name=file.name,
            passages=total,
            hash=digest,
            path="" if file.is_upload else file.key,
            reading=READING_VERSION,
            by_ocr=is_by_ocr(passages),
            note=content.note,
            file="" if file.path.name == Path(file.name).name else file.path.name,
        )

    def drop(self, documents: Sequence[Document], reason: str = "") -> Iterator[Outcome]:
        """Take documents out."""
        for document in documents:
            self.writer.remove(document.id)
            del self.documents[document.id]
            yield Outcome(document.name, "removed", document.passages, reason)

    def commit(self) -> None:
        """Make all changes visible and durable, together with the list of the documents."""
        entries = {document.id: asdict(document) for document in self.documents.values()}
        for entry in entries.values():
            del entry["id"]
        self.writer.commit({"documents": entries})


def _add_all(shelf: _Shelf, files: list[_File], progress: Progress, read_file: ReadFile) -> Iterator[Outcome]:
    sizes = [max(_size(file.path), 1) for file in files]
    done, total = 0, sum(sizes)
    for file, size in zip(files, sizes, strict=True):
        yield _add(shelf, file, _share_of(progress, done, size, total), read_file)
        done += size
        progress(done, total)


def _share_of(progress: Progress, start: int, size: int, total: int) -> Progress:
    """Tells `progress` how far one file is, which has `size` of the `total` bytes, after `start` of them."""
    return lambda done, steps: progress(start + size * done // steps, total)


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
    previous = shelf.documents.get(file.id)
    file = replace(file, name=shelf.name_of(file))
    try:
        digest = _digest(file.path)
        if previous and shelf.has(file.id, digest):
            return Outcome(file.name, "unchanged", previous.passages)
        shelf.refuse_twin(file, digest)
        content = read_file(file, lambda done, total: progress(READING_PARTS * done, ALL_PARTS * total))
        _check_is_unchanged(file.path, digest)
        if shelf.originals:
            shelf.originals.store(file.path, digest)
    except LibraryError as error:
        kept_note = "; what was indexed of it before is kept" if previous else ""
        return Outcome(file.name, "skipped", reason=f"{error}{kept_note}")
    shelf.put(file, digest, content, progress)
    return Outcome(file.name, "replaced" if previous else "added", len(content.passages), content.note)


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


def _is_match(document: Document, name: str) -> bool:
    if name in {document.id, document.name}:
        return True
    return bool(document.path) and Path(document.path).is_relative_to(Path(name).resolve())
