"""Files and connections that are not there when they are needed: what can't be kept is not acknowledged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sqlalchemy import Engine

from assistant.errors import StoreError
from assistant.store import database
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.types import Turn
from ptkb.store import Ptkb
from tests.fixtures_postgres import Server


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data" / "sequitur.sqlite3"


@pytest.fixture
def engine(file: Path) -> Engine:
    return connect(f"sqlite:///{file}")


def deleted(file: Path) -> None:
    file.unlink()


def moved(file: Path) -> None:
    file.rename(file.with_name("elsewhere.sqlite3"))


def folder_deleted(file: Path) -> None:
    shutil.rmtree(file.parent)


def replaced(file: Path) -> None:
    copy = file.with_name("copy")
    shutil.copy(file, copy)
    copy.replace(file)


@pytest.mark.parametrize("happens", [deleted, moved, folder_deleted, replaced])
def test_nothing_is_written_to_a_file_that_is_not_there_any_more(engine: Engine, file: Path, happens) -> None:
    ptkb, conversations = Ptkb(engine), Conversations(engine)
    conversation = conversations.new("ann")
    ptkb.add("ann", "I'm vegan.")
    happens(file)
    said = "was moved, deleted or replaced while the program ran, so nothing can be saved; put it back, or start"
    for write in (
        lambda: ptkb.add("ann", "I'm tall."),
        lambda: conversations.new("ann"),
        lambda: conversations.save_turn("ann", conversation.id, Turn("Hello")),
    ):
        with pytest.raises(StoreError, match=said):
            write()
    engine.dispose()  # as where another connection is opened: no empty file takes the place
    with pytest.raises(StoreError, match=said):
        ptkb.facts("ann")
    assert file.exists() is (happens is replaced)


def test_a_file_that_was_put_back_is_written_again(engine: Engine, file: Path) -> None:
    ptkb = Ptkb(engine)
    away = file.with_name("away")
    file.rename(away)
    with pytest.raises(StoreError):
        ptkb.add("ann", "I'm vegan.")
    away.rename(file)
    ptkb.add("ann", "I'm vegan.")
    assert [fact.text for fact in Ptkb(connect(f"sqlite:///{file}")).facts("ann")] == ["I'm vegan."]


def test_what_is_acknowledged_is_on_the_disk(engine: Engine) -> None:
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL, as SQLite numbers it


@pytest.mark.parametrize(("server_says", "held"), [("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")])
def test_what_postgresql_acknowledges_is_on_its_disk(
    postgres: Server, postgres_url: str, server_says: str, held: str
) -> None:
    postgres.admin(f"ALTER DATABASE {postgres_url.rpartition('/')[2]} SET synchronous_commit = {server_says}")
    engine = connect(postgres_url)
    Ptkb(engine).add("ann", "I'm vegan.")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == held
    engine.dispose()


def test_a_database_copied_without_its_log_has_all_that_was_acknowledged(
    engine: Engine, file: Path, tmp_path: Path
) -> None:
    told = [f"I like oats of kind {n}." for n in range(5)]
    for text in told:
        Ptkb(engine).add("ann", text)
    assert file.with_name(f"{file.name}-wal").exists()
    copy = Path(shutil.copy(file, tmp_path / "copy.sqlite3"))
    assert {fact.text for fact in Ptkb(connect(f"sqlite:///{copy}")).facts("ann")} == set(told)


def test_where_no_connection_comes_free_a_sentence_says_so(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    engine = connect(f"sqlite:///{file}")
    held = [engine.connect() for _ in range(15)]
    with pytest.raises(StoreError, match="busy with other requests; try again in a moment"):
        engine.connect()
    held[0].close()
    engine.connect().close()
    for one in held:
        one.close()
