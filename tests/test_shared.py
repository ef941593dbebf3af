"""What several processes on one database know of each other, on real files of SQLite and a real PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier, Event

import psutil
import pytest
import time_machine
from sqlalchemy import Engine, event

from assistant.errors import BusyError, StoreError
from assistant.library.index import list_documents
from assistant.library.shelves import own_library
from assistant.runs import Runs
from assistant.store import shared, users
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.store.shared import MAX_SILENT_SECONDS, Leases, WrongPasswords, process_address, process_id
from assistant.store.tokens import AccessTokens
from assistant.store.usage import Usage
from assistant.store.users import Logins
from assistant.types import Answer, Turn, now
from assistant.web.logins import FREE_TRIES, LONGEST_WAIT, shared_counts, wait_after
from benchmarks.light import light_settings, served
from benchmarks.visitor import Visitor
from ptkb.store import Ptkb
from tests.fixtures_postgres import newer

HOST = process_address().rsplit(" ", 2)[0]
ELSEWHERE = "another-computer 1 0.0"


@pytest.fixture
def mine(engine: Engine) -> Leases:
    return Leases(engine)


@pytest.fixture
def other(reopened: Callable[[], Engine]) -> Leases:
    """Those of a process on another computer."""
    return Leases(reopened(), "other", ELSEWHERE)


def silent_for(engine: Engine, seconds: float) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE answering SET seen = seen - {seconds}")


def test_a_conversation_is_answered_by_one_process_at_a_time(mine: Leases, other: Leases) -> None:
    assert mine.begin("ada", "c") == 1
    with pytest.raises(BusyError, match="An answer is being written in this conversation"):
        other.begin("ada", "c")
    other.end("ada", "c")  # is not the other's to end
    with pytest.raises(BusyError):
        other.begin("ada", "c")
    assert other.begin("ada", "d") == 2
    assert other.begin("bob", "c") == 1
    mine.end("ada", "c")
    assert other.begin("ada", "c") == 2


def test_of_many_that_begin_at_once_one_does(mine: Leases, other: Leases) -> None:
    def begins(leases: Leases) -> bool:
        try:
            return bool(leases.begin("ada", "c"))
        except BusyError:
            return False

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(begins, [mine, other] * 6)) == 1


def test_of_many_that_begin_at_once_in_two_processes_as_many_go_on_as_may(mine: Leases, other: Leases) -> None:
    for n in range(8):
        user, together = f"user {n}", Barrier(4, timeout=20)
        mine.begin(user, "before")

        def begun(k: int, user: str = user, together: Barrier = together) -> int:
            together.wait()
            return (mine, other)[k % 2].begin(user, f"{k}")

        with ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(begun, range(4))) == [2, 3, 4, 5]


def test_a_process_asked_to_stop_hears_of_it_and_no_other_user_can_ask(mine: Leases, other: Leases) -> None:
    other.begin("ada", "c")
    other.begin("ada", "d")
    mine.stop("ada", "c")
    mine.stop("bob", "d")
    assert (mine.heartbeat(), other.heartbeat()) == (set(), {("ada", "c")})


def test_one_on_another_computer_counts_as_dead_once_it_is_silent(mine: Leases, other: Leases, engine: Engine) -> None:
    other.begin("ada", "c")
    silent_for(engine, MAX_SILENT_SECONDS - 5)
    other.heartbeat()
    silent_for(engine, MAX_SILENT_SECONDS - 5)
    with pytest.raises(BusyError):
        mine.begin("ada", "c")
    silent_for(engine, 10)
    assert mine.begin("ada", "c") == 1
    assert other.heartbeat() == set()


def test_one_on_this_computer_counts_as_dead_at_once(mine: Leases, engine: Engine) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as ending:
        began = psutil.Process(ending.pid).create_time() - psutil.boot_time()
        dying = Leases(engine, "dying", f"{HOST} {ending.pid} {began}")
        dying.begin("ada", "c")
        with pytest.raises(BusyError):
            mine.begin("ada", "c")
        ending.kill()
    assert mine.begin("ada", "c") == 1
    Leases(engine, "reused", f"{HOST} {psutil.Process().pid} 1.0").begin("bob", "c")
    assert mine.begin("bob", "c") == 1  # the number is another process's now


def test_of_two_that_find_the_same_dead_one_only_one_begins(
    mine: Leases, other: Leases, engine: Engine, reopened: Callable[[], Engine]
) -> None:
    if engine.dialect.name == "postgresql":
        pytest.skip("there the second waits until the first has begun")
    third, looked = Leases(reopened(), "third"), list[str]()
    other.begin("ada", "c")
    silent_for(engine, MAX_SILENT_SECONDS + 5)

    @event.listens_for(engine, "after_cursor_execute")
    def begin_meanwhile(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("SELECT answering.") and not looked:
            looked.append(statement)
            third.begin("ada", "c")

    with pytest.raises(BusyError):
        mine.begin("ada", "c")
    assert looked
    assert third.is_elsewhere("c") is False


def test_a_clock_that_is_set_makes_no_living_process_dead(
    mine: Leases, other: Leases, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine.begin("ada", "c")
    began, started = psutil.Process.create_time, psutil.boot_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: began(self) + 3600)  # as Linux tells it then
    monkeypatch.setattr(psutil, "boot_time", lambda: started() + 3600)
    with pytest.raises(BusyError):
        other.begin("ada", "c")


def test_a_process_that_is_forked_is_another_one() -> None:
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        forked = pool.submit(process_id), pool.submit(process_address)
        assert process_id() != forked[0].result()
        assert process_address() != forked[1].result()
    assert process_id() == process_id()


def test_a_turn_is_shown_as_running_while_its_process_lives(
    engine: Engine, mine: Leases, other: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Conversations(engine)
    made, half = store.new("ada").id, Turn("Why?", answer=Answer("Because"))
    store.save_turn("ada", made, half)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE turns SET process = 'other'")
    other.begin("ada", made)
    assert store.get("ada", made).turns == (half,)
    silent_for(engine, MAX_SILENT_SECONDS + 1)
    [stopped] = store.get("ada", made).turns
    assert (stopped.status, stopped.answer) == ("stopped", Answer("Because"))


@pytest.fixture
def runs(engine: Engine) -> Iterator[Callable[[str, str], Runs]]:
    opened: list[Runs] = []

    def make(process: str, place: str = ELSEWHERE) -> Runs:
        opened.append(Runs(shared=Leases(engine, process, place), max_per_user=2))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def waiting(stop: Event) -> Iterator[Turn]:
    yield Turn("Why?")
    stop.wait(60)
    yield Turn("Why?", status="stopped")


def test_two_workers_write_one_answer_in_a_conversation_and_two_for_a_user(
    runs: Callable[[str], Runs], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assistant.runs.SWEEP_SECONDS", 0.05)
    one, two = runs("one"), runs("two")
    run = one.start("ada", "c", waiting)
    for conversation, why in (("c", "in this conversation"), ("d", None), ("e", "2 answers")):
        if why is None:
            two.start("ada", conversation, waiting)
            continue
        with pytest.raises(BusyError, match=why):
            two.start("ada", conversation, waiting)
    two.stop("bob", "c")
    two.stop("ada", "c")
    run.join(10)
    assert run.over
    assert two.start("ada", "c", waiting)


def test_where_another_worker_writes_it_is_busy(runs: Callable[[str], Runs]) -> None:
    one, two = runs("one"), runs("two")
    one.start("ada", "c", waiting)
    assert two.busy("ada", "c")
    assert not two.busy("ada", "d")
    one.close()
    assert not two.busy("ada", "c")


def test_what_is_temporary_is_told_nobody(runs: Callable[[str], Runs], engine: Engine) -> None:
    runs("one").start("ada", "temporary-c", waiting)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM answering").scalar() == 0


@pytest.mark.parametrize("conversation", ["c", "temporary-c"])
def test_no_answer_begins_once_the_database_is_of_a_newer_version(
    conversation: str, runs: Callable[[str], Runs], engine: Engine
) -> None:
    one = runs("one")
    with newer(engine), pytest.raises(StoreError, match="A newer version of Sequitur uses this database now"):
        one.start("ada", conversation, waiting)
    assert one.start("ada", conversation, waiting)


def test_a_worker_whose_clock_is_wrong_writes_the_moments_of_the_server(
    postgres_emptied: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(users, "MAX_ADDRESSES", 1)
    engine = connect(postgres_emptied)
    store, logins, uses = Conversations(engine), users.Logins(engine), Usage(engine)
    with time_machine.travel(now() + timedelta(days=400)):
        before, other = store.new("ada"), store.new("ada")
        store.save_turn("ada", other.id, Turn("Why?"))
        logins.note_login("ada", "192.0.2.1")
        uses.begin("ada")
        tokens, ptkb = AccessTokens(engine), Ptkb(engine)
        fact = ptkb.switch("ada", ptkb.add("ada", "I like tea.").id, on=False)
        ptkb.import_text("ada", "I walk.")
        assert tokens.user(tokens.make("ada")) == "ada"
        [used] = uses.of_all(1)
    store.save_turn("ada", before.id, Turn("Why?"))
    assert [one.id for one in store.list("ada")] == [before.id, other.id]
    logins.note_login("ada", "192.0.2.2")
    assert [logins.knows_address("ada", address) for address in ("192.0.2.1", "192.0.2.2")] == [False, True]
    [token] = tokens.list("ada")
    told = [moment for one in (fact, *ptkb.facts("ada"), other) for moment in (one.created, one.changed)]
    days = {*(str(moment.date()) for moment in told), token.created[:10], token.used[:10], used.last}
    assert days <= {str((now() - timedelta(hours=hours)).date()) for hours in (0, 1)}


def test_wrong_passwords_are_counted_for_all_workers(
    engine: Engine, reopened: Callable[[], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = (WrongPasswords(to, "pair", partial(wait_after, free=FREE_TRIES)) for to in (engine, reopened()))
    for _ in range(FREE_TRIES - 1):
        one.note(("ada", "192.0.2.1"))
    assert two.wait(("ada", "192.0.2.1")) == 0
    two.note(("ada", "192.0.2.1"))
    assert 0 < one.wait(("ada", "192.0.2.1")) <= 2
    assert one.wait(("ada", "192.0.2.2")) == 0
    for _ in range(20):
        two.note(("ada", "192.0.2.1"))
    assert LONGEST_WAIT - 60 < one.wait(("ada", "192.0.2.1")) <= LONGEST_WAIT
    one.forget(("ada", "192.0.2.1"))
    assert two.wait(("ada", "192.0.2.1")) == 0
    monkeypatch.setattr(shared, "MAX_COUNTED_KEYS", 3)
    for n in range(6):
        one.note(f"zoe{n}")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM wrong_passwords").scalar() == 3
        kept = connection.exec_driver_sql("SELECT key FROM wrong_passwords").scalars().all()
    assert not any("zoe" in key for key in kept)


def test_side_by_side_no_wrong_password_goes_uncounted(engine: Engine, reopened: Callable[[], Engine]) -> None:
    both = [WrongPasswords(to, "name", lambda count: 100.0 * count) for to in (engine, reopened())]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: both[n % 2].note("ada"), range(12)))
    assert 1100 < both[0].wait("ada") <= 1200


def test_only_a_database_of_several_workers_counts_for_them(engine: Engine) -> None:
    assert (shared_counts(engine) is not None) is (engine.dialect.name == "postgresql")


@pytest.mark.lucene
def test_what_is_added_and_removed_at_one_worker_is_searched_so_at_another(tmp_path: Path) -> None:
    settings = light_settings(tmp_path)
    Logins(connect(settings.database_url)).add("ann", "oats ann tea")
    with served(settings) as first, served(settings) as second:
        one, other = Visitor(first.url), Visitor(second.url)
        for visitor in (one, other):
            visitor.log_in("ann", "oats ann tea")

        def found() -> str:
            """What the other worker finds, which has opened the library by the second time."""
            return other.send("collected", "find", query="quinoa").text

        one.upload("seeds.txt", b"Quinoa is a seed of the Andes.")
        assert "seed of the Andes" in found()
        one.upload("recipe.txt", b"Boil quinoa for a quarter of an hour.")
        assert "quarter of an hour" in found()
        [document] = [one for one in list_documents(own_library("ann"), settings) if one.name == "seeds.txt"]
        one.send("documents", "drop", document=document.id)
        left = found()
        assert "quarter of an hour" in left
        assert "seed of the Andes" not in left
        one.close()
        other.close()
