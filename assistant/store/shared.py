"""State that several processes on one database share: who answers in which conversation, and wrong passwords.

Times are the database's own, so that it does not matter whose clock is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from socket import gethostname
from typing import Any

import psutil
from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Float,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from assistant.errors import BusyError, StoreError
from assistant.store.database import upsert
from assistant.store.migrate import is_outdated
from assistant.types import new_id, now

# Seconds without a sign of life after which an answering process counts as dead, and its answer as stopped. A process
# that no longer runs on this computer counts as dead at once.
MAX_SILENT_SECONDS = 20.0
MAX_COUNTED_KEYS = 10_000  # names and addresses for which wrong passwords are counted
BUSY = "An answer is being written in this conversation; wait for it or stop it first."
OUTDATED = (
    "A newer version of Sequitur uses this database now, so this one answers no more; nothing you wrote is lost: start "
    "it again with the new version, or reload the page in a minute."
)

TABLES = MetaData()
_ANSWERING = Table(
    "answering",
    TABLES,
    Column("user", String(200), primary_key=True),
    Column("conversation", String(32), primary_key=True, index=True),
    Column("process", String(32), nullable=False),
    Column("place", String(255), nullable=False),  # host, number and beginning of the process: see `process_address`
    Column("seen", Float, nullable=False),  # seconds since 1970, as all times here
    Column("stop", Boolean, nullable=False),
)
_WRONG = Table(
    "wrong_passwords",
    TABLES,
    Column("key", String(64), primary_key=True),
    Column("count", Integer, nullable=False),
    Column("until", Float, nullable=False, index=True),
)


def process_id() -> str:
    """The unique id of this process; a forked process gets another one."""
    return _identity(os.getpid())[0]


def process_address() -> str:
    """How others on this computer find this process: host, number, and its start in seconds since the computer's.

    Not when it began: that is told by the clock, so that a clock that is set would make it another process.
    """
    return _identity(os.getpid())[1]


@lru_cache(maxsize=1)
def _identity(pid: int) -> tuple[str, str]:
    return new_id(), f"{gethostname()[:200]} {pid} {_began(psutil.Process(pid))}"


def _began(process: psutil.Process) -> float:
    """The start of a process, in seconds since the computer's start."""
    return float(process.create_time() - psutil.boot_time())


class Leases:
    """Which conversations are being answered by which living process."""

    def __init__(self, engine: Engine, by: str = "", at: str = "") -> None:
        """`by` and `at` are the id and the address of a process, by default of this one."""
        self._engine, self._process, self._place = engine, by or process_id(), at or process_address()

    def begin(self, user: str, conversation: str) -> int:
        """Record that this process answers here; return how many answers are being written for the user, this included.

        Raises:
            BusyError: one is being written in this conversation already.
            StoreError: the database is of a newer version of the program by now.
        """
        with self._engine.begin() as connection:
            _refuse_newer(connection)
            _lock_user(connection, user)
            moment, of_user = database_seconds(connection), _ANSWERING.c.user == user
            dead = [row for row in connection.execute(select(_ANSWERING).where(of_user)) if _dead(row, moment)]
            for lease in dead:  # of its process alone: with SQLite a living one may have begun here meanwhile
                is_lease = (_ANSWERING.c.conversation == lease.conversation) & (_ANSWERING.c.process == lease.process)
                connection.execute(delete(_ANSWERING).where(of_user, is_lease))
            row = {"conversation": conversation, "user": user, "process": self._process, "place": self._place}
            try:
                connection.execute(insert(_ANSWERING).values(**row, seen=moment, stop=False))
            except IntegrityError as error:
                raise BusyError(BUSY) from error
            return connection.scalar(select(func.count()).where(of_user)) or 0

    def check(self) -> None:
        """Check whether this process may write an answer that is not stored.

        Raises:
            StoreError: the database is of a newer version of the program by now.
        """
        with self._engine.connect() as connection:
            _refuse_newer(connection)

    @property
    def outdated(self) -> bool:
        """Whether a newer version of the program has migrated the database."""
        with self._engine.connect() as connection:
            return is_outdated(connection)

    def is_elsewhere(self, conversation: str) -> bool:
        """Whether another process answers here."""
        with self._engine.connect() as connection:
            return answered_by(connection, conversation) not in {"", self._process}

    def end(self, user: str, conversation: str) -> None:
        """Record that the answer is finished."""
        with self._engine.begin() as connection:
            connection.execute(delete(_ANSWERING).where(self._of_this_process, _of_conversation(user, conversation)))

    def stop(self, user: str, conversation: str) -> None:
        """Ask the process that answers here to stop, which learns of it at its next `heartbeat`."""
        with self._engine.begin() as connection:
            connection.execute(update(_ANSWERING).where(_of_conversation(user, conversation)).values(stop=True))

    def heartbeat(self) -> set[tuple[str, str]]:
        """Give a sign of life. Returns where this process was asked to stop, as pairs of user and conversation."""
        query = select(_ANSWERING.c.user, _ANSWERING.c.conversation).where(self._of_this_process, _ANSWERING.c.stop)
        with self._engine.begin() as connection:
            connection.execute(
                update(_ANSWERING).where(self._of_this_process).values(seen=database_seconds(connection))
            )
            return {(row.user, row.conversation) for row in connection.execute(query)}

    @property
    def _of_this_process(self) -> ColumnElement[bool]:
        return _ANSWERING.c.process == self._process


