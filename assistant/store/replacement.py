"""Puts the content of a SQLite file in place of that of the database, which programs may use meanwhile.

The file of the database stays: its rows are replaced in one transaction, as any other write is. Programs that have it
open read the old rows until then and the new ones from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, Engine, MetaData, delete, insert, inspect, select

from assistant.errors import StoreError
from assistant.store import database

# Tables of what programs and browsers are doing now, which isn't replaced: who is logged in, which answers are being
# written, who has to wait after wrong passwords; and the version, to which both sides are migrated.
_OF_NOW = {"sessions", "answering", "wrong_passwords", "alembic_version"}
_SOURCE = "source"


@contextmanager
def replaced_content(engine: Engine, source: Path, aside: Path) -> Iterator[None]:
    """Replace what the database holds by what the file `source` does, once the block has ended without an error.

    Whoever else writes waits for that. What the database held until then is copied to the new file `aside`, so that all
    that was ever acknowledged is in one of the two.

    Raises:
        StoreError: `source` or the database is damaged, the disk is full, or another program has been writing for
            `database.BUSY_SECONDS`; nothing is changed.
    """
    database.connect(f"sqlite:///{source}").dispose()  # which migrates it
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"ATTACH DATABASE ? AS {_SOURCE}", (str(source),))
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")  # or the order of the tables would count
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            aside.parent.mkdir(mode=0o700, exist_ok=True)
            database.snapshot(engine.url.render_as_string(), aside)
            _replace_rows(connection)
            yield
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            with suppress(StoreError):  # where the disk is full SQLite has done so already
                connection.exec_driver_sql("ROLLBACK")
            aside.unlink(missing_ok=True)
            raise


def _replace_rows(connection: Connection) -> None:
    source_names = set(inspect(connection).get_table_names(_SOURCE))  # old versions left tables that nobody needs
    tables = MetaData()
    tables.reflect(connection)
    for name in (tables.tables.keys() & source_names) - _OF_NOW:
        table = tables.tables[name]
        source_rows = select(table.to_metadata(MetaData(), schema=_SOURCE))
        connection.execute(delete(table))
        connection.execute(insert(table).from_select(table.columns.keys(), source_rows))
