"""Access tokens for a person's programs: shown once, stored as hashes, and revoked one by one.

A token is 256 random bits, which nobody guesses; so SHA-256 is enough of a hash, where passwords need a slow one.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from sqlalchemy import Column, Engine, MetaData, String, Table, delete, insert, select, update

from assistant.errors import SettingsError
from assistant.store.shared import database_time
from assistant.store.users import MAX_NAME_CHARS
from assistant.types import new_id

MAX_LABEL_CHARS = 100
PREFIX = "sequitur"

TABLES = MetaData()
_TOKENS = Table(
    "tokens",
    TABLES,
    Column("id", String(32), primary_key=True),
    Column("user", String(MAX_NAME_CHARS), nullable=False, index=True),
    Column("label", String(MAX_LABEL_CHARS), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("created", String(40), nullable=False),
    Column("used", String(40), nullable=False),
)


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token without its secret. `used` is "" if it was never used; times are ISO 8601, in UTC."""

    id: str
    label: str
    created: str
    used: str


class AccessTokens:
    """All users' tokens. Safe to use from several threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def make(self, user: str, label: str = "") -> str:
        """A new token of this user, which can't be shown again.

        Raises:
            SettingsError: the label is too long.
        """
        if len(label) > MAX_LABEL_CHARS:
            raise SettingsError(f"The label of a token has {MAX_LABEL_CHARS} characters at most; shorten it.")
        id_ = new_id()
        token = f"{PREFIX}-{id_}-{secrets.token_urlsafe(32)}"
        row = {"id": id_, "user": user, "label": label, "hash": _hashed(token)}
        with self._engine.begin() as connection:
            connection.execute(insert(_TOKENS).values(**row, created=database_time(connection).isoformat(), used=""))
        return token

    def list(self, user: str) -> list[AccessToken]:
        """The user's tokens, the oldest first."""
        columns = (_TOKENS.c.id, _TOKENS.c.label, _TOKENS.c.created, _TOKENS.c.used)
        query = select(*columns).where(_TOKENS.c.user == user).order_by(_TOKENS.c.created)
        with self._engine.connect() as connection:
            return [AccessToken(*row) for row in connection.execute(query)]

    def revoke(self, user: str, token_id: str) -> None:
        """Revoke this token.

        Raises:
            SettingsError: the user has no such token.
        """
        with self._engine.begin() as connection:
            own_token = (_TOKENS.c.user == user) & (_TOKENS.c.id == token_id)
            deleted_count = connection.execute(delete(_TOKENS).where(own_token)).rowcount
        if not deleted_count:
            raise SettingsError(
                f"'{user}' has no token '{token_id}'; `users token {user} --list` shows which there are."
            )

    def revoke_all(self, user: str) -> None:
        """Revoke all tokens of this user."""
        with self._engine.begin() as connection:
            connection.execute(delete(_TOKENS).where(_TOKENS.c.user == user))

    def user(self, token: str) -> str:
        """The user whose token this is, "" if it is nobody's; its use is recorded."""
        _, _, id_and_secret = token.partition("-")
        id_, _, _ = id_and_secret.partition("-")
        with self._engine.begin() as connection:
            row = connection.execute(select(_TOKENS.c.user, _TOKENS.c.hash).where(_TOKENS.c.id == id_)).first()
            if not hmac.compare_digest(row.hash if row else "", _hashed(token)) or row is None:
                return ""
            used = database_time(connection).isoformat()
            connection.execute(update(_TOKENS).where(_TOKENS.c.id == id_).values(used=used))
        return str(row.user)


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
