"""Logins for pages that other computers reach: salted scrypt hashes, compared in constant time, guessing slowed down.

scrypt as in RFC 7914, with the costs that OWASP's password storage guide gives for it (N = 2^14, r = 8, p = 5: 16 MiB
and about 0.2 s a check).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock

from sqlalchemy import Column, Engine, MetaData, String, Table, delete, insert, select, update

from assistant.errors import SettingsError
from assistant.store.database import create_tables
from assistant.types import now

COST, BLOCK, LANES = 2**14, 8, 5
SHORTEST, LONGEST = 8, 1000
LONGEST_NAME = 64
ME = "me"  # the one user of a page without logins
FREE_TRIES = 5
FIRST_WAIT, LONGEST_WAIT = 2.0, 900.0
REMEMBERED = 10_000

_METADATA = MetaData()
_USERS = Table(
    "users",
    _METADATA,
    Column("name", String(LONGEST_NAME), primary_key=True),
    Column("hash", String(300), nullable=False),
    Column("created", String(40), nullable=False),
)


@dataclass(frozen=True, slots=True)
class _Failures:
    count: int
    until: float


class Logins:
    """Who may log in: the users of the database and those of the settings (`configured`: name to hash).

    After five wrong passwords in a row a name is refused for 2 s, then 4 s, up to 15 minutes, also with the right
    password. `clock` gives seconds. Safe to use from several threads.

    Raises:
        SettingsError: a configured hash was not made by `hash_password`.
    """

    def __init__(
        self, engine: Engine, configured: Mapping[str, str] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._engine, self._clock = engine, clock
        self._configured = {kept_name(name): kept for name, kept in (configured or {}).items()}
        self._failures: dict[str, _Failures] = {}
        self._lock = Lock()
        self._nobody = hash_password(secrets.token_hex(16))
        for name, kept in self._configured.items():
            _check_configured(name, kept)
        create_tables(engine, _METADATA)

    def names(self) -> list[str]:
        """All who may log in, sorted."""
        return sorted(self.hashes())

    def users(self) -> list[str]:
        """Whom the page serves: all who may log in, or `ME` where nobody needs to."""
        return self.names() or [ME]

    def hashes(self) -> dict[str, str]:
        """The hash of each user's password, by name: another one where the password was changed."""
        with self._engine.connect() as connection:
            stored = connection.execute(select(_USERS.c.name, _USERS.c.hash)).all()
        return {**{user.name: user.hash for user in stored}, **self._configured}

    def add(self, name: str, password: str) -> str:
        """Let a user log in, or change a user's password. Returns the name as it is kept (NFC).

        Raises:
            SettingsError: the name or the password can't be used.
        """
        name, kept = checked_name(name), hash_password(checked_password(password))
        if name in self._configured:
            raise SettingsError(f"The password of '{name}' stands in the settings (web.logins); change it there.")
        with self._engine.begin() as connection:
            changed = update(_USERS).where(_USERS.c.name == name).values(hash=kept)
            if connection.execute(changed).rowcount == 0:
                connection.execute(insert(_USERS).values(name=name, hash=kept, created=now().isoformat()))
        return name

    def remove(self, name: str) -> None:
        """Let a user log in no more, and end their log-ins; their conversations and facts stay.

        Raises:
            SettingsError: there is no such user, or one of the settings, which only a person changes.
        """
        name = kept_name(name)
        with self._engine.begin() as connection:
            gone = connection.execute(delete(_USERS).where(_USERS.c.name == name)).rowcount
        if name in self._configured:
            raise SettingsError(f"'{name}' stands in the settings (web.logins); remove the line there.")
        if not gone:
            raise SettingsError(f"There is no user '{name}'; `users list` shows who there is.")

    def check(self, name: str, password: str) -> bool:
        """Whether the password is the user's. An unknown name takes as long as a wrong password."""
        name = kept_name(name)
        if len(name) > LONGEST_NAME:  # nobody's, and not to be remembered
            return False
        if self.wait(name) > 0:
            return False
        right = verify(password, self._kept(name) or self._nobody)
        with self._lock:
            if right:
                self._failures.pop(name, None)
            else:
                self._note_failure(name)
        return right

    def wait(self, name: str) -> float:
        """Seconds until the name may try again; 0 where it may now."""
        with self._lock:
            failures = self._failures.get(kept_name(name))
        return max(failures.until - self._clock(), 0.0) if failures else 0.0

    def _kept(self, name: str) -> str | None:
        if name in self._configured:
            return self._configured[name]
        if not _is_text(name):
            return None
        with self._engine.connect() as connection:
            return connection.scalar(select(_USERS.c.hash).where(_USERS.c.name == name))

    def _note_failure(self, name: str) -> None:
        before = self._failures.pop(name, None)
        count = before.count + 1 if before else 1
        wait = min(FIRST_WAIT * 2.0 ** min(count - FREE_TRIES, 20), LONGEST_WAIT) if count >= FREE_TRIES else 0.0
        self._failures[name] = _Failures(count, self._clock() + wait)
        if len(self._failures) > REMEMBERED:
            self._failures.pop(next(iter(self._failures)))


def hash_password(password: str) -> str:
    """`scrypt$N$r$p$salt$key` with a new random salt; salt and key in base64."""
    salt = secrets.token_bytes(16)
    derived = _derive(password, salt, COST, BLOCK, LANES)
    return "$".join(("scrypt", str(COST), str(BLOCK), str(LANES), _base64(salt), _base64(derived)))


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
    """`name` in Unicode's composed form (NFC), however the keyboard of the computer wrote it."""
    return unicodedata.normalize("NFC", name)


def checked_name(name: str) -> str:
    """The name as it is kept.

    Raises:
        SettingsError: it is empty, longer than 64 characters, or has spaces or control characters.
    """
    name = kept_name(name)
    if not 1 <= len(name) <= LONGEST_NAME or any(unicodedata.category(char)[0] in "CZ" for char in name):
        raise SettingsError(f"A user's name has 1 to {LONGEST_NAME} characters, without spaces or control characters.")
    return name


def checked_password(password: str) -> str:
    """`password` itself.

    Raises:
        SettingsError: it is too short or too long.
    """
    if not SHORTEST <= len(password) <= LONGEST or not _is_text(password):
        raise SettingsError(f"A password has {SHORTEST} to {LONGEST} characters; choose another.")
    return password


def _derive(password: str, salt: bytes, cost: int, block: int, lanes: int) -> bytes:
    secret = unicodedata.normalize("NFKC", password).encode()
    return hashlib.scrypt(secret, salt=salt, n=cost, r=block, p=lanes, maxmem=2**28, dklen=32)


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
