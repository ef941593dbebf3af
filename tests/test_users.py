"""Logins: hashes, names, guessing, and the command."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Engine
from typer.testing import CliRunner

from assistant.commands.facts import app as facts_app
from assistant.commands.users import app
from assistant.errors import FactError, SettingsError
from assistant.store import users
from assistant.store.database import connect
from assistant.store.users import MAX_ADDRESSES, Logins, hash_password, strength, verify

PASSWORD = "correct horse"


def test_hashes_are_salted_and_verify_only_their_password(
    password_costs: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, cost in zip(("COST", "LANES"), password_costs, strict=True):
        monkeypatch.setattr(users, name, cost)
    one, two = hash_password(PASSWORD), hash_password(PASSWORD)
    assert one.startswith("scrypt$16384$8$5$")
    assert one != two
    assert PASSWORD not in one
    assert verify(PASSWORD, one)
    assert verify(PASSWORD, two)
    assert not verify(PASSWORD + " ", one)
    assert not verify("", one)
    assert not verify("x" * 1_000_000, one)
    assert not verify("\ud800", one)


@pytest.mark.parametrize("name", ["", "x" * 65, "x" * 1_000_000, "\ud800", "e" + "\u0316\u0301" * 80_000])
def test_names_that_nobody_can_have_take_no_time(engine: Engine, name: str) -> None:
    logins = Logins(engine)
    began = time.thread_time()
    assert not logins.check(name, PASSWORD)
    assert not logins.knows_address(name, "192.0.2.1")
    with pytest.raises(SettingsError, match="A user's name has"):
        logins.add(name, PASSWORD)
    assert time.thread_time() - began < 1


def test_of_each_user_the_last_addresses_are_known(engine: Engine) -> None:
    logins = Logins(engine)
    logins.add("ada", PASSWORD)
    for n in range(MAX_ADDRESSES + 1):
        logins.note_login("ada", f"192.0.2.{n}")
    logins.note_login("bob", "192.0.2.0")
    known = [n for n in range(MAX_ADDRESSES + 2) if Logins(engine).knows_address("ada", f"192.0.2.{n}")]
    assert known == list(range(1, MAX_ADDRESSES + 1))
    logins.remove("ada")
    assert not logins.knows_address("ada", "192.0.2.1")
    assert logins.knows_address("bob", "192.0.2.0")


@pytest.mark.parametrize(
    "password", ["password1234", "123456789012", "qwertyuiopas", "annannannann", "a" * 100, "adalovelace1"]
)
def test_passwords_that_are_easily_guessed_are_refused(engine: Engine, password: str) -> None:
    with pytest.raises(SettingsError, match=r"too weak \(.+\); take three or four words"):
        Logins(engine).add("adalovelace", password)


def test_no_password_takes_long_to_rate() -> None:
    strength(PASSWORD)  # which reads the lists of words
    began = time.thread_time()
    assert strength("4@8({[<369!|10$5+7%2" * 4).score == 4  # each sign may stand for letters, in a million ways
    assert time.thread_time() - began < 1


def test_a_password_typed_on_another_keyboard_is_the_same() -> None:
    assert verify("cafe\u0301 au lait", hash_password("caf\u00e9 au lait"))


def test_users_are_added_changed_checked_and_removed(engine: Engine) -> None:
    logins = Logins(engine)
    assert not logins.check("ada", PASSWORD)
    logins.add("ada", PASSWORD)
    assert logins.check("ada", PASSWORD)
    assert not logins.check("Ada", PASSWORD)
    logins.add("ada", "another word")
    assert not logins.check("ada", PASSWORD)
    assert Logins(engine).check("ada", "another word")
    assert logins.names() == ["ada"]
    logins.remove("ada")
    assert not logins.check("ada", "another word")
    with pytest.raises(SettingsError, match="no user"):
        logins.remove("ada")


def test_users_of_the_settings_may_log_in_too(engine: Engine) -> None:
    logins = Logins(engine, {"bob": hash_password(PASSWORD)})
    assert logins.check("bob", PASSWORD)
    assert logins.names() == ["bob"]
    with pytest.raises(SettingsError, match="settings"):
        logins.add("bob", "another word")
    with pytest.raises(SettingsError, match=r"'bob' stands in the settings \(web\.logins\); remove the line there"):
        logins.remove("bob")
    assert logins.check("bob", PASSWORD)


def test_removing_a_user_of_the_settings_leaves_no_older_password_behind(engine: Engine) -> None:
    Logins(engine).add("bob", "another word")
    with pytest.raises(SettingsError, match="stands in the settings"):
        Logins(engine, {"bob": hash_password(PASSWORD)}).remove("bob")
    assert Logins(engine).names() == []


@pytest.mark.parametrize("typed", ["Ren\u00e9", "Rene\u0301"])
def test_a_name_typed_on_another_keyboard_is_the_same(engine: Engine, typed: str) -> None:
    logins = Logins(engine, {"Zoe\u0308": hash_password(PASSWORD)})
    assert logins.add(typed, PASSWORD) == "Ren\u00e9"
    for name in ("Ren\u00e9", "Rene\u0301", "Zo\u00eb", "Zoe\u0308"):
        assert logins.check(name, PASSWORD)
    assert logins.names() == ["Ren\u00e9", "Zo\u00eb"]
    with pytest.raises(SettingsError, match="settings"):
        logins.add("Zo\u00eb", PASSWORD)
    logins.remove("Rene\u0301")
    assert logins.names() == ["Zo\u00eb"]


@pytest.mark.parametrize(
    "kept", ["secret", "", "scrypt$1$8$5$eA==$eA==", "scrypt$1099511627776$8$5$eA==$eA==", "scrypt$16384$8$5$!$!"]
)
def test_a_hash_in_the_settings_that_is_none_is_refused(engine: Engine, kept: str) -> None:
    with pytest.raises(SettingsError, match="'bob'"):
        Logins(engine, {"bob": kept})


@pytest.mark.parametrize("name", ["", "two words", "a\x00", "x" * 65, "\ud800", "a\u202eb"])
def test_names_that_cant_be_told_apart_are_refused(engine: Engine, name: str) -> None:
    logins = Logins(engine)
    with pytest.raises(SettingsError, match="name"):
        logins.add(name, PASSWORD)
    assert not logins.check(name, PASSWORD)


@pytest.mark.parametrize("password", ["", "oats ann te", "oats   ann   te", "oats ann " * 112, "oats ann tea\ud800"])
def test_passwords_have_a_length(engine: Engine, password: str) -> None:
    with pytest.raises(SettingsError, match="A password has 12 to 1,000 characters, of which several spaces in a row"):
        Logins(engine).add("ada", password)
    assert Logins(engine).names() == []


def test_who_has_a_shorter_password_from_before_still_logs_in(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before:
        before.setattr(users, "MIN_PASSWORD_CHARS", 8)
        Logins(engine).add("ada", "oats tea")
    logins = Logins(engine, {"bob": hash_password("rye milk")})
    assert logins.check("ada", "oats tea")
    assert logins.check("bob", "rye milk")
    logins.add("ada", PASSWORD)
    assert logins.check("ada", PASSWORD)


def test_checks_may_run_side_by_side(engine: Engine) -> None:
    logins = Logins(engine)
    logins.add("ada", PASSWORD)
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda _: logins.check("ada", PASSWORD), range(12)))


def test_the_command_asks_twice_and_never_shows_the_password(tmp_path: Path) -> None:
    where = ["--data-dir", str(tmp_path)]
    typed = f"{PASSWORD}\nsomething else\n{PASSWORD}\n{PASSWORD}\n"
    added = CliRunner().invoke(app, ["add", "ada", *where], input=typed)
    assert added.exit_code == 0
    assert PASSWORD not in added.output
    assert CliRunner().invoke(app, ["list", *where]).stdout == "ada\n"
    assert Logins(connect(f"sqlite:///{tmp_path / 'sequitur.sqlite3'}")).check("ada", PASSWORD)
    assert CliRunner().invoke(app, ["remove", "ada", "--yes", *where]).exit_code == 0
    assert CliRunner().invoke(app, ["list", *where]).stdout == ""


@pytest.mark.parametrize("command", ["add ada", "hash"])
@pytest.mark.parametrize("typed", ["", f"{PASSWORD}\n", f"{PASSWORD}\nsomething else\n"])
def test_a_password_that_is_not_typed_twice_is_told(tmp_path: Path, command: str, typed: str) -> None:
    asked = [*command.split(), *(["--data-dir", str(tmp_path)] if command != "hash" else [])]
    with pytest.raises(SettingsError, match="No password was typed, so nothing was done; type it at a terminal"):
        CliRunner().invoke(app, asked, input=typed, catch_exceptions=False)


def test_the_facts_command_does_all_that_the_page_does(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        done = CliRunner().invoke(facts_app, [*arguments, "--data-dir", str(tmp_path)], catch_exceptions=False)
        return done.stdout

    fact = run("add", "I'm vegan [b]really[/b].").strip()
    run("edit", fact, "I'm vegetarian [b]really[/b].")
    run("off", fact)
    assert "I'm vegetarian [b]really[/b].  no" in run("list")
    run("on", fact)
    saved = tmp_path / "facts.JSON"
    saved.write_text(run("export", "--json"))
    assert run("export") == "I'm vegetarian [b]really[/b].\n"
    run("remove", fact)
    assert run("export") == ""
    run("import", str(saved))
    assert run("export", "--user", "other") == ""
    assert "vegetarian" in run("export")
    with pytest.raises(FactError, match="no such fact"):
        run("remove", fact)
    with pytest.raises(FactError, match="can't be read"):
        run("import", str(tmp_path / "missing.txt"))
