"""What happens in the documents panel: adding files to the user's own library, listing and removing them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import gradio as gr
from gradio.data_classes import ListFiles

from assistant.errors import LibraryError, LimitError, SequiturError
from assistant.library.addresses import fetch_file
from assistant.library.arrivals import Arrivals
from assistant.library.index import Document as Indexed
from assistant.library.index import add_documents, list_documents, originals_of, remove_documents
from assistant.library.readers import suffixes
from assistant.library.shelves import last_change, own_library
from assistant.protocols import Progress
from assistant.settings import LimitSettings, Settings
from assistant.web import render
from assistant.web.bodies import MEGABYTE
from assistant.web.folder import FollowedFolder
from assistant.web.live import place
from assistant.web.opening import Opening
from assistant.web.tab import QUIET, Tab, Updates, guarded_stream, on, on_stream, user_of
from assistant.web.view import View

# Seconds between looks at how far documents are that are being read.
POLL_SECONDS = 0.4
TITLE_CHARS, PASTED_CHARS, NAME_BYTES = 200, 500_000, 100
UNCHANGED = "it was there already and has not changed"
# Gradio knows files by the last of their endings.
READABLE_SUFFIXES = tuple(sorted({Path(suffix).suffix or suffix for suffix in suffixes()}))


DAMAGED = "The copy of this document is damaged. Add it anew."


@dataclass(frozen=True, slots=True)
class Document:
    """A file of a library, and how many passages it was cut into. `original` is the copy that is kept of it, if any.

    It was read `by_ocr` where it has only pictures of its pages; a `note` tells of some pages that are such pictures.
    `file` is the name of a file that it is read as, "" where that is its own.
    """

    id: str
    name: str
    passages: int
    original: Path | None = None
    by_ocr: bool = False
    note: str = ""
    file: str = ""


class OwnDocuments:
    """Each user's own documents: a library for each, beside the one that is chosen."""

    def __init__(self, settings: Settings, changed: Callable[[str], object] = lambda _user: None) -> None:
        """`changed` is called with the user whose documents did."""
        self._settings, self._changed = settings, changed

    def list(self, user: str) -> Sequence[Document]:
        """The user's documents, by name."""
        return self._as_documents(user, list_documents(own_library(user), self._settings))

    def mark(self, user: str) -> str:
        """Another text as soon as the user's documents are others; it takes no time to tell."""
        return last_change(own_library(user), self._settings)

    def add(
        self,
        user: str,
        files: Sequence[Path],
        progress: Progress,
        stop: Event,
        names: Mapping[Path, str] | None = None,
    ) -> Sequence[str]:
        """Index files. Returns a sentence for each that was not added, with the reason; the others are.

        Once `stop` is set, no more of them are read. `names` are what they are called where that isn't the file's name.

        Raises:
            LimitError: they are more than this user may keep; none is added.
        """
        max_mb = self._settings.web.max_upload_mb
        names_by_file = {file: (names or {}).get(file, file.name) for file in files}
        problems = {file: problem for file in files if (problem := too_large(file, max_mb))}
        paths = [file for file in files if file not in problems]
        new_files = {names_by_file[file]: file for file in paths}

        def check(indexed: Sequence[Indexed]) -> None:
            check_room(self._as_documents(user, indexed), new_files, self._settings.limits)

        outcomes = add_documents(
            own_library(user), paths, self._settings, progress, uploaded=True, names=names, stop=stop, check=check
        )
        self._changed(user)
        not_added = [outcome for outcome in outcomes if outcome.status in {"skipped", "unchanged"}]
        return [
            *(f"{names_by_file[file]}: {problem}" for file, problem in problems.items()),
            *(f"{outcome.name}: {outcome.reason or UNCHANGED}" for outcome in not_added),
        ]

    def remove(self, user: str, document: str) -> None:
        """Take a document and its passages out."""
        for outcome in remove_documents(own_library(user), [document], self._settings):
            if outcome.status == "skipped":
                raise LibraryError("There is no such document; it may have been removed meanwhile.")
        self._changed(user)

    def _as_documents(self, user: str, indexed: Sequence[Indexed]) -> Sequence[Document]:
        originals = originals_of(own_library(user), self._settings)
        return [
            Document(
                document.id,
                document.name,
                document.passages,
                originals.path(document.hash),
                document.by_ocr,
                document.note,
                document.file,
            )
            for document in indexed
        ]


