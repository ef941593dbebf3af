"""Migrates a database from the tables of any earlier version to those of this one, by Alembic.

All steps are one transaction: a program that is killed meanwhile leaves the database as it was. Of two programs that
begin at once, one waits for the other and then has nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from assistant.errors import StoreError

VERSION = 6  # of the tables: the newest file of `migrations/versions`
_SCRIPTS = Path(__file__).with_name("migrations")
_LOCK = 0x53455155  # a number that no other program takes on the same database of PostgreSQL


def migrate(engine: Engine, name: str) -> None:
    """Create missing tables, and migrate older ones; `name` is the database's name for people.

    Raises:
        StoreError: it was written by a newer version of the program, or can't be read or written.
    """
    with engine.connect() as connection:
        version = _version(connection)
    if version > VERSION:
        raise StoreError(
            f"The database {name} was written by a newer version of the program (schema {version}, this one knows "
            f"{VERSION}); update the program or choose another with 'database'."
        )
    if version < VERSION:
        with exclusive_transaction(engine) as connection:
            if _version(connection) < VERSION:
                _upgrade(connection)


def is_outdated(connection: Connection) -> bool:
    """Whether a newer version of the program has migrated the tables, which may happen while this one runs."""
    return _version(connection) > VERSION


def _version(connection: Connection) -> int:
    """The version of the existing tables; 0 if no migration was ever run."""
    if not inspect(connection).has_table("alembic_version"):
        return 0
    return int(connection.scalar(text("SELECT version_num FROM alembic_version")) or 0)


@contextmanager
def exclusive_transaction(engine: Engine) -> Iterator[Connection]:
    """A transaction that waits for other programs' migrations and excludes them."""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        else:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield connection


def _upgrade(connection: Connection) -> None:
    from alembic import command  # noqa: PLC0415 - a database that is up to date needs none of it
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
