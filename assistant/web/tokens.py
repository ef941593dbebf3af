"""Tokens for a user's own programs: made, shown once, revoked. They stand beneath the settings."""

from __future__ import annotations

from assistant.store.tokens import AccessTokens
from assistant.web import render
from assistant.web.opening import Opening
from assistant.web.panel import PiecePanel
from assistant.web.tab import Tab, Updates
from assistant.web.view import View


class TokenPanel(PiecePanel):
    """The panel and its handlers."""

    name, title = "settings", "Settings"

    def __init__(self, view: View, tokens: AccessTokens) -> None:
        super().__init__(view, "tokens", "make", "revoke")
        self._tokens = tokens

    def wire(self, opening: Opening) -> None:
        """Listen, and list the user's tokens when the page opens."""
        self._listen()
        opening.fill([self._piece], self._updates)

    def make(self, tab: Tab) -> Updates:
        """A new token, shown this once."""
        return self._updates(tab.user, self._tokens.make(tab.user, tab.text("label").strip()))

    def revoke(self, tab: Tab) -> Updates:
        """Let nobody in by a token any more."""
        self._tokens.revoke(tab.user, tab.text("token"))
        return self._updates(tab.user)

    def _updates(self, user: str, fresh: str = "") -> Updates:
        return {self._piece: render.render("tokens", tokens=self._tokens.list(user), fresh=fresh)}