def _refuse_newer(connection: Connection) -> None:
    if is_outdated(connection):
        raise StoreError(OUTDATED)


def _lock_user(connection: Connection, user: str) -> None:
    """Let no other process begin an answer for this user before the transaction ends, so that both are counted.

    SQLite has one writer at a time anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"answering {user}", 0))))


def _of_conversation(user: str, conversation: str) -> ColumnElement[bool]:
    return (_ANSWERING.c.user == user) & (_ANSWERING.c.conversation == conversation)


def answered_by(connection: Connection, conversation: str) -> str:
    """The process that answers in a conversation now, or ""."""
    row = connection.execute(select(_ANSWERING).where(_ANSWERING.c.conversation == conversation)).first()
    return "" if row is None or _dead(row, database_seconds(connection)) else str(row.process)


def _dead(row: Row[Any], moment: float) -> bool:
    """Whether the process in a row of `answering` is dead."""
    if row.seen < moment - MAX_SILENT_SECONDS:
        return True
    host, pid, began = row.place.rsplit(" ", 2)
    if host != process_address().rsplit(" ", 2)[0]:
        return False
    try:
        candidate = psutil.Process(int(pid))
        return candidate.status() == psutil.STATUS_ZOMBIE or abs(_began(candidate) - float(began)) > 1
    except psutil.Error:
        return True


class WrongPasswords:
    """Numbers of wrong passwords in a row, by key; names and addresses are stored only as hashes."""

    def __init__(self, engine: Engine, kind: str, wait: Callable[[int], float]) -> None:
        """`kind` separates these numbers from others; `wait` gives the seconds to wait after so many failures."""
        self._engine, self._kind, self._wait = engine, kind, wait

    def wait(self, key: object) -> float:
        """Seconds until the next try is allowed; 0 if it is now."""
        with self._engine.connect() as connection:
            until: float | None = connection.scalar(select(_WRONG.c.until).where(_WRONG.c.key == self._hashed(key)))
            return max(until - database_seconds(connection), 0.0) if until else 0.0

    def note(self, key: object) -> None:
        """Count one more wrong password."""
        with self._engine.begin() as connection:
            moment, of_key = database_seconds(connection), _WRONG.c.key == self._hashed(key)
            upsert(connection, _WRONG, {"key": self._hashed(key), "count": 0}, until=moment)  # holds the row for this
            connection.execute(update(_WRONG).where(of_key).values(count=_WRONG.c.count + 1))
            count = connection.scalar(select(_WRONG.c.count).where(of_key)) or 1
            connection.execute(update(_WRONG).where(of_key).values(until=moment + self._wait(count)))
            oldest = select(_WRONG.c.key).order_by(_WRONG.c.until.desc()).offset(MAX_COUNTED_KEYS)
            connection.execute(delete(_WRONG).where(_WRONG.c.key.in_(connection.scalars(oldest).all())))

    def forget(self, key: object) -> None:
        """Reset the number after the right password."""
        with self._engine.begin() as connection:
            connection.execute(delete(_WRONG).where(_WRONG.c.key == self._hashed(key)))

    def _hashed(self, key: object) -> str:
        return sha256(repr((self._kind, key)).encode("utf-8", "replace")).hexdigest()


def database_seconds(connection: Connection) -> float:
    """Seconds since 1970 by the clock of the database."""
    postgres = connection.dialect.name == "postgresql"
    clock = "extract(epoch FROM clock_timestamp())" if postgres else "(julianday('now') - 2440587.5) * 86400.0"
    return float(connection.scalar(select(literal_column(clock))) or 0.0)


def database_time(connection: Connection) -> datetime:
    """Now, in UTC, by the clock of the database, for what people read and for what is sorted."""
    if connection.dialect.name == "sqlite":  # a file goes by this computer's clock, which tells finer parts of a second
        return now()
    return datetime.fromtimestamp(database_seconds(connection), UTC)