class DocumentPanel:
    """The panel and its handlers."""

    name, title = "documents", "Documents"

    def __init__(
        self, view: View, documents: OwnDocuments, arrivals: Arrivals, followed: FollowedFolder | None = None
    ) -> None:
        self._view, self._documents, self._arrivals, self._followed = view, documents, arrivals, followed
        self._readings: dict[str, Event] = {}  # of each user whose documents are being read, what stops that
        self._upload = file_field()

    def place(self) -> None:
        """Place the field for files, and the documents beneath it."""
        place(self._upload, self._view.pieces.documents)

    def wire(self, opening: Opening) -> None:
        """Listen."""
        pieces = self._view.pieces
        on(pieces.documents, "drop", self.drop, [pieces.documents], pieces.notice)
        on(pieces.documents, "halt", self.halt, [], pieces.notice)
        on(pieces.documents, "follow", self.follow, [pieces.documents], pieces.notice)
        on_stream(pieces.documents, "see", self.see, [pieces.documents], pieces.notice)
        on_stream(pieces.documents, "paste", self.paste, [pieces.documents], pieces.notice)
        on_stream(pieces.documents, "fetch", self.fetch, [pieces.documents], pieces.notice)

        async def bring(files: list[tuple[str, str]] | None, request: gr.Request) -> AsyncIterator[Updates]:
            user, uploads = user_of(request), files or ()
            paths, names = [Path(path) for path, _ in uploads], [name for _, name in uploads]
            work = self.shown(user, lambda: self.bring(user, paths, names))
            async for updates in guarded_stream(work, pieces.notice):
                yield {self._upload: None, **updates}

        opening.fill([pieces.documents], self.show)
        self._upload.upload(bring, self._upload, [self._upload, pieces.documents, pieces.notice], **QUIET)

    def show(self, user: str, problems: Sequence[str] | None = ()) -> Updates:
        """The user's documents, what went wrong with the last ones, and how far those are that are being read.

        Where `problems` is None, those that are shown stay.
        """
        mark, wait = mark_of(user, self._documents, self._arrivals, self._followed), self._arrivals.wait(user)
        html = render.render(
            "documents",
            mark=mark,
            documents=self._documents.list(user),
            problems=problems,
            reading=self._arrivals.names(user) if wait else (),
            share=wait.done / wait.total if wait and wait.total else None,
            followed=self._followed if self._followed and self._followed.may(user) else None,
        )
        return {self._view.pieces.documents: html}

    async def see(self, tab: Tab) -> AsyncIterator[Updates]:
        """Show the documents as they are now: a folder that is followed, or another tab, changed them."""
        yield await asyncio.to_thread(self.show, tab.user, None)

    async def shown(self, user: str, work: Callable[[], Updates]) -> AsyncIterator[Updates]:
        """What `work` comes to, done in a thread of its own; how far the user's documents are, meanwhile."""
        task = asyncio.ensure_future(asyncio.to_thread(work))
        last_updates: Updates = {}
        while not (await asyncio.wait([task], timeout=POLL_SECONDS))[0]:
            if (updates_now := await asyncio.to_thread(self.show, user)) != last_updates:
                yield (last_updates := updates_now)
        try:
            updates = {self._view.pieces.notice: "", **task.result()}
        except SequiturError as error:
            updates = {self._view.pieces.notice: render.notice(str(error)), **self.show(user)}
        yield updates

    def bring(self, user: str, files: Sequence[Path], file_names: Sequence[str] = ()) -> Updates:
        """Add files, say how many are new, and why each that was not added wasn't. The uploaded copies are deleted.

        `file_names` are their names, where these aren't those of the files.

        Raises:
            LibraryError: other documents of this user are still being read.
        """
        names = file_names or [file.name for file in files]
        return self._bring(user, names, lambda folder: _moved_uploads(files, names, folder))

    async def paste(self, tab: Tab) -> AsyncIterator[Updates]:
        """Add a text that was pasted, under the title that it was given."""
        title, text = " ".join(tab.text("title").split()), tab.text("text")
        async for updates in self.shown(tab.user, lambda: self.bring_text(tab.user, title, text)):
            yield updates

    def bring_text(self, user: str, title: str, text: str) -> Updates:
        """Add a text as a document of this title.

        Raises:
            LibraryError: there is no title or no text, it is too long, or others are still being read.
        """
        if not title or not text.strip():
            raise LibraryError("Give the text a title, and paste it below.")
        if len(title) > TITLE_CHARS or len(text) > PASTED_CHARS:
            raise LibraryError(
                f"A title has up to {TITLE_CHARS} characters and a text up to {PASTED_CHARS:,}; "
                "save a longer one as a file and add that."
            )
        return self._bring_one(user, title, lambda: (title, file_name(title) + ".txt", text.encode("utf-8", "replace")))

    async def fetch(self, tab: Tab) -> AsyncIterator[Updates]:
        """Add what there is to read at a web address."""
        address = tab.text("address").strip()
        async for updates in self.shown(tab.user, lambda: self.bring_page(tab.user, address)):
            yield updates

    def bring_page(self, user: str, address: str) -> Updates:
        """Add what stands at a web address, under that.

        Raises:
            LibraryError: it can't be fetched, or others are still being read.
        """

        def content() -> tuple[str, str, bytes]:
            page = fetch_file(address)
            suffix = max(filter(page.file.endswith, suffixes()), key=len, default="")
            return page.address, file_name(page.file.removesuffix(suffix)) + suffix, page.content

        return self._bring_one(user, address, content)

    def halt(self, tab: Tab) -> Updates:
        """Stop the reading of the user's documents; those that were read already are added."""
        stop = self._readings.get(tab.user)
        if stop:
            stop.set()
        return {}

    def follow(self, tab: Tab) -> Updates:
        """Follow another folder, or none."""
        if self._followed:
            self._followed.choose(tab.user, tab.text("folder").strip())
        return self.show(tab.user)

    def drop(self, tab: Tab) -> Updates:
        """Take a document out."""
        self._documents.remove(tab.user, tab.text("document"))
        return self.show(tab.user)

    def _bring_one(self, user: str, name: str, content: Callable[[], tuple[str, str, bytes]]) -> Updates:
        """Add what `content` gives: a document's name, that of a file to read it as, and the bytes of it."""
        names: dict[Path, str] = {}

        def write_file(folder: Path) -> tuple[list[Path], list[str]]:
            document_name, file, data = content()
            names[folder / file] = document_name
            (folder / file).write_bytes(data)
            return list(names), []

        return self._bring(user, [name], write_file, names)

    def _bring(
        self,
        user: str,
        names: Sequence[str],
        take_files: Callable[[Path], tuple[list[Path], list[str]]],
        names_by_file: Mapping[Path, str] | None = None,
    ) -> Updates:
        """Add the files that `take_files` brings into a folder; it also tells which are not there."""
        with (
            self._reading(user) as stop,
            self._arrivals.track(user, names) as tell,
            TemporaryDirectory() as folder,
        ):
            files, problems = take_files(Path(folder))
            old_ids = {document.id for document in self._documents.list(user)}
            problems += self._documents.add(user, files, tell, stop, names_by_file) if files else []
        new_count = sum(document.id not in old_ids for document in self._documents.list(user))
        note = _note(new_count, len(names) - len(problems) - new_count)
        return {**self.show(user, problems), **(self._view.note(note) if note else {})}

    @contextmanager
    def _reading(self, user: str) -> Iterator[Event]:
        """The one reading of this user's documents that there is at a time; the event stops it."""
        stop = Event()
        if self._readings.setdefault(user, stop) is not stop:
            raise LibraryError("Your documents before these are still being read; wait for them or stop them first.")
        try:
            yield stop
        finally:
            del self._readings[user]


