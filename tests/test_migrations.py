"""Databases of every earlier version are brought to the newest, on real files of SQLite and a real PostgreSQL.

The files of `data/schemas` were written by the stores of the versions in which tables were added, with rows in all.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, create_engine, inspect

from assistant.errors import StoreError
from assistant.store import conversations, sessions, shared, tokens, usage, users
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.store.migrate import VERSION
from assistant.store.tokens import AccessTokens
from assistant.store.users import Logins
from ptkb import store as facts
from ptkb.store import Ptkb
from tests.fixtures_postgres import Server

ROOT = Path(__file__).parents[1]
SCHEMAS = sorted((Path(__file__).parent / "data" / "schemas").glob("*.sql"))
STEPS = ROOT / "assistant" / "store" / "migrations"


def rows(connection: Any, tables: list[str]) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(map(tuple, connection.execute(f'SELECT * FROM "{name}"'))) for name in tables}


def tables_of(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%_version'")
    return [name for (name,) in found]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda file: file.stem)
def test_a_file_of_an_earlier_version_is_brought_to_the_newest_and_loses_nothing(schema: Path, tmp_path: Path) -> None:
    file = tmp_path / "old.sqlite3"
    with closing(sqlite3.connect(file)) as raw:
        raw.executescript(schema.read_text())
        tables = tables_of(raw)
        before = rows(raw, tables)
    engine = connect(f"sqlite:///{file}")
    with closing(sqlite3.connect(file)) as raw:
        assert rows(raw, tables) == before
        assert raw.execute("SELECT version_num FROM alembic_version").fetchall() == [(str(VERSION),)]
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store, ptkb = Conversations(engine), Ptkb(engine)
    [talk] = [store.get("ada", one.id) for one in store.list("ada")]
    last = "Tea, without milk." if "versions" in tables else "Oat drink."
    assert [turn.answer.text for turn in talk.turns if turn.answer] == ["Lentils are rich in protein. [1]", last]
    assert (talk.turns[0].passages[0].text, list(talk.feedback.values())) == ("Lentils are rich in protein.", [1])
    assert [(fact.text, fact.on) for fact in ptkb.facts("ada")] == [
        ("I'm lactose intolerant.", True),
        ("I like tea.", False),
    ]
    assert store.preferences("ada") == {"k": 6}
    assert Logins(engine).names() == ["ada"] * ("users" in tables)
    assert len(AccessTokens(engine).list("ada")) == ("tokens" in tables)
    ptkb.add("ada", "I live in Oslo.")
    store.rename("ada", talk.id, "Food")


def test_tables_that_were_made_on_postgresql_before_migrations_are_taken_over(postgres: Server) -> None:
    url = postgres.database()
    raw = create_engine(url.replace("://", "+psycopg://"))
    for one in (conversations.TABLES, facts.TABLES):
        one.create_all(raw)
    made = "INSERT INTO facts VALUES (1, 'f', 'ada', 'I like tea.', 'i like tea', 'typed', true, '2026', '2026')"
    with raw.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE schema_version (id integer PRIMARY KEY, version integer)")
        connection.exec_driver_sql("INSERT INTO schema_version VALUES (1, 2)")
        connection.exec_driver_sql(made.replace("'2026'", "'2026-11-21T00:00:00+00:00'"))
    assert [fact.text for fact in Ptkb(connect(url)).facts("ada")] == ["I like tea."]


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database in which nothing is yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'new.sqlite3'}"
    server: Server = request.getfixturevalue("postgres")
    return server.database()


def test_the_migrations_lead_to_the_tables_that_the_stores_declare(empty: str) -> None:
    declared = MetaData()
    stores = (conversations, users, tokens, sessions, shared, usage, facts)
    for tables in (store.TABLES for store in stores):
        for table in tables.sorted_tables:
            table.to_metadata(declared)
    with connect(empty).connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection), declared)
    strange = [one for one in found if "schema_version" not in str(one)]
    assert strange == []
    assert ScriptDirectory(str(STEPS)).get_heads() == [str(VERSION)]


def test_of_two_programs_that_begin_at_once_one_waits_for_the_other(empty: str) -> None:
    code = "import sys; from ptkb.store import Ptkb; from assistant.store.database import connect; "
    code += "sys.stdin.read(1); Ptkb(connect(sys.argv[1])).add(sys.argv[2], 'I like tea.')"
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": ROOT, "text": True}
    both = [subprocess.Popen([sys.executable, "-c", code, empty, user], **pipes) for user in ("ada", "bob")]
    for one in both:
        assert one.stdin
        one.stdin.write("x")
        one.stdin.flush()
    assert [(one.communicate(timeout=120)[1], one.returncode) for one in both] == [("", 0)] * 2
    assert [len(Ptkb(connect(empty)).facts(user)) for user in ("ada", "bob")] == [1, 1]


def test_a_migration_that_fails_changes_nothing(empty: str) -> None:
    raw = create_engine(empty.replace("postgresql://", "postgresql+psycopg://"))
    with raw.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE schema_version (something integer)")  # the last step can't write to it
    with pytest.raises(StoreError):
        connect(empty)
    assert inspect(raw).get_table_names() == ["schema_version"]


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
