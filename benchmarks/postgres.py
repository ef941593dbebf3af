"""A clock that is set and a server that is read-only, under a page whose database is a PostgreSQL (`bench faults`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from assistant.settings import Settings
from assistant.store.database import connect
from assistant.store.users import DEFAULT_USER
from assistant.upkeep.accounts import Accounts
from benchmarks.clicks import Ledger, Stores, find_losses
from benchmarks.disks import Case, clock, is_clear, refusal_lines, refusals_by_kind, start_read_only
from benchmarks.light import light_settings, served
from benchmarks.visitor import Visitor

_OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"


def postgres_cases(folder: Path, seed: int, database: str) -> Iterator[Case]:
    """All of them, one after the other on the database of this address, whose default user they empty."""
    settings = light_settings(folder, database=database)
    _forget(settings)
    yield clock(folder / "clock", seed, database)
    _forget(settings)
    yield read_only_server(folder / "read-only", database)


def _forget(settings: Settings) -> None:
    """Delete what the database has of the default user."""
    engine = connect(settings.database_url)
    accounts = Accounts(settings, engine)
    if accounts.of(DEFAULT_USER):
        accounts.delete(DEFAULT_USER)
    engine.dispose()


def read_only_server(folder: Path, database: str) -> Case:
    """A server that takes nothing any more, under a served page and at a start, and then is written to again."""
    settings = light_settings(folder, database=database)
    ledger = Ledger(facts={"I like oats.", "I like tea with milk."}, documents={"a.txt"})
    with served(settings) as page, _switch(database) as set_read_only:
        visitor = Visitor(page.url)
        visitor.send("facts", "store", text="I like oats.")
        visitor.upload("a.txt", b"The key hangs behind the green door.")
        set_read_only(True)
        refusals = refusals_by_kind(visitor)
        start_outcome, start_is_clear = start_read_only(settings)
        set_read_only(False)
        visitor.send("facts", "store", text="I like tea with milk.")
        visitor.close()
    # documents lie in the data folder, which can be written to
    ledger.documents |= set() if refusals["document"] else {"b.txt"}
    losses = find_losses(ledger, Stores(settings).snapshot())
    refused_kinds = {kind for kind, message in refusals.items() if is_clear(message)}
    lines = [*refusal_lines(refusals), f"another page {start_outcome}", "written to again, it keeps a fact", *losses]
    passed = {"fact", "answer"} <= refused_kinds and start_is_clear and not losses
    return Case("server that is set read-only under a served page", "; ".join(lines), passed)


@contextmanager
def _switch(database: str) -> Iterator[Callable[[bool], None]]:
    """Sets whether the database takes anything, for all connections but this; in the end it does."""
    engine = connect(database)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        name = connection.dialect.identifier_preparer.quote(str(engine.url.database))

        def set_read_only(value: bool) -> None:
            connection.exec_driver_sql(f"ALTER DATABASE {name} SET default_transaction_read_only = {value}")
            connection.exec_driver_sql(f"{_OTHERS} AND pid <> pg_backend_pid()")

        try:
            yield set_read_only
        finally:
            connection.exec_driver_sql(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    engine.dispose()
