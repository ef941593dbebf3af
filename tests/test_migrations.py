"""Databases of every earlier version are brought to the newest, on real files of SQLite and a real PostgreSQL.

The files of `data/schemas` were written by the stores of the versions in which tables were added, with rows in all.
For PostgreSQL their tables and rows are copied.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, MetaData, create_engine, insert, inspect, select

from assistant.errors import StoreError
from assistant.store import conversations, sessions, shared, tokens, usage, users
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.store.migrate import VERSION, exclusive_transaction
from assistant.store.replacement import replaced_content
from assistant.store.tokens import AccessTokens
from assistant.store.users import Logins
from ptkb import store as facts
from ptkb.store import Ptkb
from tests.fixtures_postgres import Server

ROOT = Path(__file__).parents[1]
SCHEMAS = sorted((Path(__file__).parent / "data" / "schemas").glob("*.sql"))
STEPS = ROOT / "assistant" / "store" / "migrations"


def raw(url: str) -> Engine:
    """The database as it is: nothing is made or changed in it."""
    return create_engine(url.replace("postgresql://", "postgresql+psycopg://"))


def of_file(schema: Path, file: Path) -> str:
    """The address of a new file of SQLite with these tables and rows."""
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(schema.read_text())
    return f"sqlite:///{file}"


def copy(source: str, target: str) -> None:
    """Make the tables of one database in another, an empty one of PostgreSQL, with all rows."""
    tables = MetaData()
    tables.reflect(raw(source))
    tables.create_all(raw(target))
    with raw(source).connect() as old, raw(target).begin() as new:
        for table in tables.sorted_tables:
            if found := old.execute(select(table)).mappings().all():
                new.execute(insert(table), [dict(row) for row in found])
            if "n" in table.c:  # which goes on from the last row, as where the rows were written one after the other
                counted = f"pg_get_serial_sequence('{table.name}', 'n')"
                new.exec_driver_sql(f"SELECT setval({counted}, max(n)) FROM {table.name}")


def rows(url: str, names: Iterable[str]) -> dict[str, list[tuple[Any, ...]]]:
    tables = MetaData()
    tables.reflect(raw(url), only=list(names))
    with raw(url).connect() as connection:
        return {name: sorted(map(tuple, connection.execute(select(table)))) for name, table in tables.tables.items()}


def strange(url: str) -> list[Any]:
    """How the tables that are there differ from those that the stores declare."""
    declared = MetaData()
    stores = (conversations, users, tokens, sessions, shared, usage, facts)
    for tables in (store.TABLES for store in stores):
        for table in tables.sorted_tables:
            table.to_metadata(declared)
    with raw(url).connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection), declared)
    return [one for one in found if "schema_version" not in str(one)]


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database in which nothing is yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'new.sqlite3'}"
    server: Server = request.getfixturevalue("postgres")
    return server.database()


@pytest.fixture
def made(empty: str, tmp_path: Path) -> Callable[[Path], str]:
    """Fills the empty database with the tables and rows of an earlier version; gives its address."""

    def fill(schema: Path) -> str:
        if empty.startswith("sqlite"):
            return of_file(schema, tmp_path / "new.sqlite3")
        copy(of_file(schema, tmp_path / "old.sqlite3"), empty)
        return empty

    return fill


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda file: file.stem)
def test_a_database_of_an_earlier_version_is_brought_to_the_newest_and_loses_nothing(
    schema: Path, made: Callable[[Path], str]
) -> None:
    url = made(schema)
    kept = [name for name in inspect(raw(url)).get_table_names() if not name.endswith("_version")]
    before = rows(url, kept)
    assert all(before.values())
    engine = connect(url)
    assert rows(url, kept) == before
    assert rows(url, ["alembic_version"]) == {"alembic_version": [(str(VERSION),)]}
    assert strange(url) == []
    store, ptkb = Conversations(engine), Ptkb(engine)
    [talk] = [store.get("ada", one.id) for one in store.list("ada")]
    last = "Tea, without milk." if "versions" in kept else "Oat drink."
    assert [turn.answer.text for turn in talk.turns if turn.answer] == ["Lentils are rich in protein. [1]", last]
    assert (talk.turns[0].passages[0].text, list(talk.feedback.values())) == ("Lentils are rich in protein.", [1])
    assert [(fact.text, fact.on) for fact in ptkb.facts("ada")] == [
        ("I'm lactose intolerant.", True),
        ("I like tea.", False),
    ]
    assert store.preferences("ada") == {"k": 6}
    assert Logins(engine).names() == ["ada"] * ("users" in kept)
    assert len(AccessTokens(engine).list("ada")) == ("tokens" in kept)
    ptkb.add("ada", "I live in Oslo.")
    store.rename("ada", talk.id, "Food")
    assert usage.Usage(engine).begin("ada")
    assert shared.Leases(engine).begin("ada", talk.id) == 1
    if engine.name == "sqlite":
        with engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda file: file.stem)
def test_the_content_of_an_earlier_version_takes_the_place_of_todays(schema: Path, tmp_path: Path) -> None:
    url, source = of_file(SCHEMAS[-1], tmp_path / "today"), tmp_path / "source"
    of_file(schema, source)
    engine = connect(url)
    names = inspect(engine).get_table_names()
    before = rows(url, names)
    with replaced_content(engine, source, tmp_path / "aside" / "kept"):
        pass
    expected, after = rows(connect(f"sqlite:///{source}").url.render_as_string(), names), rows(url, names)
    kept_names = {"sessions", "answering", "wrong_passwords", "alembic_version"}
    assert after == {name: (before if name in kept_names else expected)[name] for name in names}
    assert rows(f"sqlite:///{tmp_path / 'aside' / 'kept'}", names) == before
    assert before["sessions"]


def test_there_is_a_database_of_every_version_that_a_program_may_have_left() -> None:
    stamp = re.compile(r'"alembic_version" VALUES.\'(\d+)')
    stamped = {found[1] for schema in SCHEMAS if (found := stamp.search(schema.read_text()))}
    assert stamped == {str(version) for version in range(3, VERSION)}


def test_tables_that_were_made_on_postgresql_before_migrations_are_taken_over(postgres: Server) -> None:
    url = postgres.database()
    for one in (conversations.TABLES, facts.TABLES):
        one.create_all(raw(url))
    made = "INSERT INTO facts VALUES (1, 'f', 'ada', 'I like tea.', 'i like tea', 'typed', true, '2026', '2026')"
    with raw(url).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE schema_version (id integer PRIMARY KEY, version integer)")
        connection.exec_driver_sql("INSERT INTO schema_version VALUES (1, 2)")
        connection.exec_driver_sql(made.replace("'2026'", "'2026-11-21T00:00:00+00:00'"))
    assert [fact.text for fact in Ptkb(connect(url)).facts("ada")] == ["I like tea."]


def test_the_migrations_lead_to_the_tables_that_the_stores_declare(empty: str) -> None:
    connect(empty)
    assert strange(empty) == []
    assert ScriptDirectory(str(STEPS)).get_heads() == [str(VERSION)]


BEGINNING = """
import sys
from assistant.store.database import connect
from ptkb.store import Ptkb
print("here", flush=True)
Ptkb(connect(sys.argv[1])).add(sys.argv[2], "I walk.")
"""


@pytest.mark.parametrize("schema", [None, SCHEMAS[0], *SCHEMAS[-3:]], ids=lambda file: file.stem if file else "nothing")
def test_of_two_programs_that_begin_at_once_one_waits_for_the_other(
    schema: Path | None, empty: str, made: Callable[[Path], str]
) -> None:
    url = made(schema) if schema else empty
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": ROOT, "text": True}
    with exclusive_transaction(raw(url)):  # until both have found the database old
        both = [subprocess.Popen([sys.executable, "-c", BEGINNING, url, user], **pipes) for user in ("cy", "dan")]
        assert [one.stdout and one.stdout.readline() for one in both] == ["here\n"] * 2
        sleep(1)
    assert [(one.communicate(timeout=120)[1], one.returncode) for one in both] == [("", 0)] * 2
    assert [len(Ptkb(connect(url)).facts(user)) for user in ("cy", "dan")] == [1, 1]
    assert strange(url) == []


def test_a_migration_that_fails_changes_nothing(empty: str) -> None:
    with raw(empty).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE schema_version (something integer)")  # the last step can't write to it
    with pytest.raises(StoreError):
        connect(empty)
    assert inspect(raw(empty)).get_table_names() == ["schema_version"]


def test_a_database_of_a_newer_version_is_left_alone(empty: str) -> None:
    with connect(empty).begin() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{VERSION + 1}'")
    with pytest.raises(StoreError, match=f"written by a newer version of the program .schema {VERSION + 1}, this one"):
        connect(empty)


@pytest.fixture
def told(tmp_path: Path) -> Callable[[str], str]:
    """Runs a command with a database that it can't use; gives what it says."""

    def run(url: str) -> str:
        command = [sys.executable, "-m", "assistant", "facts", "list", "--data-dir", str(tmp_path)]
        environment = {**os.environ, "SEQUITUR_DATABASE": url}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        return done.stderr

    return run


