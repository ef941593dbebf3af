"""The end of a user's account, asked for by the user. It stands beneath the tokens in the settings."""

from __future__ import annotations

import logging

from assistant.errors import SettingsError
from assistant.store.users import ME
from assistant.upkeep.accounts import Accounts
from assistant.web import render
from assistant.web.live import live, place
from assistant.web.opening import Opening
from assistant.web.tab import Tab, Updates, on
from assistant.web.view import View

_LOG = logging.getLogger(__name__)


class AccountPanel:
    """The panel and its handlers."""

    name, title = "settings", "Settings"

    def __init__(self, view: View, accounts: Accounts) -> None:
        self._view, self._accounts = view, accounts
        self._piece = live("account", "remove")

    def place(self) -> None:
        """Place the form."""
        place(self._piece)

    def wire(self, opening: Opening) -> None:
        """Listen, and show the form when the page opens."""
        on(self._piece, "remove", self.remove, [self._piece], self._view.pieces.notice)

        def show(user: str) -> Updates:
            return {self._piece: render.render("account", word=confirmation(user), gone=False)}

        opening.fill([self._piece], show)

    def remove(self, tab: Tab) -> Updates:
        """Delete all that is the user's own, once the user has typed so; what is being written for them stops first.

        Raises:
            SettingsError: something else was typed.
        """
        word = confirmation(tab.user)
        if tab.text("word").strip() != word:
            raise SettingsError(f"Nothing was deleted; type “{word}” into the field first.")
        self._view.runs.end(tab.user)
        if note := self._accounts.delete(tab.user):
            _LOG.warning("%s", note)
        return {self._piece: render.render("account", word=word, gone=True)}


def confirmation(user: str) -> str:
    """What a user types who is sure."""
    return user if user != ME else "delete"
