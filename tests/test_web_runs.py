"""Answers being written: apart from their watchers, one a conversation, kept whatever happens."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event, get_ident

import pytest

from assistant import runs as module
from assistant import turn as flow
from assistant.errors import BusyError, StoreError, UtteranceError
from assistant.protocols import Parts
from assistant.runs import PAUSE, Place, Run, Runs, watch
from assistant.types import Messages, Turn
from assistant.web.watchers import MOST_TABS, Watchers
from tests.scripted import ScriptedLLM
from tests.test_whole import FILLER, SAID, document, work_on


def growing(count: int, go: Event | None = None, pause: float = 0.0) -> Iterator[Turn]:
    turn = Turn("?")
    for n in range(count):
        yield replace(turn, draft=str(n))
        time.sleep(pause)
        if go:
            go.wait(5)
    yield replace(turn, status="done")


def seen(run: Run) -> list[Turn]:
    async def collect() -> list[Turn]:
        return [turn async for turn in watch(run)]

    # In a thread of its own: a browser test that ran before may have left this one with a running loop.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, collect()).result()


def test_the_last_snapshot_always_comes_and_there_are_few_of_them() -> None:
    began = time.perf_counter()
    turns = seen(Runs().start("me", "c", lambda _: growing(300, pause=0.001)))
    assert turns[-1].status == "done"
    assert len(turns) <= (time.perf_counter() - began) / PAUSE + 2


def test_there_are_never_more_than_so_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RUNS", 3)
    before, runs, go = threading.active_count(), Runs(), Event()
    written = [runs.start(f"user {n}", "c", lambda _: growing(1, go)) for n in range(3)]
    for n in range(20):
        with pytest.raises(BusyError, match="no other can begin; ask again in a minute"):
            runs.start(f"another {n}", "c", lambda _: growing(1))
    assert threading.active_count() <= before + 3 + 1  # with the one that looks who watches
    go.set()
    for run in written:
        run.join(20)
    assert seen(runs.start("another", "c", lambda _: growing(1)))[-1].status == "done"
    runs.close()


def test_one_at_a_time_in_a_conversation() -> None:
    runs, go = Runs(), Event()
    run = runs.start("me", "c", lambda _: growing(1, go))
    with pytest.raises(StoreError, match="being written"):
        runs.start("me", "c", lambda _: growing(1))
    other = runs.start("me", "d", lambda _: growing(1))
    go.set()
    assert seen(run)[-1].status == seen(other)[-1].status == "done"
    assert runs.of("me", "c") is None
    assert not runs.busy("me", "c")
    assert seen(runs.start("me", "c", lambda _: growing(1)))[-1].status == "done"


def test_turns_one_after_the_other_run_in_the_same_threads() -> None:
    runs, threads = Runs(), set[int]()

    def noting(_stop: Event) -> Iterator[Turn]:
        yield Turn("?")
        threads.add(get_ident())
        yield Turn("?", status="done")

    for n in range(20):
        assert seen(runs.start("me", f"c{n}", noting))[-1].status == "done"
    assert len(threads) <= 2  # the first may still be on its way back as the second turn begins


def test_one_that_is_about_to_begin_counts() -> None:
    runs = Runs()

    def beginning(_stop: Event) -> Iterator[Turn]:
        with pytest.raises(StoreError, match="being written"):
            runs.start("me", "c", lambda _: growing(1))
        assert runs.of("me", "c") is None
        assert runs.busy("me", "c")
        yield Turn("?", status="done")

    runs.start("me", "c", beginning).join(5)


def test_a_run_of_two_turns_keeps_the_newest_of_each() -> None:
    one, two = Turn("?", id="one"), Turn("?", id="two")
    turns = iter([one, replace(one, draft="1"), two, replace(two, draft="2")])
    run = Runs().start("me", "c", lambda _: turns, Place("old", ("concat", "summary")))
    run.join(5)
    assert [(turn.id, turn.draft) for turn in run.turns.values()] == [("one", "1"), ("two", "2")]
    assert run.turn.id == "two"


def test_a_run_belongs_to_its_user() -> None:
    runs, go = Runs(), Event()
    run = runs.start("ann", "c", lambda _: growing(1, go))
    assert runs.of("bob", "c") is None
    runs.stop("bob", "c")
    assert not run.stop.is_set()
    go.set()
    run.join(5)


def test_what_is_refused_leaves_no_run_behind() -> None:
    def refused(_stop: Event) -> Iterator[Turn]:
        raise UtteranceError("empty")
        yield

    runs = Runs()
    with pytest.raises(UtteranceError):
        runs.start("me", "c", refused)
    assert runs.of("me", "c") is None


@pytest.mark.parametrize(
    ("error", "said"), [(StoreError("The disk is full."), "disk is full"), (KeyError("bug"), "log")]
)
def test_a_run_that_breaks_ends_as_failed_with_what_was_written(error: Exception, said: str) -> None:
    def breaking(_stop: Event) -> Iterator[Turn]:
        yield Turn("?", draft="kept")
        raise error

    last = seen(Runs().start("me", "c", breaking))[-1]
    assert (last.status, last.draft) == ("failed", "kept")
    assert said in last.error


def test_close_stops_all_and_waits() -> None:
    def stoppable(stop: Event) -> Iterator[Turn]:
        yield Turn("?")
        stop.wait(5)
        yield Turn("?", status="stopped")

    runs = Runs()
    running = [runs.start("me", name, stoppable) for name in "ab"]
    runs.close()
    assert [(run.over, run.turn.status) for run in running] == [(True, "stopped")] * 2


def test_a_tab_watches_only_what_it_was_last_asked_for() -> None:
    watchers = Watchers()
    first, other = watchers.enter("tab"), watchers.enter("other")
    assert first()
    second = watchers.enter("tab")
    assert (first(), second(), other()) == (False, True, True)
    watchers.leave("tab")
    assert not second()


def test_of_too_many_tabs_the_one_that_asked_the_longest_ago_is_forgotten() -> None:
    watchers = Watchers()
    first, second = watchers.enter("first"), watchers.enter("second")
    again = watchers.enter("first")
    for n in range(MOST_TABS - 1):
        watchers.enter(f"tab {n}")
    assert (first(), second(), again()) == (False, False, True)
    watchers.enter("one more")
    assert not again()


def test_no_more_answers_at_a_time_are_written_for_a_user_than_may_be() -> None:
    runs, go = Runs(max_per_user=2), Event()
    running = [runs.start("ann", name, lambda _: growing(1, go)) for name in "ab"]
    with pytest.raises(BusyError, match="2 answers are being written for you already; wait for one of them or stop"):
        runs.start("ann", "c", lambda _: growing(1))
    other = runs.start("bob", "c", lambda _: growing(1, go))
    go.set()
    for run in (*running, other):
        run.join(5)
    runs.start("ann", "c", lambda _: growing(1)).join(5)


@pytest.mark.parametrize(("most", "begun"), [(1, 1), (3, 3), (0, 5)])
def test_how_many_answers_that_are_is_a_setting(most: int, begun: int) -> None:
    runs, go, running = Runs(max_per_user=most), Event(), []
    for n in range(5):
        try:
            running.append(runs.start("ann", f"{n}", lambda _: growing(1, go)))
        except BusyError as error:
            assert str(error).startswith("1 answer is being written" if most == 1 else f"{most} answers are being")  # noqa: PT017
    assert len(running) == begun
    go.set()
    for run in running:
        run.join(5)


def test_work_on_whole_documents_that_nobody_watches_stops_and_keeps_what_was_done(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_UNWATCHED_SECONDS", 0.3)
    monkeypatch.setattr(module, "SWEEP_SECONDS", 0.05)
    oats, stops = document("oats", *(f"{said} {FILLER}" for said in SAID)), list[Event]()

    def slow(_: Messages) -> str:
        stops[0].wait(10)
        return SAID[1]

    def working(stop: Event) -> Iterator[Turn]:
        stops.append(stop)
        return flow.run(work_on("summary", oats), replace(parts, llm=ScriptedLLM([SAID[0], slow])), stop)

    run = Runs().start("ann", "left", working)
    run.join(10)
    assert run.over
    assert run.turn.status == "stopped"
    assert run.turn.answer
    assert f"- {SAID[0]} [1]" in run.turn.answer.text


def test_what_nobody_watches_stops_and_what_somebody_does_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNWATCHED_SECONDS", 0.5)
    monkeypatch.setattr(module, "SWEEP_SECONDS", 0.05)

    def long(stop: Event) -> Iterator[Turn]:
        turn = Turn("?")
        yield turn
        yield replace(turn, status="stopped" if stop.wait(2) else "done")

    runs = Runs()
    left, watched = runs.start("ann", "left", long), runs.start("ann", "watched", long)
    assert seen(watched)[-1].status == "done"
    left.join(5)
    assert left.turn.status == "stopped"
    assert runs.of("ann", "left") is None
