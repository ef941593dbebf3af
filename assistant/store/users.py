"""Logins for pages that other computers reach: salted scrypt hashes, compared in constant time.

scrypt as in RFC 7914, with the costs that OWASP's password storage guide gives for it (N = 2^14, r = 8, p = 5: 16 MiB
and about 0.2 s a check).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Boolean, Column, Engine, MetaData, String, Table, delete, select

from assistant.errors import SettingsError
from assistant.store.database import upsert
from assistant.store.shared import database_time

COST, BLOCK, LANES = 2**14, 8, 5
_KEY_BYTES = 32
MIN_PASSWORD_CHARS, MAX_PASSWORD_CHARS = 12, 1000  # of those that are chosen; who has a shorter one still logs in
MAX_NAME_CHARS = 64
MAX_CHARS_PER_LETTER = 4  # characters that a letter may have before it is composed
DEFAULT_USER = "me"  # the one user of a page without logins
MAX_ADDRESSES = 20  # from which a user is known to have logged in
NEWS_SECONDS = 120.0  # seconds after a log-in in which the page, as it opens, tells when the one before was
# Of zxcvbn's four: a password of this one takes a million guesses at least, which nobody gets who has to wait for each.
MIN_STRENGTH = 2
# Of a password; for 24 signs that may stand for letters zxcvbn takes 0.1 s, for 72 of them 3 s.
ASSESSED_CHARS = 24

TABLES = MetaData()
_USERS = Table(
    "users",
    TABLES,
    Column("name", String(MAX_NAME_CHARS), primary_key=True),
    Column("hash", String(300), nullable=False),
    Column("created", String(40), nullable=False),
)
_ADDRESSES = Table(
    "known_addresses",
    TABLES,
    Column("name", String(MAX_NAME_CHARS), primary_key=True),
    Column("address", String(64), primary_key=True),
    Column("last", String(40), nullable=False),
)
_LAST_LOGINS = Table(
    "last_logins",
    TABLES,
    Column("name", String(MAX_NAME_CHARS), primary_key=True),
    Column("last", String(40), nullable=False),
    Column("password", String(64), nullable=False),  # a hash of the hash that the password had then
    Column("before", String(40), nullable=False),  # when the log-in before that was; "" where there was none
    Column("renewed", Boolean, nullable=False),  # whether the password was another one then
)


@dataclass(frozen=True, slots=True)
class Strength:
    """How hard a password is to guess: zxcvbn's 0 to 4, and in a sentence why nobody can have it, "" where one can."""

    score: int
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class LastLogins:
    """When a user logged in last and the time before that, and whether the password has changed between them.

    `new`: the last one was within the last `NEWS_SECONDS`.
    """

    last: datetime
    before: datetime
    renewed: bool
    new: bool


class Logins:
    """Who may log in: the users of the database and those of the settings (`configured`: name to hash).

    Guesses are slowed down by whoever asks for the checks. Safe to use from several threads.

    Raises:
        SettingsError: a configured hash was not made by `hash_password`.
    """

    def __init__(self, engine: Engine, configured: Mapping[str, str] | None = None) -> None:
        self.engine = engine
        self._configured = {composed_name(name): password_hash for name, password_hash in (configured or {}).items()}
        # of a name that nobody has, so that its check takes as long; it is of no password
        self._dummy_hash = _encoded_hash(secrets.token_bytes(16), secrets.token_bytes(_KEY_BYTES))
        for name, password_hash in self._configured.items():
            _check_configured(name, password_hash)

    def names(self) -> list[str]:
        """All who may log in, sorted."""
        return sorted(self.hashes())

    def users(self) -> list[str]:
        """Whom the page serves: all who may log in, or `DEFAULT_USER` where nobody needs to."""
        return self.names() or [DEFAULT_USER]

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
        password_hash = hash_password(checked_password(password, name))
        if name in self._configured:
            raise SettingsError(f"The password of '{name}' stands in the settings (web.logins); change it there.")
        with self.engine.begin() as connection:
            upsert(
                connection, _USERS, {"name": name, "created": database_time(connection).isoformat()}, hash=password_hash
            )
        return name

    def remove(self, name: str) -> None:
        """Let a user log in no more, and end their log-ins; their conversations and facts stay.

        Raises:
            SettingsError: there is no such user, or one of the settings, which only a person changes.
        """
        name = composed_name(name)
        with self.engine.begin() as connection:
            deleted_count = connection.execute(delete(_USERS).where(_USERS.c.name == name)).rowcount
            for table in (_ADDRESSES, _LAST_LOGINS):
                connection.execute(delete(table).where(table.c.name == name))
        if name in self._configured:
            raise SettingsError(f"'{name}' stands in the settings (web.logins); remove the line there.")
        if not deleted_count:
            raise SettingsError(f"There is no user '{name}'; `users list` shows who there is.")

    def check(self, name: str, password: str) -> bool:
        """Whether the password is the user's. An unknown name takes as long as a wrong password."""
        name = composed_name(name)
        return 1 <= len(name) <= MAX_NAME_CHARS and verify(password, self.hash_of(name) or self._dummy_hash)

    def note_login(self, name: str, address: str) -> None:
        """Note that the user logs in now, from this address; of each user the last `MAX_ADDRESSES` are known."""
        name = composed_name(name)
        password = digest(self.hash_of(name) or "")
        of_user = _ADDRESSES.c.name == name
        newest = select(_ADDRESSES.c.address).where(of_user).order_by(_ADDRESSES.c.last.desc()).limit(MAX_ADDRESSES)
        with self.engine.begin() as connection:
            moment = database_time(connection).isoformat()
            upsert(connection, _ADDRESSES, {"name": name, "address": address}, last=moment)
            newest_addresses = connection.scalars(newest).all()
            connection.execute(delete(_ADDRESSES).where(of_user, _ADDRESSES.c.address.not_in(newest_addresses)))
            former = connection.execute(select(_LAST_LOGINS).where(_LAST_LOGINS.c.name == name)).first()
            upsert(
                connection,
                _LAST_LOGINS,
                {"name": name},
                last=moment,
                password=password,
                before=former.last if former else "",
                renewed=former is not None and former.password != password,
            )

    def last_logins(self, name: str) -> LastLogins | None:
        """When the user logged in last and before that; None where there were not two log-ins yet."""
        with self.engine.connect() as connection:
            row = connection.execute(select(_LAST_LOGINS).where(_LAST_LOGINS.c.name == name)).first()
            if not row or not row.before:
                return None
            last, before = datetime.fromisoformat(row.last), datetime.fromisoformat(row.before)
            seconds = (database_time(connection) - last).total_seconds()
        return LastLogins(last, before, row.renewed, new=seconds < NEWS_SECONDS)

    def knows_address(self, name: str, address: str) -> bool:
        """Whether the user has logged in from this address before."""
        name = composed_name(name)
        if not _is_name(name):
            return False
        query = select(_ADDRESSES.c.name).where(_ADDRESSES.c.name == name, _ADDRESSES.c.address == address)
        with self.engine.connect() as connection:
            return connection.scalar(query) is not None

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
    return _encoded_hash(salt, _derive(password, salt, COST, BLOCK, LANES))


