"""A user's own password and the end of the account, both at the end of the settings."""

from __future__ import annotations

import logging
import math
import time
from datetime import datetime
from threading import Lock

from assistant.errors import SettingsError
from assistant.store.users import DEFAULT_USER, MIN_PASSWORD_CHARS, strength
from assistant.upkeep.accounts import Accounts
from assistant.web import render
from assistant.web.folder import FollowedFolder
from assistant.web.live import live, place
from assistant.web.logins import FREE_TRIES, Failures
from assistant.web.opening import Opening
from assistant.web.panel import PiecePanel
from assistant.web.tab import Tab, Updates, on
from assistant.web.view import View

_LOG = logging.getLogger(__name__)
STRENGTHS = {
    2: "It will do; another word makes it stronger.",
    3: "This is a good password.",
    4: "This is a strong password.",
}


class AccountPanel(PiecePanel):
    """The panel and its handlers."""

    name, title = "settings", "Settings"

    def __init__(self, view: View, accounts: Accounts, followed: FollowedFolder | None = None) -> None:
        super().__init__(view, "account", "renew", "remove")
        self._strength = live("strength", "rate")
        self._accounts, self._followed = accounts, followed
        self._failures, self._lock = Failures(FREE_TRIES, time.monotonic), Lock()

    def place(self) -> None:
        """Place the forms, and what is shown in the midst of them without drawing them anew."""
        place(self._piece, self._strength)

    def wire(self, opening: Opening) -> None:
        """Listen, and show the forms when the page opens."""
        self._listen()
        on(self._strength, "rate", self.rate, [self._strength], self._view.pieces.notice, aside=True)
        opening.fill([self._piece], self._opened)

    def _opened(self, user: str) -> Updates:
        """The forms, and after a log-in a word of the one before, so that people notice who else has their password."""
        updates, logins = self._updates(user), self._accounts.last_logins(user)
        if not logins or not logins.new:
            return updates
        renewed = " The password has changed since then." if logins.renewed else ""
        return {**updates, **self._view.note(f"Your log-in before this one: {_spoken(logins.before)}.{renewed}")}

    def renew(self, tab: Tab) -> Updates:
        """Take another password, which ends all log-ins with the old one, this tab's too.

        Whoever sits at a tab that somebody left open guesses the old one no faster than at the log-in.

        Raises:
            SettingsError: the old password is wrong, or the new one can't be used.
        """
        with self._lock:  # guesses made side by side don't get around the wait
            self._check(tab.user, tab.text("old"))
        self._accounts.change(tab.user, tab.text("new"))
        return self._updates(tab.user, gone=True)

    def rate(self, tab: Tab) -> Updates:
        """Tell how hard the password that is being typed is to guess."""
        password = tab.text("new")
        rated = strength(password, tab.user)
        text = rated.refusal or STRENGTHS[rated.score]
        return {self._strength: render.render("strength", score=rated.score, text=text if password else "")}

    def _check(self, user: str, password: str) -> None:
        if wait := math.ceil(self._failures.wait(user)):
            raise SettingsError(f"No password is tried for {wait} s, since too many wrong ones came; try again then.")
        if not self._accounts.knows(user, password):
            self._failures.note(user)
            raise SettingsError("This is not your password; nothing was changed.")
        self._failures.forget(user)

    def _updates(self, user: str, gone: bool = False) -> Updates:
        logins = self._accounts.last_logins(user)
        html = render.render(
            "account",
            word=confirmation(user),
            login=self._accounts.has_login(user),
            gone=gone,
            shortest=MIN_PASSWORD_CHARS,
            last=_spoken(logins.last) if logins else "",
            before=_spoken(logins.before) if logins else "",
            renewed=bool(logins and logins.renewed),
        )
        return {self._piece: html}

    def remove(self, tab: Tab) -> Updates:
        """Delete all that is the user's own, once the user has typed so; what is being written for them stops first.

        Raises:
            SettingsError: something else was typed.
        """
        word = confirmation(tab.user)
        if tab.text("word").strip() != word:
            raise SettingsError(f"Nothing was deleted; type “{word}” into the field first.")
        self._view.runs.end(tab.user)
        if self._followed and self._followed.may(tab.user):
            self._followed.choose(tab.user, "")
        if note := self._accounts.delete(tab.user):
            _LOG.warning("%s", note)
        return self._updates(tab.user, gone=True)


def _spoken(moment: datetime) -> str:
    """A moment by this computer's clock."""
    return f"{render.day(moment)}, {moment.astimezone():%H:%M}"


def confirmation(user: str) -> str:
    """What a user types who is sure."""
    return user if user != DEFAULT_USER else "delete"
