"""The sources panel: what a reply was read from. It is filled by those who show a conversation or a turn of it.

A source that stands in a document of the user's opens that with the cited sentence marked: of a PDF the picture of the
page, of all others the text.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from assistant.errors import LibraryError
from assistant.types import Passage, Turn, new_id
from assistant.web import render
from assistant.web.cited import in_documents
from assistant.web.library import OwnDocuments
from assistant.web.live import place
from assistant.web.opening import Opening
from assistant.web.original import OpenedDocument, open_document
from assistant.web.tab import Tab, Updates, on_stream
from assistant.web.view import View

SOURCE_GONE = "This source is not shown any more; reload the page."


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage in its document: the words to mark, its citation's place or -1, and those before and after, or None."""

    turn: Turn
    passage: Passage
    quote: str
    cite: int = -1
    before: int | None = None
    after: int | None = None


class SourcePanel:
    """The panel, and the document that it opens."""

    name, title = "sources", "Sources"

    def __init__(self, view: View, documents: OwnDocuments) -> None:
        self._view, self._documents = view, documents

    def place(self) -> None:
        """Place its piece."""
        place(self._view.pieces.sources)

    def wire(self, _opening: Opening) -> None:
        """Listen. A document is asked for by a source, and by the citation before or after it."""
        pieces = self._view.pieces
        for piece in (pieces.sources, pieces.viewer):
            on_stream(piece, "show_original", self.open, [pieces.viewer], pieces.notice)

    async def open(self, tab: Tab) -> AsyncIterator[Updates]:
        """Show that a document is being opened, then its page or text, or a sentence that says why there is none.

        Raises:
            LibraryError: the source is none that stands in a document of the user's.
        """
        shown = await asyncio.to_thread(self._shown_passage, tab)
        yield {self._view.pieces.viewer: _rendered(shown)}
        document = await asyncio.to_thread(self._opened_document, tab.user, shown)
        yield {self._view.pieces.viewer: _rendered(shown, document)}

    def _shown_passage(self, tab: Tab) -> ShownPassage:
        turn = self._view.turn(tab, tab.text("turn"))
        passage = (
            next((passage for passage in turn.passages if passage.id == tab.text("passage")), None) if turn else None
        )
        if turn is None or passage is None or not passage.own:
            raise LibraryError(SOURCE_GONE)
        positions, cited_position = in_documents(turn), tab.text("citation")
        for order, position in enumerate(positions):
            if cited_position == str(position):
                before, after = (positions[order - 1] if order else None), next(iter(positions[order + 1 :]), None)
                return ShownPassage(turn, passage, turn.citations[position].quote, position, before, after)
        return ShownPassage(turn, passage, passage.text)

    def _opened_document(self, user: str, shown: ShownPassage) -> OpenedDocument:
        return open_document(self._documents.list(user), shown.passage, shown.quote)


def _rendered(shown: ShownPassage, document: OpenedDocument | None = None) -> str:
    return render.render("viewer", shown=shown, opened=document, nonce=new_id())
