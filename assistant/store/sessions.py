"""Who is logged in, kept in the database: a log-in holds at every process on it, and after one was started again.

What a browser holds of its log-in is kept as a hash alone, so that nobody logs in with what the database has.
"""

from __future__ import annotations

from hashlib import sha256
from hmac import compare_digest

from sqlalchemy import Column, Engine, Float, MetaData, String, Table, delete, insert, select

from assistant.errors import StoreError
from assistant.store.shared import database_seconds
from assistant.store.users import MAX_NAME_CHARS, Logins, composed_name, digest

LOGIN_SECONDS = 30 * 24 * 3600.0  # seconds that a log-in lasts
MAX_USER_SESSIONS = 50  # log-ins that a user may have at once; the oldest ends then

TABLES = MetaData()
_SESSIONS = Table(
    "sessions",
    TABLES,
    Column("hash", String(64), primary_key=True),
    Column("user", String(MAX_NAME_CHARS), nullable=False, index=True),
    Column("password", String(64), nullable=False),  # a hash of the hash that the user's password had
    Column("begun", Float, nullable=False),  # seconds since 1970, by the clock of the database
)


class Sessions:
    """Users by the secrets of their browsers, in place of the mapping of which Gradio asks who is logged in.

    A log-in ends after `LOGIN_SECONDS`, when the user logs out, is removed or has another password.
    """

    def __init__(self, engine: Engine, logins: Logins) -> None:
        self._engine, self._logins = engine, logins
        self._local_sessions: dict[str, tuple[str, str]] = {}  # where the database can only be read

    @property
    def name(self) -> str:
        """What tells the log-ins of this database from those of others at the same address."""
        return sha256(self._engine.url.render_as_string(hide_password=True).encode()).hexdigest()[:16]

    def get(self, secret: str | None) -> str | None:
        """The user who is logged in with this secret, None if nobody is.

        Raises:
            StoreError: the database can't be read.
        """
        if not secret:
            return None
        user, password = self._local_sessions.get(digest(secret)) or self._stored_session(digest(secret))
        current_hash = self._logins.hash_of(user) if user else None
        return user if current_hash and compare_digest(digest(current_hash), password) else None

    def __setitem__(self, secret: str, typed: str) -> None:
        """Note that whoever holds the secret has logged in under a name, as it was typed."""
        user = composed_name(typed)
        password = digest(self._logins.hash_of(user) or "")
        try:
            self._note(digest(secret), user, password)
        except StoreError:  # one that can only be read lets users in all the same, at this process
            self._local_sessions[digest(secret)] = user, password

    def end(self, user: str) -> None:
        """Log the user out everywhere."""
        self._local_sessions = {
            secret: session for secret, session in self._local_sessions.items() if session[0] != user
        }
        with self._engine.begin() as connection:
            connection.execute(delete(_SESSIONS).where(_SESSIONS.c.user == user))

    def _stored_session(self, hashed: str) -> tuple[str, str]:
        query = select(_SESSIONS.c.user, _SESSIONS.c.password, _SESSIONS.c.begun).where(_SESSIONS.c.hash == hashed)
        with self._engine.connect() as connection:
            row = connection.execute(query).first()
            return (
                (row.user, row.password)
                if row and row.begun > database_seconds(connection) - LOGIN_SECONDS
                else ("", "")
            )

    def _note(self, hashed: str, user: str, password: str) -> None:
        of_user = _SESSIONS.c.user == user
        with self._engine.begin() as connection:
            moment = database_seconds(connection)
            row = {"hash": hashed, "user": user, "password": password, "begun": moment}
            connection.execute(insert(_SESSIONS).values(row))
            newest = select(_SESSIONS.c.hash).where(of_user).order_by(_SESSIONS.c.begun.desc()).limit(MAX_USER_SESSIONS)
            newest_hashes = connection.scalars(newest).all()
            connection.execute(delete(_SESSIONS).where(of_user, _SESSIONS.c.hash.not_in(newest_hashes)))
            connection.execute(delete(_SESSIONS).where(_SESSIONS.c.begun < moment - LOGIN_SECONDS))
