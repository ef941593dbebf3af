"""Deleting an account, of SQLite and of PostgreSQL: all that is a user's own goes, and nothing of anybody else's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import Engine, MetaData, select
from typer.testing import CliRunner

from assistant.commands.users import app
from assistant.errors import LibraryError, SettingsError
from assistant.library.index import add_documents, list_documents
from assistant.library.shelves import library_folder, library_names, locked, own_library
from assistant.runs import Runs
from assistant.settings import Settings, WebSettings
from assistant.store import users
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.store.sessions import Sessions
from assistant.store.tokens import AccessTokens
from assistant.store.users import Logins, hash_password
from assistant.types import Turn
from assistant.upkeep import accounts as upkeep
from assistant.upkeep.accounts import Account, Accounts
from assistant.web.account import AccountPanel
from assistant.web.logins import FREE_TRIES
from assistant.web.tab import Tab
from assistant.web.view import View
from ptkb.store import Ptkb

PASSWORD = "correct horse"
NOTHING = Account(0, 0, 0, login=False, choices=False, documents=False)
ALL = Account(1, 1, 1, login=True, choices=True, documents=False)


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    return Settings(data_dir=tmp_path / "data", database=database_url)


@pytest.fixture
def engine(reopened: Callable[[], Engine]) -> Engine:
    """A database in which two users have one of everything."""
    engine = reopened()
    conversations, tokens = Conversations(engine), AccessTokens(engine)
    for user in ("ruth", "bob"):
        Logins(engine).add(user, PASSWORD)
        Logins(engine).note_login(user, "192.0.2.1")
        Ptkb(engine).set_fields(user, {Ptkb(engine).add(user, f"{user} eats lentils.").id: "food"})
        turn = Turn(f"What does {user} eat?", status="done")
        conversations.save_turn(user, conversations.new(user).id, turn)
        conversations.feedback(user, turn.id, 1)
        conversations.set_preferences(user, {"k": 3})
        tokens.make(user, f"of {user}")
        Sessions(engine, Logins(engine))[f"secret of {user}"] = user
    return engine


def rows(settings: Settings, user: str) -> list[str]:
    """All that the database says of a user, or in words of theirs."""
    engine, tables = connect(settings.database_url), MetaData()
    tables.reflect(engine)
    with engine.connect() as connection:
        found = [
            f"{name} {row}" for name in sorted(tables.tables) for row in connection.execute(select(tables.tables[name]))
        ]
    engine.dispose()
    return sorted(line for line in found if user in line)


def remove(settings: Settings, *arguments: str, typed: str = "") -> str:
    words = ["remove", *arguments, "--data-dir", str(settings.data_dir)]
    done = CliRunner().invoke(app, words, input=typed, env={"COLUMNS": "200", "SEQUITUR_DATABASE": settings.database})
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0
    return done.output


def test_all_that_is_a_users_own_goes_and_nothing_else(settings: Settings, engine: Engine) -> None:
    accounts, others = Accounts(settings, engine), rows(settings, "bob")
    assert accounts.of("ruth") == accounts.of("bob") == ALL
    said = remove(settings, "ruth", "--yes")
    assert said == "The account of ruth is deleted with all that was its own.\n"
    assert accounts.of("ruth") == NOTHING
    assert not Logins(engine).knows_address("ruth", "192.0.2.1")
    assert rows(settings, "ruth") == []
    assert rows(settings, "bob") == others
    assert accounts.of("bob") == ALL
    if engine.dialect.name == "sqlite":
        engine.dispose()
        held = b"".join(file.read_bytes() for file in Path(engine.url.database or "").parent.glob("sequitur.sqlite3*"))
        assert b"ruth" not in held
        assert b"bob eats lentils." in held


@pytest.mark.lucene
def test_documents_go_with_what_was_made_of_them(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "lentils.txt").write_text("Lentils cook in 20 minutes.")
    for user in ("ruth", "bob"):
        add_documents(own_library(user), [tmp_path / "lentils.txt"], settings, uploaded=True)
        (settings.data_dir / "dense" / "encoder" / own_library(user)).mkdir(parents=True)
    remove(settings, "ruth", "--yes")
    assert library_names(settings, "ruth") == []
    assert list_documents(own_library("ruth"), settings) == []
    assert not [file for file in settings.data_dir.rglob(f"{own_library('ruth')}*") if file.suffix != ".lock"]
    assert [one.name for one in list_documents(own_library("bob"), settings)] == ["lentils.txt"]
    assert (settings.data_dir / "dense" / "encoder" / own_library("bob")).exists()


@pytest.mark.parametrize("typed", ["n\n", "\n", ""])
def test_whoever_is_not_sure_keeps_everything(settings: Settings, engine: Engine, typed: str) -> None:
    with pytest.raises(SettingsError, match="Nothing was deleted; answer y, or give --yes"):
        remove(settings, "ruth", typed=typed)
    assert Accounts(settings, engine).of("ruth") == ALL
    said = remove(settings, "ruth", typed="y\n")
    assert "Delete the account of ruth with 1 facts, 1 conversations, 1 tokens, for good?" in said
    assert Accounts(settings, engine).of("ruth") == NOTHING


def test_what_a_login_left_behind_can_be_deleted(settings: Settings, engine: Engine) -> None:
    Logins(engine).remove("ruth")
    remove(settings, "ruth", "--yes")
    assert rows(settings, "ruth") == []
    with pytest.raises(SettingsError, match="There is no user 'ruth'"):
        remove(settings, "ruth", "--yes")


def test_a_user_of_the_settings_keeps_everything_while_they_stand_there(settings: Settings, engine: Engine) -> None:
    web = WebSettings(logins={"cid": hash_password(PASSWORD)})
    Ptkb(engine).add("cid", "I'm vegan.")
    with pytest.raises(SettingsError, match=r"stands in the settings \(web\.logins\); remove the line there"):
        Accounts(settings.model_copy(update={"web": web}), engine).delete("cid")
    assert Accounts(settings, engine).of("cid").facts == 1
    assert Accounts(settings, engine).delete("cid") == ""
    assert Accounts(settings, engine).of("cid") == NOTHING


def test_whose_documents_are_being_read_keeps_everything(
    settings: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "LOCK_SECONDS", 0.1)
    accounts = Accounts(settings, engine)
    with locked(library_folder(own_library("ruth"), settings)):
        with pytest.raises(LibraryError, match="is being updated elsewhere; try again in a minute"):
            accounts.delete("ruth")
        assert accounts.of("ruth") == ALL
        assert Sessions(engine, Logins(engine)).get("secret of ruth") == "ruth"
    accounts.delete("ruth")
    assert accounts.of("ruth") == NOTHING


def test_on_the_page_a_user_types_who_they_are(settings: Settings, engine: Engine) -> None:
    conversations, runs = Conversations(engine), Runs()
    temporary = conversations.new("ruth", temporary=True)
    accounts = Accounts(settings, engine, conversations)
    panel = AccountPanel(View(None, conversations, Ptkb(engine), runs), accounts)  # type: ignore[arg-type]
    for word in ("", "bob", "Ruth"):
        with pytest.raises(SettingsError, match="Nothing was deleted; type “ruth” into the field"):
            panel.remove(Tab("ruth", data={"word": word}))
    assert accounts.of("ruth") == ALL

    def answering(stop: Event):
        turn = Turn("Still there?")
        yield turn
        stop.wait(60)
        Ptkb(engine).add("ruth", "A last fact.")
        yield turn

    run = runs.start("ruth", "one", answering)
    [shown] = panel.remove(Tab("ruth", data={"word": " ruth "})).values()
    assert "data-gone" in shown
    assert run.over
    assert accounts.of("ruth") == NOTHING
    assert accounts.of("bob") == ALL
    with pytest.raises(Exception, match="was not found"):
        conversations.get("ruth", temporary.id)
    runs.close()


def account_panel(settings: Settings, engine: Engine) -> AccountPanel:
    conversations = Conversations(engine)
    view = View(None, conversations, Ptkb(engine), Runs())  # type: ignore[arg-type]
    return AccountPanel(view, Accounts(settings, engine, conversations))


def test_on_the_page_a_user_takes_another_password_which_ends_all_log_ins(settings: Settings, engine: Engine) -> None:
    logins, panel = Logins(engine), account_panel(settings, engine)
    sessions = Sessions(engine, logins)
    for old, new, told in (
        ("wrong horse", "oats and lentils", "This is not your password; nothing was changed"),
        ("", "oats and lentils", "This is not your password"),
        (PASSWORD, "oats ann te", "A password has 12 to 1,000 characters"),
        (PASSWORD, "password1234", "This password is too weak"),
    ):
        with pytest.raises(SettingsError, match=told):
            panel.renew(Tab("ruth", data={"old": old, "new": new}))
    assert sessions.get("secret of ruth") == "ruth"
    [shown] = panel.renew(Tab("ruth", data={"old": PASSWORD, "new": "oats and lentils"})).values()
    assert "data-gone" in shown
    assert "oats" not in shown
    assert (logins.check("ruth", "oats and lentils"), logins.check("ruth", PASSWORD)) == (True, False)
    assert (sessions.get("secret of ruth"), sessions.get("secret of bob")) == (None, "bob")


def test_users_are_told_of_the_log_in_before_and_of_another_password(
    settings: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts, logins = Accounts(settings, engine), Logins(engine)
    assert accounts.last_logins("ruth") is None  # there was one log-in so far
    logins.note_login("ruth", "192.0.2.2")
    told = accounts.last_logins("ruth")
    assert told is not None
    assert told.before < told.last
    assert (told.new, told.renewed) == (True, False)
    accounts.change("ruth", "oats and lentils")
    assert accounts.last_logins("ruth") == told
    logins.note_login("ruth", "192.0.2.2")
    after = accounts.last_logins("ruth")
    assert after is not None
    assert (after.before, after.renewed) == (told.last, True)
    logins.note_login("ruth", "192.0.2.2")
    assert (accounts.last_logins("ruth") or told).renewed is False
    monkeypatch.setattr(users, "NEWS_SECONDS", 0.0)
    assert (accounts.last_logins("ruth") or told).new is False
    assert accounts.last_logins("bob") is None


def test_who_logs_in_by_the_settings_is_told_as_well(settings: Settings, engine: Engine) -> None:
    for password in (PASSWORD, "oats and lentils"):
        Logins(engine, {"cid": hash_password(password)}).note_login("cid", "192.0.2.1")
    told = Accounts(settings, engine).last_logins("cid")
    assert told is not None
    assert told.renewed


@pytest.mark.parametrize(
    ("typed", "score", "told"),
    [
        ("oats", 0, "A password has 12 to 1,000 characters"),
        ("password1234", 1, "This password is too weak (This is a very common password)"),
        ("correct horse", 3, "This is a good password."),
        ("oats and lentils", 4, "This is a strong password."),
    ],
)
def test_how_strong_a_new_password_is_is_told_before_it_is_taken(
    settings: Settings, engine: Engine, typed: str, score: int, told: str
) -> None:
    [shown] = account_panel(settings, engine).rate(Tab("ruth", data={"new": typed})).values()
    assert f'value="{score}"' in shown
    assert told in shown
    assert typed not in shown
    assert Logins(engine).check("ruth", PASSWORD)


def test_of_no_password_nothing_is_told(settings: Settings, engine: Engine) -> None:
    [shown] = account_panel(settings, engine).rate(Tab("ruth", data={"new": ""})).values()
    assert "meter" not in shown


def test_the_old_password_is_guessed_no_faster_than_at_the_log_in(settings: Settings, engine: Engine) -> None:
    panel = account_panel(settings, engine)
    for _ in range(FREE_TRIES):
        with pytest.raises(SettingsError, match="not your password"):
            panel.renew(Tab("ruth", data={"old": "a guess", "new": "oats and lentils"}))
    with pytest.raises(SettingsError, match="No password is tried for 2 s"):
        panel.renew(Tab("ruth", data={"old": PASSWORD, "new": "oats and lentils"}))
    panel.renew(Tab("bob", data={"old": PASSWORD, "new": "oats and lentils"}))
    assert Logins(engine).check("ruth", PASSWORD)


def test_who_has_no_login_of_the_database_changes_no_password(settings: Settings, engine: Engine) -> None:
    web = WebSettings(logins={"cid": hash_password(PASSWORD)})
    accounts = Accounts(settings.model_copy(update={"web": web}), engine)
    with pytest.raises(SettingsError, match=r"stands in the settings \(web\.logins\); change it there"):
        accounts.change("cid", "oats and lentils")
    with pytest.raises(SettingsError, match="There is no login 'me'"):
        accounts.change("me", "oats and lentils")
    assert [accounts.has_login(name) for name in ("ruth", "cid", "me")] == [True, True, False]
