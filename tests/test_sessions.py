"""Who is logged in, on real files of SQLite and a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine

from assistant.store import sessions, users
from assistant.store.database import connect
from assistant.store.sessions import LOGIN_SECONDS, Sessions
from assistant.store.users import Logins, hash_password

PASSWORD = "correct horse"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "COST", 2**10)
    monkeypatch.setattr(users, "LANES", 1)


@pytest.fixture
def here(engine: Engine) -> Sessions:
    """The log-ins of a process, with one of ada and one of bob."""
    logins = Logins(engine)
    entered = Sessions(engine, logins)
    for name in ("ada", "bob"):
        logins.add(name, PASSWORD)
        entered[f"secret of {name}"] = name
    return entered


def test_a_log_in_holds_at_every_process_until_the_user_logs_out(
    here: Sessions, reopened: Callable[[], Engine]
) -> None:
    elsewhere = reopened()
    there = Sessions(elsewhere, Logins(elsewhere))
    assert (there.get("secret of ada"), there.get("another"), there.get(""), there.get(None)) == ("ada", *[None] * 3)
    assert there.name == here.name
    there.end("ada")
    assert (here.get("secret of ada"), here.get("secret of bob")) == (None, "bob")


def test_another_password_or_a_removal_ends_log_ins(here: Sessions, engine: Engine) -> None:
    Logins(engine).add("ada", "correct oats")
    assert here.get("secret of ada") is None
    Logins(engine).remove("bob")
    assert here.get("secret of bob") is None
    Logins(engine).add("bob", PASSWORD)
    assert here.get("secret of bob") is None


def test_a_name_is_kept_as_the_login_has_it_and_may_stand_in_the_settings(engine: Engine) -> None:
    entered = Sessions(engine, Logins(engine, {"Zo\u00eb": hash_password(PASSWORD)}))
    entered["s"] = "Zoe\u0308"
    assert entered.get("s") == "Zo\u00eb"
    assert Sessions(engine, Logins(engine)).get("s") is None


def test_a_log_in_ends_with_its_time_and_the_oldest_of_too_many(
    here: Sessions, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_USER_SESSIONS", 2)
    for n in range(2):
        here[f"more {n}"] = "ada"
    assert [here.get(one) for one in ("secret of ada", "more 0", "more 1", "secret of bob")] == [
        None, "ada", "ada", "bob",
    ]  # fmt: skip
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE sessions SET begun = begun - {LOGIN_SECONDS + 1}")
    assert here.get("more 1") is None


def test_the_database_holds_nothing_to_log_in_with(here: Sessions, engine: Engine) -> None:
    with engine.connect() as connection:
        kept = str(connection.exec_driver_sql("SELECT * FROM sessions").all())
        assert here.get("secret of ada") == "ada"
        assert "secret of" not in kept
        assert str(Logins(engine).hash_of("ada")) not in kept


def test_a_database_that_can_only_be_read_lets_users_in_at_this_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'sequitur.sqlite3'}"
    Logins(connect(url)).add("ada", PASSWORD)
    engine = connect(f"sqlite:///file:{tmp_path / 'sequitur.sqlite3'}?mode=ro&uri=true")
    entered = Sessions(engine, Logins(engine))
    entered["s"] = "ada"
    assert entered.get("s") == "ada"
    assert Sessions(engine, Logins(engine)).get("s") is None
