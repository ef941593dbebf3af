"""Changes a user's password; deletes an account with login, tokens, facts, conversations, choices and documents."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Engine

from assistant.errors import SettingsError, StoreError
from assistant.library.shelves import is_library, library_folder, locked, own_library, remove_own
from assistant.library.watched import stop_following
from assistant.settings import Settings
from assistant.store.conversations import Conversations
from assistant.store.database import shrink
from assistant.store.sessions import Sessions
from assistant.store.tokens import AccessTokens
from assistant.store.usage import Usage
from assistant.store.users import DEFAULT_USER, LastLogins, Logins, composed_name
from ptkb.store import Ptkb

LOCK_SECONDS = 10.0  # seconds for which a reading of the user's documents may go on


@dataclass(frozen=True, slots=True)
class Account:
    """What a user has: numbers of things, and whether there is a login, a choice of the page, and any document."""

    facts: int
    conversations: int
    tokens: int
    login: bool
    choices: bool
    documents: bool

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.facts or self.conversations or self.tokens or self.login or self.choices or self.documents)


class Accounts:
    """All users' accounts."""

    def __init__(self, settings: Settings, engine: Engine, conversations: Conversations | None = None) -> None:
        """`conversations` are those that the page is built on, which holds the temporary ones.

        Raises:
            SettingsError: a login in the settings is malformed.
        """
        self._settings, self._engine = settings, engine
        self._logins = Logins(engine, settings.web.logins)
        self._conversations = conversations or Conversations(engine)
        self._sessions = Sessions(engine, self._logins)
        self._ptkb, self._tokens, self._usage = Ptkb(engine), AccessTokens(engine), Usage(engine)

    def of(self, user: str) -> Account:
        """What this user has."""
        user = composed_name(user)
        return Account(
            facts=len(self._ptkb.facts(user)),
            conversations=len(self._conversations.list(user)),
            tokens=len(self._tokens.list(user)),
            login=user in self._logins.names(),
            choices=bool(self._conversations.preferences(user)),
            documents=is_library(library_folder(own_library(user), self._settings)),
        )

    def has_login(self, user: str) -> bool:
        """Whether this user logs in with a password."""
        return self._logins.hash_of(composed_name(user)) is not None

    def knows(self, user: str, password: str) -> bool:
        """Whether the password is this user's."""
        return self._logins.check(user, password)

    def last_logins(self, user: str) -> LastLogins | None:
        """When this user logged in last and before that; None where there were not two log-ins yet."""
        return self._logins.last_logins(user)

    def change(self, user: str, password: str) -> None:
        """Another password for a user who has one; log-ins with the old one end.

        Raises:
            SettingsError: the user has none, or it stands in the settings, or the new one can't be used.
        """
        if not self.has_login(user):
            raise SettingsError(f"There is no login '{user}'; `users list` shows which there are.")
        self._logins.add(user, password)

    def delete(self, user: str) -> str:
        """Delete all that is this user's own. Returns what a person should know all the same, or "".

        The login goes first, so that nobody enters what is deleted in part, but not before the documents can go.
        What fails midway can be done again by the operator: what is left is deleted then.

        Raises:
            SettingsError: there is no such user, or one of the settings, which only a person changes.
            SequiturError: documents of the user are being read, or something can't be written.
        """
        user = composed_name(user)
        if not self.of(user):
            raise SettingsError(f"There is no user '{user}'; `users list` shows who there is.")
        with locked(library_folder(own_library(user), self._settings), LOCK_SECONDS):
            if user in self._logins.names():
                self._logins.remove(user)
            self._sessions.end(user)
            self._tokens.revoke_all(user)
            remove_own(user, self._settings)
            if user == DEFAULT_USER:
                stop_following(self._settings)
        self._ptkb.remove_all(user)
        self._conversations.remove_all(user)
        self._usage.remove(user)
        try:
            shrink(self._engine)
        except StoreError as error:
            return f"Words of theirs may lie in unused parts of the database's file until it is written to: {error}"
        return ""
