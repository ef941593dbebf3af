"""The database under conversations, facts and logins: one SQLAlchemy engine, of SQLite or PostgreSQL.

Every error of the database driver leaves the engine as a `StoreError` that says what to do, so that the stores above
need not know any driver. Each write is one transaction: what fails changes nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, MetaData, Table, create_engine, event, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.engine.default import DefaultExecutionContext
from sqlalchemy.exc import ArgumentError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import PoolProxiedConnection, QueuePool

from assistant.errors import SettingsError, StoreError, disk_errors_as
from assistant.store.error_advice import DAMAGED, advice
from assistant.store.migrate import migrate

BUSY_SECONDS = 10  # for which a database that another program writes to, or that is far away, is waited for
# Seconds after which a server that has disappeared, with its computer or a cable, is given up; operating systems wait
# for a quarter of an hour.
_TIMEOUTS = {
    "connect_timeout": BUSY_SECONDS,
    "tcp_user_timeout": BUSY_SECONDS * 1000,
    "keepalives_idle": BUSY_SECONDS // 2,
    "keepalives_interval": 1,
    "keepalives_count": BUSY_SECONDS // 2,
}


def connect(url: str) -> Engine:
    """An engine for `url` that many threads may share, with the tables of this version of the program.

    Raises:
        SettingsError: `url` is not a SQLAlchemy URL, or its driver is not installed.
        StoreError: the database can't be opened or read, or was written by a newer version of the program.
    """
    parsed = _parse(url)
    engine = _open_engine(parsed)
    try:
        if _is_file(parsed):
            _write_ahead(engine)
        migrate(engine, _name(parsed))
    except BaseException:
        engine.dispose()  # or it would count as a program that uses the database
        raise
    return engine


def in_memory(tables: MetaData) -> Engine:
    """An engine with these tables in the memory of this process only."""
    engine = _open_engine(make_url("sqlite://"))
    tables.create_all(engine)
    return engine


def _open_engine(url: URL) -> Engine:
    engine = _sqlite(url) if url.get_backend_name() == "sqlite" else _postgres(url)
    event.listen(engine, "handle_error", _explain)
    return engine


def upsert(connection: Connection, table: Table, key: Mapping[str, Any], **values: Any) -> None:
    """Insert a row, or update the one with the same key; several processes may do so at once."""
    statement = (
        (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(table).values(**key, **values)
    )
    connection.execute(statement.on_conflict_do_update(index_elements=table.primary_key, set_=values))


def is_postgres(url: str) -> bool:
    """Whether this is the URL of a PostgreSQL database.

    Raises:
        SettingsError: `url` is not a SQLAlchemy URL.
    """
    return _parse(url).get_backend_name() == "postgresql"


def database_file(url: str) -> Path | None:
    """The file of a SQLite database, None for any other.

    Raises:
        SettingsError: `url` is not a SQLAlchemy URL.
    """
    parsed = _parse(url)
    has_path = _is_file(parsed) and not str(parsed.database).startswith("file:")
    return Path(str(parsed.database)) if has_path else None


def snapshot(url: str, file: Path) -> None:
    """Copy a SQLite database, as it is at one moment, to a new file; others may write to the database meanwhile.

    Raises:
        StoreError: it can't be opened, is damaged, or the copy can't be written.
    """
    engine = connect(url)
    name = _name(engine.url)
    try:
        with engine.connect() as connection, closing(sqlite3.connect(file)) as copy:
            connection.connection.dbapi_connection.backup(copy)  # type: ignore[union-attr]
            is_sound = copy.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.Error as error:
        raise StoreError(f"The copy of the database {name} {advice(error)}.") from error
    finally:
        engine.dispose()
    if not is_sound:
        raise StoreError(f"The database {name} {DAMAGED}.")


def open_sound(url: str) -> Engine | None:
    """An engine for a SQLite database, None where there is no file, or one that this program can't use.

    That is one that is damaged, or of a newer version of the program.

    Raises:
        SettingsError: as `connect` does.
    """
    file = database_file(url)
    if file is None or not file.exists():
        return None
    try:
        engine = connect(url)
    except StoreError:
        return None
    if not _is_sound(engine):
        engine.dispose()
        return None
    return engine


def _is_sound(engine: Engine) -> bool:
    try:
        with engine.connect() as connection:
            return bool(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar() == "ok")
    except StoreError:
        return False


def shrink(engine: Engine) -> None:
    """Remove deleted data from the file of a SQLite database, where it remains until its space is reused.

    Raises:
        StoreError: the disk has no room for a second copy, or another program is writing.
    """
    if engine.url.get_backend_name() == "sqlite":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def exclusive_lock(file: Path) -> Iterator[None]:
    """Lock a SQLite file, if there is one, against all other programs, with its write-ahead log merged into it.

    Raises:
        StoreError: a program has it open.
    """
    if not file.exists():
        yield
        return
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as connection:
        try:
            # Only the last connection can end write-ahead logging, and idle connections of a program count.
            connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise StoreError(
                    f"The database {file} is in use; end every program of Sequitur that uses it and try again."
                ) from error
            raise StoreError(f"The database {file} {advice(error)}.") from error
        except sqlite3.DatabaseError:
            pass  # what is damaged is nobody's
        yield


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise SettingsError(
            "The setting 'database' is not a SQLAlchemy URL such as sqlite:////home/me/sequitur.sqlite3."
        ) from error
    if parsed.get_backend_name() in {"postgres", "postgresql"}:
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "sqlite":
        raise SettingsError(f"The setting 'database' names '{parsed.drivername}'; use sqlite or postgresql.")
    return parsed


def _postgres(url: URL) -> Engine:
    try:
        # A server that was restarted has closed the pooled connections, so that each is tried first.
        engine = create_engine(
            url, poolclass=_Pool, pool_timeout=BUSY_SECONDS, pool_pre_ping=True, connect_args=_TIMEOUTS
        )
    except ImportError as error:
        raise SettingsError(
            f"The database {_name(url)} needs a driver: run `pip install -r requirements-postgres.txt`."
        ) from error
    event.listen(engine, "connect", _wait_for_disk)
    return engine


def _wait_for_disk(connection: Any, _record: Any) -> None:
    """Have each commit of this connection wait for the disk, where the server's settings don't."""
    # any other value waits at least for the disk of this server, and may ask for more, which is left as it is
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
    )
    connection.commit()


def _sqlite(url: URL) -> Engine:
    # A database in memory belongs to its connection, so that all threads share one.
    sharing = {} if _is_file(url) else {"pool_size": 1, "max_overflow": 0}
    if _is_file(url):
        _make_folder(Path(str(url.database)))
    arguments = {"timeout": BUSY_SECONDS, "check_same_thread": False}
    engine = create_engine(url, poolclass=_Pool, pool_timeout=BUSY_SECONDS, connect_args=arguments, **sharing)
    event.listen(engine, "connect", _set_up)
    if _is_file(url) and not str(url.database).startswith("file:"):
        _FileIdentity(Path(str(url.database))).watch(engine)
    return engine


class _Pool(QueuePool):
    """A connection pool that says in a sentence if no connection becomes free in time, for which there is no event."""

    def connect(self) -> PoolProxiedConnection:
        """A connection, held until it is returned."""
        try:
            return super().connect()
        except PoolTimeoutError as error:
            raise StoreError("The database is busy with other requests; try again in a moment.") from error


class _FileIdentity:
    """The path of a SQLite file, and its identity.

    A file that was moved, deleted or replaced goes on taking what is written to it, on a disk where nobody finds it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._identity: tuple[int, int] | None = None

    def watch(self, engine: Engine) -> None:
        """Refuse to write if the file was moved or replaced, or to create an empty file in its place."""
        event.listen(engine, "do_connect", lambda *_: self._check())
        event.listen(engine, "connect", lambda *_: self._note())
        event.listen(engine, "before_cursor_execute", self._write)

    def _note(self) -> None:
        self._identity = self._identity or self._current_identity()

    def _current_identity(self) -> tuple[int, int] | None:
        try:
            status = self._file.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _check(self) -> None:
        if self._identity and self._current_identity() != self._identity:
            raise StoreError(
                f"The database {self._file} was moved, deleted or replaced while the program ran, so nothing can be "
                "saved; put it back, or start the program again."
            )

    def _write(
        self, _connection: Any, _cursor: Any, _text: Any, _parameters: Any, context: DefaultExecutionContext, _many: Any
    ) -> None:
        if context.isinsert or context.isupdate or context.isdelete:
            self._check()


