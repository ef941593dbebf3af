"""Collections of a user's documents, search of them without the model, and what each was used for."""

from __future__ import annotations

from dataclasses import dataclass

from assistant.library.collections import MARK, collections, make, put, remove
from assistant.library.finding import SearchHit, citing_turns, find
from assistant.library.shelves import own_library
from assistant.settings import Settings
from assistant.web import render
from assistant.web.library import OwnDocuments
from assistant.web.opening import Opening
from assistant.web.panel import PiecePanel
from assistant.web.tab import Tab, Updates
from assistant.web.view import View


@dataclass(frozen=True, slots=True)
class DocumentUse:
    """A conversation that cites a document, and the messages that it was cited for."""

    conversation: str
    title: str
    utterances: tuple[str, ...]


class CollectionPanel(PiecePanel):
    """The part of the documents' tab, and its handlers."""

    name, title = "documents", "Documents"

    def __init__(self, view: View, documents: OwnDocuments, settings: Settings) -> None:
        super().__init__(view, "collected", "find", "make", "unmake", "put", "uses")
        self._documents, self._settings = documents, settings

    def wire(self, opening: Opening) -> None:
        """Listen; the menus follow the list of documents."""
        self._listen()
        opening.fill([self._piece], self.show, after=self._view.pieces.documents)

    def show(
        self,
        user: str,
        found: list[SearchHit] | None = None,
        used: list[DocumentUse] | None = None,
        document: str = "",
    ) -> Updates:
        """Search, collections and uses: `used` cites `document`. What is shown of those that are None stays."""
        documents, own_collections = self._documents.list(user), collections(user, self._settings)
        html = render.render(
            "collected",
            documents=documents,
            names={own_document.id: own_document.name for own_document in documents},
            collections=own_collections,
            found=found,
            used=used,
            document=document,
        )
        return {self._piece: html}

    def find(self, tab: Tab) -> Updates:
        """Search the user's documents, or a collection of them.

        Raises:
            LibraryError: nothing was typed, or there is no such collection, or nothing in it.
        """
        query, name = tab.text("query"), tab.text("collection")
        library = MARK + name if name else own_library(tab.user)
        return self.show(tab.user, find(query, library, tab.user, self._settings))

    def make(self, tab: Tab) -> Updates:
        """Make a collection."""
        make(tab.user, tab.text("name").strip().removeprefix(MARK), self._settings)
        return self.show(tab.user)

    def unmake(self, tab: Tab) -> Updates:
        """Remove a collection; its documents stay."""
        remove(tab.user, tab.text("name"), self._settings)
        return self.show(tab.user)

    def put(self, tab: Tab) -> Updates:
        """Put a document into a collection, or take it out."""
        inside = tab.text("inside") != "no"
        put(tab.user, tab.text("name"), tab.text("document"), self._settings, inside=inside)
        return self.show(tab.user)

    def uses(self, tab: Tab) -> Updates:
        """Show which of the user's conversations cite a document."""
        document, store = tab.text("document"), self._view.conversations
        conversations = [store.get(tab.user, listed.id) for listed in store.list(tab.user)]
        used = [
            DocumentUse(conversation.id, conversation.title, tuple(turn.utterance for turn in turns))
            for conversation in conversations
            if (turns := citing_turns(document, conversation.turns))
        ]
        return self.show(tab.user, used=used, document=document)
