"""What people have used of the page, for those who run it. It stands beneath the settings."""

from __future__ import annotations

from collections.abc import Callable

from assistant.store.usage import Usage
from assistant.web import render
from assistant.web.opening import Opening
from assistant.web.panel import PiecePanel
from assistant.web.tab import Updates
from assistant.web.view import View

DAYS = 30


class UsagePanel(PiecePanel):
    """The panel and its handlers."""

    name, title = "settings", "Settings"

    def __init__(self, view: View, usage: Usage, may_see: Callable[[str], bool]) -> None:
        super().__init__(view, "usage")
        self._usage, self._may_see = usage, may_see

    def wire(self, opening: Opening) -> None:
        """Show the table when the page opens, to whom it may be shown."""
        opening.fill([self._piece], self.shown)

    def shown(self, user: str) -> Updates:
        """The table, or nothing."""
        if not self._may_see(user):
            return {self._piece: ""}
        return {self._piece: render.render("usage", used=self._usage.of_all(DAYS), days=DAYS)}
