"""A quiet line above the box: a larger model that this computer would run, fetched with one click, and how far that is.

Who doesn't want it closes the line; the browser remembers which model was not wanted (`js/offer.js`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import gradio as gr

from assistant.web import render
from assistant.web.live import live, place
from assistant.web.switching import Switcher
from assistant.web.tab import QUIET, Tab, Updates, on_stream, told, user_of
from assistant.web.view import View


class OfferLine:
    """The line and its handlers; it is empty for those who can't choose the model."""

    def __init__(self, view: View, switcher: Switcher) -> None:
        self._view, self._switcher, self._models = view, switcher, switcher.models
        self._piece = live("offer", "see", "use", "halt")

    def place(self) -> None:
        """Place the line."""
        place(self._piece)

    def wire(self, page: gr.Blocks) -> None:
        """Listen; the line is there when the page opens, and looked at anew when `Models.mark` is another one."""
        for event in ("see", "use", "halt"):
            on_stream(self._piece, event, getattr(self, event), [self._piece], self._view.pieces.notice)

        def show(request: gr.Request) -> Updates:
            return told(lambda: self._shown(user_of(request)), self._view.pieces.notice)

        show.__annotations__ = {"request": gr.Request}
        page.load(show, None, [self._piece, self._view.pieces.notice], **QUIET)

    async def see(self, tab: Tab) -> AsyncIterator[Updates]:
        """Show the line, and what is being fetched to its end."""
        async for updates in self._switcher.followed(lambda: self._shown(tab.user)):
            yield updates

    async def use(self, tab: Tab) -> AsyncIterator[Updates]:
        """Fetch the model that is offered, and let it answer as soon as it is there."""
        await asyncio.to_thread(self._switcher.to, tab.user, tab.text("model"))
        async for updates in self.see(tab):
            yield updates
        yield self._switcher.outcome(tab.text("model"), self._view)

    async def halt(self, tab: Tab) -> AsyncIterator[Updates]:
        """Stop what is being fetched."""
        self._switcher.halt(tab.user)
        async for updates in self.see(tab):
            yield updates

    def _shown(self, user: str) -> Updates:
        models, may = self._models, self._switcher.may(user)
        fetching, change = models.fetching.state, models.change
        html = render.render(
            "offer",
            mark=models.mark,
            fetching=fetching if may and fetching.under_way else None,
            loading=change if may and change and change.is_going_on and change.known.id == fetching.name else None,
            offer=models.offer if may else None,
        )
        return {self._piece: html}