def mark_of(user: str, documents: OwnDocuments, arrivals: Arrivals, followed: FollowedFolder | None) -> str:
    """Another text as soon as the list of a user's documents is to be drawn anew; it tells nothing of them."""
    folder_mark = followed.mark if followed and followed.may(user) else ""
    state = (documents.mark(user), arrivals.names(user), arrivals.wait(user), folder_mark)
    return blake2b(repr(state).encode("utf-8", "replace"), digest_size=16).hexdigest()


def too_large(file: Path, max_mb: int) -> str:
    """Why a file can't be a document that may have `max_mb` MB; "" where it can."""
    size = _size(file) / MEGABYTE
    return f"it has {size:,.1f} MB, and a document has {max_mb:,} at most; split it up" if size > max_mb else ""


def check_room(documents: Sequence[Document], new: Mapping[str, Path], limits: LimitSettings) -> None:
    """See that `new` files, by name, may be kept beside the documents there are; those of the same names go.

    Raises:
        LimitError: they are too many, or too large.
    """
    others = [document for document in documents if document.name not in new]
    count, size = len(others) + len(new), sum(map(_size, [*(document.original for document in others), *new.values()]))
    if limits.max_documents and count > limits.max_documents:
        raise LimitError(
            f"You may keep {limits.max_documents:,} documents, and with these there would be {count:,}; "
            "remove some, or add fewer."
        )
    if limits.max_documents_mb and size > limits.max_documents_mb * MEGABYTE:
        raise LimitError(
            f"Your documents may have {limits.max_documents_mb:,} MB together, and with these they would have "
            f"{size / MEGABYTE:,.1f} MB; remove some, or add smaller ones."
        )