def test_a_database_that_cant_be_reached_is_named_without_its_password(told: Callable[[str], str]) -> None:
    said = told("postgresql://ada:secret@127.0.0.1:1/sequitur")
    assert said.startswith("Error: The database postgresql://ada:***@127.0.0.1:1/sequitur can't be reached; check that")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("database", "says"), [("nowhere", "is not there"), ("test@elsewhere.invalid/x", "can't be used|can't be reached")]
)
def test_a_database_that_is_not_there_is_named(postgres: Server, database: str, says: str) -> None:
    with pytest.raises(StoreError, match=says):
        connect(postgres.url(database))


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("53100", "is on a full disk; free some space and try again, nothing was lost"),
        ("25006", "can only be read"),
        ("42501", "refuses its user"),
        ("40P01", "was changed by another program at the same moment; try again"),
    ],
)
def test_what_the_server_refuses_is_told_and_nothing_changes(postgres_url: str, code: str, says: str) -> None:
    engine = connect(postgres_url)
    ptkb = Ptkb(engine)
    ptkb.add("ada", "I like tea.")
    with engine.begin() as connection:
        connection.exec_driver_sql(
            f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'kein Platz' USING ERRCODE = '{code}'; END $$"
        )
        connection.exec_driver_sql("CREATE TRIGGER refused AFTER INSERT ON facts EXECUTE FUNCTION refuse()")
    with pytest.raises(StoreError, match=says):
        ptkb.import_text("ada", "I live in Oslo.\nI walk.")
    assert [fact.text for fact in ptkb.facts("ada")] == ["I like tea."]


def test_a_server_that_was_started_again_is_gone_on_with(postgres_url: str) -> None:
    engine = connect(postgres_url)
    ptkb = Ptkb(engine)
    ptkb.add("ada", "I like tea.")
    with connect(postgres_url).connect() as other:
        here = "datname = current_database() AND pid <> pg_backend_pid()"
        other.exec_driver_sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {here}")
    assert [fact.text for fact in ptkb.facts("ada")] == ["I like tea."]
