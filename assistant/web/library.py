"""What happens in the documents panel: adding files to the user's own library, listing and removing them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Protocol

import gradio as gr

from assistant.errors import LibraryError, LimitError
from assistant.library.arrivals import Arrivals
from assistant.library.readers import suffixes
from assistant.protocols import Progress
from assistant.settings import LimitSettings, Settings
from assistant.web import render
from assistant.web.bodies import MEGABYTE
from assistant.web.live import place
from assistant.web.tab import QUIET, Tab, Updates, guarded, on, told, user_of
from assistant.web.view import View

UNCHANGED = "it was there already and has not changed"
# Gradio knows files by the last of their endings.
READ = tuple(sorted({Path(suffix).suffix or suffix for suffix in suffixes()}))


@dataclass(frozen=True, slots=True)
class Document:
    """A file of a library, and how many passages it was cut into. `original` is the copy that is kept of it, if any.

    It was read `by_ocr` where it has only pictures of its pages.
    """

    id: str
    name: str
    passages: int
    original: Path | None = None
    by_ocr: bool = False


class Documents(Protocol):
    """Each user's own library."""

    def list(self, user: str) -> Sequence[Document]:
        """The user's documents, by name."""
        ...

    def add(self, user: str, files: Sequence[Path], progress: Progress, stop: Event) -> Sequence[str]:
        """Index files. Returns a sentence for each that was not added, with the reason; the others are.

        Once `stop` is set, no more of them are read.

        Raises:
            LimitError: they are more than this user may keep; none is added.
        """
        ...

    def remove(self, user: str, document: str) -> None:
        """Take a document and its passages out."""
        ...


class OwnDocuments:
    """The `Documents` that answers are found in: a Lucene index for each user."""

    def __init__(self, settings: Settings, changed: Callable[[str], object] = lambda _user: None) -> None:
        """`changed` is called with the user whose documents did."""
        self._settings, self._changed = settings, changed

    def list(self, user: str) -> Sequence[Document]:
        """As the Protocol has it."""
        from assistant.library.index import list_documents, originals_of  # noqa: PLC0415 - imports Lucene's Python

        kept, found = originals_of(self._own(user), self._settings), list_documents(self._own(user), self._settings)
        return [Document(one.id, one.name, one.passages, kept.path(one.hash), one.by_ocr) for one in found]

    def add(self, user: str, files: Sequence[Path], progress: Progress, stop: Event) -> Sequence[str]:
        """As the Protocol has it."""
        from assistant.library.index import add_documents  # noqa: PLC0415

        check_room(self.list(user), files, self._settings.limits)
        outcomes = add_documents(self._own(user), files, self._settings, progress, uploaded=True, stop=stop)
        self._changed(user)
        left = [one for one in outcomes if one.status in {"skipped", "unchanged"}]
        return [f"{one.name}: {one.reason or UNCHANGED}" for one in left]

    def remove(self, user: str, document: str) -> None:
        """As the Protocol has it."""
        from assistant.library.index import remove_documents  # noqa: PLC0415

        for outcome in remove_documents(self._own(user), [document], self._settings):
            if outcome.status == "skipped":
                raise LibraryError("There is no such document; it may have been removed meanwhile.")
        self._changed(user)

    def _own(self, user: str) -> str:
        from assistant.library.shelves import own_library  # noqa: PLC0415

        return own_library(user)


class Library:
    """The panel and its handlers."""

    name, title = "documents", "Documents"

    def __init__(self, view: View, documents: Documents, arrivals: Arrivals) -> None:
        self._view, self._documents, self._arrivals = view, documents, arrivals
        self._readings: dict[str, Event] = {}  # of each user whose documents are being read, what stops that
        self._upload = gr.File(
            label="Add documents",
            file_count="multiple",
            file_types=list(READ),
            height=150,
            elem_id="files",
            render=False,
        )

    def place(self) -> None:
        """Place the field for files, and the documents beneath it."""
        place(self._upload, self._view.pieces.documents)

    def wire(self, page: gr.Blocks) -> None:
        """Listen."""
        pieces = self._view.pieces
        on(pieces.documents, "drop", self.drop, [pieces.documents], pieces.notice)
        on(pieces.documents, "halt", self.halt, [], pieces.notice)

        def show(request: gr.Request) -> Updates:
            return told(lambda: self.show(user_of(request)), pieces.notice)

        def bring(files: list[str] | None, request: gr.Request, progress: gr.Progress) -> Iterator[Updates]:
            user, tell = user_of(request), _teller(progress)
            given = [Path(file) for file in files or []]
            yield told(lambda: self.show(user, reading=True), pieces.notice)
            outcome = guarded(lambda: self.bring(user, given, tell), pieces.notice)
            yield {self._upload: None, **told(lambda: self.show(user), pieces.notice), **outcome}

        show.__annotations__ = {"request": gr.Request}
        bring.__annotations__ = {"files": list[str], "request": gr.Request, "progress": gr.Progress}
        bring.__defaults__ = (gr.Progress(),)
        page.load(show, None, [pieces.documents, pieces.notice], **QUIET)
        outputs = [self._upload, pieces.documents, pieces.notice]
        self._upload.upload(
            bring, self._upload, outputs, **{**QUIET, "show_progress": "full", "show_progress_on": self._upload}
        )

    def show(self, user: str, problems: Sequence[str] = (), reading: bool = False) -> Updates:
        """The user's documents, what went wrong with the last ones, and whether others are being read."""
        reading = reading or user in self._readings
        html = render.render("documents", documents=self._documents.list(user), problems=problems, reading=reading)
        return {self._view.pieces.documents: html}

    def bring(self, user: str, files: Sequence[Path], progress: Progress) -> Updates:
        """Add files, say how many are new, and why each that was not added wasn't. The uploaded copies are deleted.

        Raises:
            LibraryError: other documents of this user are still being read.
        """
        with self._reading(user) as stop, self._arrivals.of(user, progress) as tell, TemporaryDirectory() as folder:
            own, problems = _taken(files, Path(folder))
            before = {document.id for document in self._documents.list(user)}
            problems += self._documents.add(user, own, tell, stop) if own else []
        new = sum(document.id not in before for document in self._documents.list(user))
        note = _note(new, len(files) - len(problems) - new)
        return {**self.show(user, problems), **(self._view.note(note) if note else {})}

    def halt(self, tab: Tab) -> Updates:
        """Stop the reading of the user's documents; those that were read already are added."""
        stop = self._readings.get(tab.user)
        if stop:
            stop.set()
        return {}

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

    def drop(self, tab: Tab) -> Updates:
        """Take a document out."""
        self._documents.remove(tab.user, tab.text("document"))
        return self.show(tab.user)


def check_room(kept: Sequence[Document], files: Sequence[Path], limits: LimitSettings) -> None:
    """See that these files may be kept beside the documents that there are, of which those of the same names go.

    Raises:
        LimitError: they are too many, or too large.
    """
    new = {file.name: file for file in files}
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


def _taken(files: Sequence[Path], folder: Path) -> tuple[list[Path], list[str]]:
    """The uploaded files, moved to a folder of their own, and a sentence for each that is not there.

    Gradio keeps what two people upload under one path where the content is the same.
    """
    taken, problems = [], []
    for n, file in enumerate(files):
        place = folder / str(n) / file.name
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


def _teller(progress: gr.Progress) -> Progress:
    def tell(done: int, total: int) -> None:
        progress((done, max(total, 1)), desc="Reading", unit="documents")

    return tell