def _size(file: Path | None) -> int:
    try:
        return file.stat().st_size if file else 0
    except OSError:
        return 0


def document_with(documents: Sequence[Document], key: str) -> Document | None:
    """The document of this id, if it is among these."""
    return next((document for document in documents if document.id == key), None)


def file_field() -> gr.File:
    """The field for files. It gives the path of each with the name that it had.

    Gradio's own gives the paths alone, with names that lack "!" and other characters, so that two would become one.
    """
    field = gr.File(
        label="Add documents",
        file_count="multiple",
        file_types=list(READABLE_SUFFIXES),
        height=150,
        elem_id="files",
        render=False,
    )
    gradio_preprocess = field.preprocess

    def preprocess(payload: ListFiles | None) -> list[tuple[str, str]]:
        paths = gradio_preprocess(payload) or []
        return [(str(path), upload.orig_name or "") for path, upload in zip(paths, payload or [], strict=True)]

    field.preprocess = preprocess  # type: ignore[method-assign, assignment]
    return field


def file_name(text: str) -> str:
    """A name that a file can have on every system, made of what is readable in a text."""
    readable = "".join(char if char.isalnum() or char in "-_., " else " " for char in text)
    return " ".join(readable.encode()[:NAME_BYTES].decode("utf-8", "ignore").split()).strip(". ") or "text"


def _moved_uploads(files: Sequence[Path], names: Sequence[str], folder: Path) -> tuple[list[Path], list[str]]:
    """The uploaded files, moved to a folder of their own, and a sentence for each that is not there.

    Gradio keeps what two people upload under one path where the content is the same.
    """
    moved, problems = [], []
    for n, (file, name) in enumerate(zip(files, names, strict=True)):
        target = folder / str(n) / (Path(name.replace("\\", "/").replace("\0", "")).name or file.name)
        target.parent.mkdir()
        try:
            moved.append(Path(shutil.move(file, target)))
        except OSError:
            problems.append(f"{file.name}: it did not arrive; choose it again.")
    return moved, problems


def _note(added: int, replaced: int) -> str:
    """What became of the files of an upload, such as "Documents: 2 added, 1 replaced."; "" where nothing did."""
    counts = [f"{count} {verb}" for count, verb in ((added, "added"), (replaced, "replaced")) if count > 0]
    return f"Documents: {', '.join(counts)}." if counts else ""
