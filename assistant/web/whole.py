"""The form for work on whole documents: what it takes is told first, and what comes out is a reply as any other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import cast, get_args

from assistant.errors import LibraryError
from assistant.library.shelves import own_library
from assistant.llm.models import Models
from assistant.settings import Settings
from assistant.types import Work, WorkKind
from assistant.web import render
from assistant.web.chat import ChatHandlers
from assistant.web.library import OwnDocuments
from assistant.web.opening import Opening
from assistant.web.panel import PiecePanel
from assistant.web.tab import Tab, Updates, on, on_stream
from assistant.web.view import View
from assistant.whole.documents import named_work, read_documents
from assistant.whole.plan import check
from assistant.whole.speed import cost_sentence as cost_of
from assistant.whole.work import title


class WholeWork(PiecePanel):
    """The form beneath the documents, and its handlers."""

    name, title = "documents", "Documents"

    def __init__(
        self, view: View, chat_handlers: ChatHandlers, documents: OwnDocuments, models: Models, settings: Settings
    ) -> None:
        super().__init__(view, "whole", "plan", "work")
        self._chat_handlers, self._documents, self._models, self._settings = chat_handlers, documents, models, settings

    def wire(self, opening: Opening) -> None:
        """Listen; the form follows the list of documents."""
        notice = self._view.pieces.notice

        opening.fill([self._piece], partial(self.show, kept=True), after=self._view.pieces.documents)
        on(self._piece, "plan", self.plan, [self._piece], notice)
        on_stream(self._piece, "work", self.work, [*self._chat_handlers.shown, self._piece], notice)

    def show(self, user: str, work: Work | None = None, cost: str = "", *, kept: bool = False) -> Updates:
        """The form for the user's documents; with a `work`, what that takes, and the button that begins it.

        Where it is `kept`, what is shown of a work stays.
        """
        documents = self._documents.list(user)
        return {self._piece: render.render("whole", documents=documents, work=work, cost=cost, kept=kept)}

    def plan(self, tab: Tab) -> Updates:
        """Tell what a piece of work takes.

        Raises:
            LibraryError: it can't be done as it is asked for; the message says why.
        """
        work = self._work_of(tab)
        running = self._models.running
        passages = read_documents(work, own_library(tab.user), self._settings)
        engine = running.engine if running else None
        return self.show(tab.user, work, f"{title(work)}: {cost_of(work, passages, engine, self._settings)}")

    async def work(self, tab: Tab) -> AsyncIterator[Updates]:
        """Begin the work; what comes out is a reply at the end of the conversation."""
        work = await asyncio.to_thread(self._work_of, tab)
        yield await asyncio.to_thread(self.show, tab.user)
        async for updates in self._chat_handlers.work(tab, work):
            yield updates

    def _work_of(self, tab: Tab) -> Work:
        task = tab.text("task")
        if task not in get_args(WorkKind):
            raise LibraryError("This can't be done with documents any more; reload the page to see what can.")
        other_names = [tab.text("other")] if task in {"compare", "changes"} else []
        names = [tab.text("document"), *filter(None, other_names)]  # the form has no second one where there is but one
        columns = (
            [column for part in tab.text("columns").split(",") if (column := part.strip())] if task == "table" else []
        )
        work = named_work(cast("WorkKind", task), names, columns, own_library(tab.user), self._settings)
        check(work)
        return work
