"""What each person used, and how much they may."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event

import pytest
from sqlalchemy import Engine
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.errors import LimitError, SequiturError, UtteranceError
from assistant.settings import LimitSettings, Settings
from assistant.store.usage import Usage, UserUsage
from assistant.types import Tokens, Turn, now
from assistant.upkeep.accounts import Accounts
from assistant.web.allowance import Allowance
from assistant.web.library import Document, OwnDocuments, check_room
from assistant.web.render import render
from assistant.web.server import serve
from benchmarks.visitor import Visitor
from tests.browser.fake import Loaded, Script, house

TODAY = now().date().isoformat()


def turns() -> Iterator[Turn]:
    turn = Turn("What is a good diet?")
    yield turn
    yield replace(turn, spent={"answer": Tokens(120, 30)}, status="done")


def test_what_a_turn_cost_is_kept_by_person_and_shown(engine: Engine, database_url: str, tmp_path: Path) -> None:
    allowance = Allowance(Usage(engine), LimitSettings())
    for user, times in (("ann", 2), ("bob", 1)):
        for _ in range(times):
            list(allowance.watch(user, turns()))
    ann, bob = Usage(engine).of_all(1)
    assert (ann.user, ann.turns, ann.read, ann.written, ann.last) == ("ann", 2, 240, 60, TODAY)
    assert (bob.user, bob.turns) == ("bob", 1)
    told = CliRunner().invoke(
        app, ["users", "usage", "--data-dir", str(tmp_path)], env={"SEQUITUR_DATABASE": database_url}
    )
    assert told.exit_code == 0
    [line] = [line for line in told.output.splitlines() if line.strip().startswith("ann")]
    assert line.split()[1:4] == ["2", "240", "60"]


def test_of_old_days_only_those_asked_for_count(engine: Engine) -> None:
    usage = Usage(engine)
    usage.begin("ann")
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE usage SET day = '2001{TODAY[4:]}'")
    usage.begin("ann")
    assert [one.turns for one in usage.of_all(30)] == [1]
    assert [one.turns for one in usage.of_all(100 * 366)] == [2]
    assert [one.turns for one in usage.of_all(10**12)] == [2], "longer than there are dates"


def test_a_message_too_many_is_refused_before_anything_is_done(engine: Engine) -> None:
    allowance = Allowance(Usage(engine), LimitSettings(max_daily_turns=2))
    for _ in range(2):
        assert len(list(allowance.watch("ann", turns()))) == 2
    with pytest.raises(LimitError, match=r"2 messages answered today.*ask again tomorrow"):
        next(allowance.watch("ann", turns()))
    assert len(list(allowance.watch("bob", turns()))) == 2
    assert {one.user: one.turns for one in Usage(engine).of_all(1)} == {"ann": 2, "bob": 1}


def test_a_message_that_cannot_be_answered_counts_as_none(engine: Engine) -> None:
    def refused() -> Iterator[Turn]:
        raise UtteranceError("The message is empty; type a question first.")
        yield Turn("")

    with pytest.raises(UtteranceError):
        next(Allowance(Usage(engine), LimitSettings(max_daily_turns=1)).watch("ann", refused()))
    assert Usage(engine).of_all(1) == []


@pytest.fixture
def usages(engine: Engine, reopened: Callable[[], Engine]) -> list[Usage]:
    """Those of two processes on one database."""
    return [Usage(engine), Usage(reopened())]


def test_of_two_at_once_one_has_the_last_message_of_a_day(usages: list[Usage]) -> None:
    for n in range(10):
        user, both = f"user {n}", Barrier(2, timeout=20)
        assert usages[0].begin(user, 2)

        def begun(usage: Usage, user: str = user, both: Barrier = both) -> bool:
            both.wait()
            return usage.begin(user, 2)

        with ThreadPoolExecutor(2) as pool:
            assert sum(pool.map(begun, usages)) == 1
    assert {one.turns for one in usages[0].of_all(1)} == {2}


def test_of_many_at_once_no_more_begin_than_may(usages: list[Usage]) -> None:
    with ThreadPoolExecutor(8) as pool:
        begun = list(pool.map(lambda n: usages[n % 2].begin("ann", 5), range(24)))
    assert sum(begun) == 5
    assert usages[0].of_all(1)[0].turns == 5


def test_it_goes_with_the_account(engine: Engine, tmp_path: Path) -> None:
    accounts = Accounts(Settings(data_dir=tmp_path), engine)
    Usage(engine).begin("me")
    from ptkb.store import Ptkb

    Ptkb(engine).add("me", "I'm vegan.")
    accounts.delete("me")
    assert Usage(engine).of_all(1) == []


def test_names_are_no_html_and_nothing_is_shown_of_nothing() -> None:
    assert "<b>" not in render("usage", used=[UserUsage("<b>", 1, 2, 3, 60.0, TODAY)], days=30)
    assert not render("usage", used=[], days=30).strip()


class TestDocuments:
    @pytest.fixture
    def files(self, tmp_path: Path) -> dict[str, Path]:
        made = [tmp_path / name for name in ("a.txt", "b.txt")]
        for file in made:
            file.write_bytes(b"x" * 750_000)
        return {file.name: file for file in made}

    def test_too_many(self, files: dict[str, Path]) -> None:
        kept = [Document("1", "old.txt", 1)]
        check_room(kept, files, LimitSettings(max_documents=3))
        with pytest.raises(LimitError, match="keep 2 documents, and with these there would be 3; remove some"):
            check_room(kept, files, LimitSettings(max_documents=2))

    def test_one_of_the_same_name_takes_the_others_place(self, files: dict[str, Path]) -> None:
        kept = [Document("1", "a.txt", 1, files["a.txt"]), Document("2", "b.txt", 1, files["b.txt"])]
        check_room(kept, files, LimitSettings(max_documents=2, max_documents_mb=2))

    def test_too_large(self, files: dict[str, Path], tmp_path: Path) -> None:
        old = tmp_path / "old.bin"
        old.write_bytes(b"x" * 750_000)
        with pytest.raises(LimitError, match=r"2 MB together.*2\.1 MB"):
            check_room([Document("1", "old.txt", 1, old)], files, LimitSettings(max_documents_mb=2))

    @pytest.mark.lucene
    def test_two_uploads_at_once_are_not_both_the_last(self, tmp_path: Path) -> None:
        settings = Settings(data_dir=tmp_path, limits=LimitSettings(max_documents=1))
        both, first = [OwnDocuments(settings) for _ in range(2)], Barrier(2, timeout=60)
        for name in ("a.txt", "b.txt"):
            (tmp_path / name).write_text(f"The key of {name} hangs behind the green door.")

        def added(documents: OwnDocuments, name: str) -> str:
            first.wait()
            said = elsewhere = "is being updated elsewhere"
            while elsewhere in said:  # on a slow computer the other's takes longer than one waits for it
                try:
                    said = "; ".join(documents.add("ann", [tmp_path / name], lambda done, total: None, Event()))
                except SequiturError as error:
                    said = str(error)
            return said

        with ThreadPoolExecutor(2) as pool:
            said = sorted(pool.map(added, both, ("a.txt", "b.txt")))
        assert said[0] == ""
        assert said[1].startswith("You may keep 1 documents")
        assert len(both[0].list("ann")) == 1

    @pytest.mark.lucene
    def test_the_page_keeps_to_it(self, tmp_path: Path, files: dict[str, Path]) -> None:
        documents = OwnDocuments(Settings(data_dir=tmp_path, limits=LimitSettings(max_documents=1)))
        with pytest.raises(LimitError):
            documents.add("ann", list(files.values()), lambda done, total: None, Event())
        assert documents.list("ann") == []


@pytest.mark.parametrize(("name", "sees"), [("ann", True), ("bob", False)])
def test_only_admins_are_sent_what_people_used(tmp_path: Path, name: str, sees: bool) -> None:
    built, logins = house(tmp_path, Script(), Loaded())  # ann is its admin
    for user in ("ann", "bob"):
        logins.add(user, f"oats {user} tea")
    built.usage.begin("zoe")
    server = serve(built, logins)
    visitor = Visitor(server.url)
    try:
        visitor.log_in(name, f"oats {name} tea")
        opened = visitor.send("None", "load").text
    finally:
        visitor.close()
        server.close()
    assert "process_completed" in opened
    assert ("Used in 30 days" in opened, "zoe" in opened) == (sees, sees)
