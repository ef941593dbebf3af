"""What happens in the facts panel: adding, editing, switching, deleting, and facts in and out as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gradio as gr

from assistant.errors import FactError, StoreError
from assistant.web import remembering
from assistant.web.chat import ChatHandlers
from assistant.web.live import place
from assistant.web.opening import Opening
from assistant.web.tab import QUIET, Tab, Updates, guarded, on, user_of
from assistant.web.view import View
from ptkb.store import ImportReport

# All facts that a user can have, each of the longest: what is larger is none of ours.
FILE_BYTES = 4_000_000


class FactPanel:
    """The panel and its handlers.

    What changes here shows in the replies, too: each says what became of the facts it rests on.
    """

    name, title = "facts", "My facts"

    def __init__(self, view: View, chat_handlers: ChatHandlers) -> None:
        self._view, self._ptkb, self._chat_handlers = view, view.ptkb, chat_handlers
        self._upload = gr.UploadButton(
            "Import facts (.txt, .json)", file_types=[".txt", ".json"], elem_id="bring", render=False
        )

    def place(self) -> None:
        """Place the facts, and the button beneath them."""
        place(self._view.pieces.facts, self._upload)

    def wire(self, _opening: Opening) -> None:
        """Listen."""
        pieces = self._view.pieces
        outputs = [pieces.facts, pieces.transcript, pieces.answering]
        for event in ("store", "edit", "switch", "drop"):
            on(pieces.facts, event, getattr(self, event), outputs, pieces.notice)
        on(pieces.facts, "export", self.export, [pieces.download], pieces.notice)

        def bring(path: str | None, request: gr.Request) -> Updates:
            return guarded(lambda: self.bring(Tab(user_of(request)), path), pieces.notice)

        self._upload.upload(bring, self._upload, [pieces.facts, pieces.notice], **QUIET)

    def store(self, tab: Tab) -> Updates:
        """Store a new fact."""
        return self._apply(tab, lambda: self._ptkb.add(tab.user, tab.text("text")))

    def edit(self, tab: Tab) -> Updates:
        """Change a fact's text."""
        return self._apply(tab, lambda: self._ptkb.edit(tab.user, tab.text("fact"), tab.text("text")))

    def switch(self, tab: Tab) -> Updates:
        """Let turns use a fact, or not."""
        return self._apply(tab, lambda: self._ptkb.switch(tab.user, tab.text("fact"), tab.data.get("on") is True))

    def drop(self, tab: Tab) -> Updates:
        """Delete a fact."""
        conversations = self._view.conversations
        return self._apply(tab, lambda: remembering.forget(self._ptkb, conversations, tab.user, tab.text("fact")))

    def export(self, tab: Tab) -> Updates:
        """The facts as a file: text, one a line, or JSON with everything that is known of them."""
        if tab.text("kind") == "json":
            return self._view.save("facts.json", self._ptkb.export_json(tab.user))
        return self._view.save("facts.txt", self._ptkb.export_text(tab.user))

    def bring(self, tab: Tab, path: str | None) -> Updates:
        """Add the facts of a file, and say how many; what could not be added is named.

        Raises:
            FactError: there is no file, or it is no text or too long.
        """
        if path is None:
            raise FactError("There is no file; choose one.")
        file = Path(path)
        try:
            if file.stat().st_size > FILE_BYTES:
                raise FactError(f"{file.name} is larger than {FILE_BYTES:,} bytes; split it up, and import its parts.")
            text = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise FactError(f"{file.name} is not a text in UTF-8; save it as such and try again.") from error
        add = self._ptkb.import_json if file.suffix.lower() == ".json" else self._ptkb.import_text
        report = add(tab.user, text)
        return {**self._view.facts(tab, None), **self._view.note(_summary(report))}

    def _apply(self, tab: Tab, change: Callable[[], object]) -> Updates:
        change()
        facts = self._view.facts(tab, self._view.looked(tab))
        try:
            return {**facts, **self._chat_handlers.replies(tab)}
        except StoreError:  # the conversation was deleted meanwhile
            return facts


def _summary(report: ImportReport) -> str:
    summary = f"{len(report.added)} fact{'s' if len(report.added) != 1 else ''} added."
    if not report.skipped:
        return summary
    first_skipped = report.skipped[0]
    return (
        f"{summary} {len(report.skipped)} left out; the first is number {first_skipped.number}: {first_skipped.reason}"
    )
