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
from typing import TYPE_CHECKING

import gradio as gr
from gradio.data_classes import ListFiles

from assistant.errors import LibraryError, LimitError, SequiturError
from assistant.library.addresses import fetched
from assistant.library.arrivals import Arrivals
from assistant.library.readers import suffixes
from assistant.protocols import Progress, silent
from assistant.settings import LimitSettings, Settings
from assistant.web import render
from assistant.web.bodies import MEGABYTE
from assistant.web.folder import Followed
from assistant.web.live import place
from assistant.web.opening import Opening
from assistant.web.tab import QUIET, Tab, Updates, guarded_stream, on, on_stream, user_of
from assistant.web.view import View

if TYPE_CHECKING:
    from assistant.library.index import Document as Indexed

# Seconds between looks at how far documents are that are being read.
LOOK = 0.4
TITLE_CHARS, PASTED_CHARS, NAME_BYTES = 200, 500_000, 100
UNCHANGED = "it was there already and has not changed"
# Gradio knows files by the last of their endings.
READ = tuple(sorted({Path(suffix).suffix or suffix for suffix in suffixes()}))


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
        from assistant.library.index import list_documents  # noqa: PLC0415 - imports Lucene's Python

        return self._shown(user, list_documents(self._own(user), self._settings))

    def mark(self, user: str) -> str:
        """Another text as soon as the user's documents are others; it takes no time to tell."""
        from assistant.library.shelves import last_change  # noqa: PLC0415

        return last_change(self._own(user), self._settings)

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
        from assistant.library.index import add_documents  # noqa: PLC0415

        called = {file: (names or {}).get(file, file.name) for file in files}
        taken, problems = [], list[str]()
        for file, name in called.items():
            problem = too_large(file, self._settings.web.max_upload_mb)
            if problem:
                problems.append(f"{name}: {problem}")
            else:
                taken.append(file)
        new = {called[file]: file for file in taken}

        def check(kept: Sequence[Indexed]) -> None:
            check_room(self._shown(user, kept), new, self._settings.limits)

        outcomes = add_documents(
            self._own(user), taken, self._settings, progress, uploaded=True, names=names, stop=stop, check=check
        )
        self._changed(user)
        left = [one for one in outcomes if one.status in {"skipped", "unchanged"}]
        return [*problems, *(f"{one.name}: {one.reason or UNCHANGED}" for one in left)]

    def remove(self, user: str, document: str) -> None:
        """Take a document and its passages out."""
        from assistant.library.index import remove_documents  # noqa: PLC0415

        for outcome in remove_documents(self._own(user), [document], self._settings):
            if outcome.status == "skipped":
                raise LibraryError("There is no such document; it may have been removed meanwhile.")
        self._changed(user)

    def _shown(self, user: str, found: Sequence[Indexed]) -> Sequence[Document]:
        from assistant.library.index import originals_of  # noqa: PLC0415

        kept = originals_of(self._own(user), self._settings)
        return [
            Document(one.id, one.name, one.passages, kept.path(one.hash), one.by_ocr, one.note, one.file)
            for one in found
        ]

    def _own(self, user: str) -> str:
        from assistant.library.shelves import own_library  # noqa: PLC0415

        return own_library(user)