def _is_file(url: URL) -> bool:
    return url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")


def _make_folder(file: Path) -> None:
    if str(file).startswith("file:"):
        return
    hint = "choose another with the setting 'data_dir'"
    with disk_errors_as(StoreError, f"The folder {file.parent} can't be made", hint):
        file.parent.mkdir(parents=True, exist_ok=True)


def _set_up(connection: sqlite3.Connection, _record: Any) -> None:
    connection.execute("PRAGMA foreign_keys=ON")
    # With FULL every acknowledged write survives a loss of power; with NORMAL the last ones are lost. A write takes
    # 9.5 ms with FULL and 1 ms with NORMAL (medians of 300 on a virtual disk), and a turn makes a few.
    connection.execute("PRAGMA synchronous=FULL")
    # Each write is brought from the log into the database at once, so that the log holds the last one alone: a database
    # that was copied without its log, or whose log was cut, has all that was acknowledged. That takes 0.4 ms more.
    connection.execute("PRAGMA wal_autocheckpoint=1")


def _write_ahead(engine: Engine) -> None:
    """Turn on write-ahead logging, with which readers don't wait for a writer; a read-only database stays as it is."""
    with engine.connect() as connection:
        mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
        if mode != "wal" and not _read_only(connection.connection.dbapi_connection):
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")


def _read_only(connection: Any) -> bool:
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        return "readonly" in str(error)
    return False


def _explain(context: ExceptionContext) -> None:
    """Raise the StoreError for a driver's error. Violated constraints are left to the stores."""
    error = context.original_exception
    if context.is_pre_ping:  # another connection is made
        return
    if isinstance(context.sqlalchemy_exception, IntegrityError) or not isinstance(error, Exception):
        return
    if context.sqlalchemy_exception is None:
        return
    name = _name(context.engine.url) if context.engine is not None else "in use"
    raise StoreError(f"The database {name} {advice(error)}.") from error


def _name(url: URL) -> str:
    """The database's name for people, without the password."""
    return str(url.database) if _is_file(url) else url.set(drivername=url.get_backend_name()).render_as_string()
