"""A quiet line above the box: a larger model that this computer would run, fetched with one click, and how far that is.

Who doesn't want it closes the line; the browser remembers which model was not wanted (`js/offer.js`).
"""

from __future__ import annotations

from collections.abc import Callable

from assistant.web import render
from assistant.web.switching import Switcher, SwitchPiece
from assistant.web.tab import Updates
from assistant.web.view import View


class OfferLine(SwitchPiece):
    """The line and its handlers; it is empty for those who can't choose the model."""

    def __init__(self, view: View, switcher: Switcher) -> None:
        super().__init__("offer", view, switcher)

    async def _drawing(self, user: str) -> Callable[[], Updates]:
        return lambda: self._at_first(user)

    def _at_first(self, user: str) -> Updates:
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