def verify(password: str, password_hash: str) -> bool:
    """Whether `hash_password` made `password_hash` of this password.

    Raises:
        ValueError: `password_hash` is no such hash.
    """
    if len(password) > MAX_PASSWORD_CHARS or not _is_text(password):
        return False
    costs, salt, derived = _parse(password_hash)
    return hmac.compare_digest(_derive(password, salt, *costs), derived)


def digest(secret: str) -> str:
    """A hash by which a secret of many bits, or the hash of a password, is known again."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def composed_name(name: str) -> str:
    """`name` in Unicode's composed form (NFC), however the keyboard of the computer wrote it.

    "", which nobody is called, where it is too long for a name: to compose a text takes a time that grows with the
    square of its length, so that the length comes first.
    """
    return unicodedata.normalize("NFC", name) if len(name) <= MAX_CHARS_PER_LETTER * MAX_NAME_CHARS else ""


def checked_name(name: str) -> str:
    """The name as it is kept.

    Raises:
        SettingsError: it is empty, longer than 64 characters, or has spaces or control characters.
    """
    name = composed_name(name)
    if not 1 <= len(name) <= MAX_NAME_CHARS or any(unicodedata.category(char)[0] in "CZ" for char in name):
        raise SettingsError(
            f"A user's name has 1 to {MAX_NAME_CHARS} characters, without spaces or control characters."
        )
    return name


def checked_password(password: str, name: str = "") -> str:
    """`password` itself.

    Raises:
        SettingsError: it is too short or too long, or easily guessed, as what people often choose or the `name` is.
    """
    if refusal := strength(password, name).refusal:
        raise SettingsError(refusal)
    return password


def strength(password: str, name: str = "") -> Strength:
    """How hard a password is to guess that a user of this `name` would take."""
    is_long_enough = len(re.sub(" +", " ", password[: MAX_PASSWORD_CHARS + 1])) >= MIN_PASSWORD_CHARS
    if not is_long_enough or len(password) > MAX_PASSWORD_CHARS or not _is_text(password):
        return Strength(
            0,
            f"A password has {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS:,} characters, of which several spaces in a "
            "row count as one; choose another.",
        )
    from zxcvbn import zxcvbn  # noqa: PLC0415 - its lists of words take a moment, and logging in needs none of them

    assessment = zxcvbn(password[:ASSESSED_CHARS], user_inputs=[name] if name else [], max_length=ASSESSED_CHARS)
    if assessment["score"] >= MIN_STRENGTH:
        return Strength(assessment["score"])
    warning = assessment["feedback"]["warning"].rstrip(".") or "It is easy to guess"
    return Strength(
        assessment["score"],
        f"This password is too weak ({warning}); take three or four words that nobody puts together.",
    )


def _encoded_hash(salt: bytes, derived: bytes) -> str:
    return "$".join(("scrypt", str(COST), str(BLOCK), str(LANES), _base64(salt), _base64(derived)))


def _derive(password: str, salt: bytes, cost: int, block: int, lanes: int) -> bytes:
    secret = unicodedata.normalize("NFKC", password).encode()
    return hashlib.scrypt(secret, salt=salt, n=cost, r=block, p=lanes, maxmem=2**28, dklen=_KEY_BYTES)


def _parse(password_hash: str) -> tuple[tuple[int, int, int], bytes, bytes]:
    name, *costs, salt, derived = password_hash.split("$")
    cost, block, lanes = map(int, costs)
    bounded = 2**10 <= cost <= 2**17 and cost.bit_count() == 1 and 1 <= block <= 16 and 1 <= lanes <= 16
    if name != "scrypt" or not bounded:
        raise ValueError("not a hash of this program")
    return (cost, block, lanes), base64.b64decode(salt, validate=True), base64.b64decode(derived, validate=True)


def _check_configured(name: str, password_hash: str) -> None:
    try:
        checked_name(name)
        _parse(password_hash)
    except (ValueError, binascii.Error) as error:
        raise SettingsError(f"The hash of '{name}' in web.logins is not one that `users hash` prints.") from error


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _is_text(text: str) -> bool:
    return not any(unicodedata.category(char) == "Cs" for char in text)


def _is_name(text: str) -> bool:
    """Whether it can be looked for; a database holds neither lone surrogates nor NUL."""
    return _is_text(text) and "\0" not in text
