"""Logins for pages that other computers reach: salted scrypt hashes, compared in constant time.

scrypt as in RFC 7914, with the costs that OWASP's password storage guide gives for it (N = 2^14, r = 8, p = 5: 16 MiB
and about 0.2 s a check).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import unicodedata
from collections.abc import Mapping

from sqlalchemy import Column, Engine, MetaData, String, Table, delete, select

from assistant.errors import SettingsError
from assistant.store.database import put
from assistant.store.shared import time_of

COST, BLOCK, LANES = 2**14, 8, 5
_KEY_BYTES = 32
SHORTEST, LONGEST = 8, 1000
LONGEST_NAME = 64
DECOMPOSED = 4  # characters that a letter may have before it is composed
ME = "me"  # the one user of a page without logins
MOST_ADDRESSES = 20  # from which a user is known to have logged in
# Of zxcvbn's four: a password of this one takes a million guesses at least, which nobody gets who has to wait for each.
STRENGTH = 2
LOOKED_AT = 72  # characters of a password; zxcvbn takes longer and longer for more

TABLES = MetaData()
_USERS = Table(
    "users",
    TABLES,
    Column("name", String(LONGEST_NAME), primary_key=True),
    Column("hash", String(300), nullable=False),
    Column("created", String(40), nullable=False),
)
_ADDRESSES = Table(
    "known_addresses",
    TABLES,
    Column("name", String(LONGEST_NAME), primary_key=True),
    Column("address", String(64), primary_key=True),
    Column("last", String(40), nullable=False),
)


class Logins:
    """Who may log in: the users of the database and those of the settings (`configured`: name to hash).

    Guesses are slowed down by whoever asks for the checks. Safe to use from several threads.

    Raises:
        SettingsError: a configured hash was not made by `hash_password`.
    """

    def __init__(self, engine: Engine, configured: Mapping[str, str] | None = None) -> None:
        self.engine = engine
        self._configured = {kept_name(name): kept for name, kept in (configured or {}).items()}
        # of a name that nobody has, so that its check takes as long; it is of no password
        self._nobody = _written(secrets.token_bytes(16), secrets.token_bytes(_KEY_BYTES))
        for name, kept in self._configured.items():
            _check_configured(name, kept)

    def names(self) -> list[str]:
        """All who may log in, sorted."""
        return sorted(self.hashes())

    def users(self) -> list[str]:
        """Whom the page serves: all who may log in, or `ME` where nobody needs to."""
        return self.names() or [ME]

    def hashes(self) -> dict[str, str]:
        """The hash of each user's password, by name: another one where the password was changed."""
        with self.engine.connect() as connection:
            stored = connection.execute(select(_USERS.c.name, _USERS.c.hash)).all()
        return {**{user.name: user.hash for user in stored}, **self._configured}

    def add(self, name: str, password: str) -> str:
        """Let a user log in, or change a user's password. Returns the name as it is kept (NFC).

        Raises:
            SettingsError: the name or the password can't be used.
        """
        name = checked_name(name)
        kept = hash_password(checked_password(password, name))
        if name in self._configured:
            raise SettingsError(f"The password of '{name}' stands in the settings (web.logins); change it there.")
        with self.engine.begin() as connection:
            put(connection, _USERS, {"name": name, "created": time_of(connection).isoformat()}, hash=kept)
        return name

    def remove(self, name: str) -> None:
        """Let a user log in no more, and end their log-ins; their conversations and facts stay.

        Raises:
            SettingsError: there is no such user, or one of the settings, which only a person changes.
        """
        name = kept_name(name)
        with self.engine.begin() as connection:
            gone = connection.execute(delete(_USERS).where(_USERS.c.name == name)).rowcount
            connection.execute(delete(_ADDRESSES).where(_ADDRESSES.c.name == name))
        if name in self._configured:
            raise SettingsError(f"'{name}' stands in the settings (web.logins); remove the line there.")
        if not gone:
            raise SettingsError(f"There is no user '{name}'; `users list` shows who there is.")

    def check(self, name: str, password: str) -> bool:
        """Whether the password is the user's. An unknown name takes as long as a wrong password."""
        name = kept_name(name)
        return 1 <= len(name) <= LONGEST_NAME and verify(password, self.hash_of(name) or self._nobody)

    def meet(self, name: str, address: str) -> None:
        """Note that the user has logged in from this address; of each user the last `MOST_ADDRESSES` are known."""
        name = kept_name(name)
        mine = _ADDRESSES.c.name == name
        newest = select(_ADDRESSES.c.address).where(mine).order_by(_ADDRESSES.c.last.desc()).limit(MOST_ADDRESSES)
        with self.engine.begin() as connection:
            put(connection, _ADDRESSES, {"name": name, "address": address}, last=time_of(connection).isoformat())
            kept = connection.scalars(newest).all()
            connection.execute(delete(_ADDRESSES).where(mine, _ADDRESSES.c.address.not_in(kept)))

    def has_met(self, name: str, address: str) -> bool:
        """Whether the user has logged in from this address before."""
        name = kept_name(name)
        if not _is_name(name):
            return False
        met = select(_ADDRESSES.c.name).where(_ADDRESSES.c.name == name, _ADDRESSES.c.address == address)
        with self.engine.connect() as connection:
            return connection.scalar(met) is not None

    def hash_of(self, name: str) -> str | None:
        """The hash of a user's password, which changes with it; None where nobody is called so."""
        if name in self._configured:
            return self._configured[name]
        if not _is_name(name):
            return None
        with self.engine.connect() as connection:
            return connection.scalar(select(_USERS.c.hash).where(_USERS.c.name == name))