class Library:
    """The panel and its handlers."""

    name, title = "documents", "Documents"

    def __init__(
        self, view: View, documents: OwnDocuments, arrivals: Arrivals, followed: Followed | None = None
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
            user, given, called = user_of(request), [Path(path) for path, _ in files or ()], [n for _, n in files or ()]
            work = self.shown(user, lambda: self.bring(user, given, silent, called))
            async for updates in guarded_stream(work, pieces.notice):
                yield {self._upload: None, **updates}

        bring.__annotations__ = {"files": list, "request": gr.Request}
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
        working = asyncio.ensure_future(asyncio.to_thread(work))
        before: Updates = {}
        while not (await asyncio.wait([working], timeout=LOOK))[0]:
            if (now := await asyncio.to_thread(self.show, user)) != before:
                yield (before := now)
        try:
            updates = {self._view.pieces.notice: "", **working.result()}
        except SequiturError as error:
            updates = {self._view.pieces.notice: render.notice(str(error)), **self.show(user)}
        yield updates

    def bring(self, user: str, files: Sequence[Path], progress: Progress, called: Sequence[str] = ()) -> Updates:
        """Add files, say how many are new, and why each that was not added wasn't. The uploaded copies are deleted.

        `called` are their names, where these aren't those of the files.

        Raises:
            LibraryError: other documents of this user are still being read.
        """
        names = called or [file.name for file in files]
        return self._bring(user, names, lambda folder: _taken(files, names, folder), progress)

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
            page = fetched(address)
            return page.address, file_name(page.file), page.content

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

        def taken(folder: Path) -> tuple[list[Path], list[str]]:
            called, file, data = content()
            names[folder / file] = called
            (folder / file).write_bytes(data)
            return list(names), []

        return self._bring(user, [name], taken, silent, names)

    def _bring(
        self,
        user: str,
        names: Sequence[str],
        taken: Callable[[Path], tuple[list[Path], list[str]]],
        progress: Progress,
        called: Mapping[Path, str] | None = None,
    ) -> Updates:
        """Add the files that `taken` brings into a folder; it also tells which are not there."""
        with (
            self._reading(user) as stop,
            self._arrivals.of(user, progress, names) as tell,
            TemporaryDirectory() as folder,
        ):
            files, problems = taken(Path(folder))
            before = {document.id for document in self._documents.list(user)}
            problems += self._documents.add(user, files, tell, stop, called) if files else []
        new = sum(document.id not in before for document in self._documents.list(user))
        note = _note(new, len(names) - len(problems) - new)
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


def mark_of(user: str, documents: OwnDocuments, arrivals: Arrivals, followed: Followed | None) -> str:
    """Another text as soon as the list of a user's documents is to be drawn anew; it tells nothing of them."""
    happened = followed.mark if followed and followed.may(user) else ""
    told = (documents.mark(user), arrivals.names(user), arrivals.wait(user), happened)
    return blake2b(repr(told).encode("utf-8", "replace"), digest_size=16).hexdigest()


def too_large(file: Path, most: int) -> str:
    """Why a file can't be a document that may have `most` MB; "" where it can."""
    size = _size(file) / MEGABYTE
    return f"it has {size:,.1f} MB, and a document has {most:,} at most; split it up" if size > most else ""


def check_room(kept: Sequence[Document], new: Mapping[str, Path], limits: LimitSettings) -> None:
    """See that `new` files, by name, may be kept beside the documents there are; those of the same names go.

    Raises:
        LimitError: they are too many, or too large.
    """
    staying = [one for one in kept if one.name not in new]
    count, size = len(staying) + len(new), sum(map(_size, [*(one.original for one in staying), *new.values()]))
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
    return next((one for one in documents if one.id == key), None)


def file_field() -> gr.File:
    """The field for files. It gives the path of each with the name that it had.

    Gradio's own gives the paths alone, with names that lack "!" and other characters, so that two would become one.
    """
    field = gr.File(
        label="Add documents",
        file_count="multiple",
        file_types=list(READ),
        height=150,
        elem_id="files",
        render=False,
    )
    plain = field.preprocess

    def preprocess(payload: ListFiles | None) -> list[tuple[str, str]]:
        paths = plain(payload) or []
        return [(str(path), sent.orig_name or "") for path, sent in zip(paths, payload or [], strict=True)]

    field.preprocess = preprocess  # type: ignore[method-assign, assignment]
    return field


def file_name(text: str) -> str:
    """A name that a file can have on every system, made of what is readable in a text."""
    kept = "".join(char if char.isalnum() or char in "-_., " else " " for char in text)
    return " ".join(kept.encode()[:NAME_BYTES].decode("utf-8", "ignore").split()).strip(". ") or "text"


def _taken(files: Sequence[Path], names: Sequence[str], folder: Path) -> tuple[list[Path], list[str]]:
    """The uploaded files, moved to a folder of their own, and a sentence for each that is not there.

    Gradio keeps what two people upload under one path where the content is the same.
    """
    taken, problems = [], []
    for n, (file, name) in enumerate(zip(files, names, strict=True)):
        place = folder / str(n) / (Path(name.replace("\\", "/").replace("\0", "")).name or file.name)
        place.parent.mkdir()
        try:
            taken.append(Path(shutil.move(file, place)))
        except OSError:
            problems.append(f"{file.name}: it did not arrive; choose it again.")
    return taken, problems


def _note(added: int, replaced: int) -> str:
    """What became of the files of an upload, such as "Documents: 2 added, 1 replaced."; "" where nothing did."""
    counts = [f"{count} {what}" for count, what in ((added, "added"), (replaced, "replaced")) if count > 0]
    return f"Documents: {', '.join(counts)}." if counts else ""