def hash_password(password: str) -> str:
    """`scrypt$N$r$p$salt$key` with a new random salt; salt and key in base64."""
    salt = secrets.token_bytes(16)
    return _written(salt, _derive(password, salt, COST, BLOCK, LANES))


def verify(password: str, kept: str) -> bool:
    """Whether `hash_password` made `kept` of this password.

    Raises:
        ValueError: `kept` is no such hash.
    """
    if len(password) > LONGEST or not _is_text(password):
        return False
    costs, salt, derived = _parse(kept)
    return hmac.compare_digest(_derive(password, salt, *costs), derived)


def kept_name(name: str) -> str:
    """`name` in Unicode's composed form (NFC), however the keyboard of the computer wrote it.

    "", which nobody is called, where it is too long for a name: to compose a text takes a time that grows with the
    square of its length, so that the length comes first.
    """
    return unicodedata.normalize("NFC", name) if len(name) <= DECOMPOSED * LONGEST_NAME else ""


def checked_name(name: str) -> str:
    """The name as it is kept.

    Raises:
        SettingsError: it is empty, longer than 64 characters, or has spaces or control characters.
    """
    name = kept_name(name)
    if not 1 <= len(name) <= LONGEST_NAME or any(unicodedata.category(char)[0] in "CZ" for char in name):
        raise SettingsError(f"A user's name has 1 to {LONGEST_NAME} characters, without spaces or control characters.")
    return name


def checked_password(password: str, name: str = "") -> str:
    """`password` itself.

    Raises:
        SettingsError: it is too short or too long, or easily guessed, as what people often choose or the `name` is.
    """
    if not SHORTEST <= len(password) <= LONGEST or not _is_text(password):
        raise SettingsError(f"A password has {SHORTEST} to {LONGEST} characters; choose another.")
    from zxcvbn import zxcvbn  # noqa: PLC0415 - its lists of words take a moment, and logging in needs none of them

    found = zxcvbn(password[:LOOKED_AT], user_inputs=[name] if name else [], max_length=LOOKED_AT)
    if found["score"] < STRENGTH:
        why = found["feedback"]["warning"].rstrip(".") or "It is easy to guess"
        raise SettingsError(f"This password is too weak ({why}); take three or four words that nobody puts together.")
    return password


def _written(salt: bytes, derived: bytes) -> str:
    return "$".join(("scrypt", str(COST), str(BLOCK), str(LANES), _base64(salt), _base64(derived)))


def _derive(password: str, salt: bytes, cost: int, block: int, lanes: int) -> bytes:
    secret = unicodedata.normalize("NFKC", password).encode()
    return hashlib.scrypt(secret, salt=salt, n=cost, r=block, p=lanes, maxmem=2**28, dklen=_KEY_BYTES)


def _parse(kept: str) -> tuple[tuple[int, int, int], bytes, bytes]:
    name, *costs, salt, derived = kept.split("$")
    cost, block, lanes = map(int, costs)
    bounded = 2**10 <= cost <= 2**17 and cost.bit_count() == 1 and 1 <= block <= 16 and 1 <= lanes <= 16
    if name != "scrypt" or not bounded:
        raise ValueError("not a hash of this program")
    return (cost, block, lanes), base64.b64decode(salt, validate=True), base64.b64decode(derived, validate=True)


def _check_configured(name: str, kept: str) -> None:
    try:
        checked_name(name)
        _parse(kept)
    except (ValueError, binascii.Error) as error:
        raise SettingsError(f"The hash of '{name}' in web.logins is not one that `users hash` prints.") from error


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _is_text(text: str) -> bool:
    return not any(unicodedata.category(char) == "Cs" for char in text)


def _is_name(text: str) -> bool:
    """Whether it can be looked for; a database holds neither lone surrogates nor NUL."""
    return _is_text(text) and "\0" not in text
