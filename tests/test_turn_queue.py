"""People take turns at the model, whoever of them asks the most, and are told how many are before them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median
from threading import Event, Thread

import pytest

from assistant.llm import turn_queue
from assistant.llm.models import Models
from assistant.llm.turn_queue import QueuedLLM, TurnQueue
from assistant.runs import Runs
from assistant.settings import LLMSettings, Settings
from assistant.types import Completion, Message, Messages, Options, Turn, Wait
from assistant.wording.views import wait_progress
from tests.browser.fake import Named
from tests.scripted import ScriptedLLM

PROMPT = (Message("user", "Hi"),)


class Asker:
    """A turn of a person in a thread of its own, which notes its name once it has a seat."""

    def __init__(self, line: TurnQueue, person: str, name: str, order: list[str]) -> None:
        self.stop, self.line, self.person = Event(), line, person
        self.thread = Thread(target=self._ask, args=(name, order))
        self.thread.start()
        until(lambda: line.ahead(self.stop) is not None or not self.thread.is_alive())

    def _ask(self, name: str, order: list[str]) -> None:
        if self.line.enter(self.person, self.stop):
            order.append(name)
            self.line.leave(self.person)


def until(true: Callable[[], object]) -> None:
    for _ in range(500):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come about in five seconds")


def ended(*askers: Asker) -> None:
    for asker in askers:
        asker.thread.join(5)
        assert not asker.thread.is_alive()


def test_people_take_turns_however_much_one_of_them_asks() -> None:
    line, order = TurnQueue(1), list[str]()
    assert line.enter("zoe", Event())
    askers = [Asker(line, person, person + n, order) for person in "ab" for n in "123"]
    askers.append(Asker(line, "c", "c1", order))
    assert [line.ahead(asker.stop) for asker in askers] == [0, 2, 2, 1, 2, 2, 2]
    line.leave("zoe")
    ended(*askers)
    assert order == ["a1", "b1", "c1", "a2", "b2", "a3", "b3"]
    assert line.ahead(askers[0].stop) is None


def test_who_holds_a_seat_gives_way_to_who_holds_none() -> None:
    line, order = TurnQueue(2), list[str]()
    assert line.enter("ann", Event())
    assert line.enter("zoe", Event())
    second, bob = Asker(line, "ann", "ann again", order), Asker(line, "bob", "bob", order)
    assert (line.ahead(second.stop), line.ahead(bob.stop)) == (1, 0)
    line.leave("zoe")
    ended(second, bob)
    assert order == ["bob", "ann again"]


def test_turns_under_way_give_way_to_one_that_has_just_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    line, said = TurnQueue(2), list[str]()

    def answer(turn: QueuedLLM, name: str) -> Thread:
        thread = Thread(target=lambda: said.append(name + turn.complete([PROMPT], Options(), Event())[0].text))
        thread.start()
        return thread

    first = QueuedLLM(ScriptedLLM([" first", " first"]), line, "ann")
    answer(first, "ann").join(5)
    second = QueuedLLM(ScriptedLLM([" second"]), line, "bob")  # looks for its first sources
    waiting = answer(first, "ann again")
    waiting.join(0.3)
    assert said == ["ann first"]
    answer(second, "bob").join(5)
    waiting.join(5)
    assert sorted(said) == ["ann again first", "ann first", "bob second"]
    third, fourth = (QueuedLLM(ScriptedLLM([" third"]), line, "cem") for _ in "34")
    third.close()  # is over before it asked anything
    monkeypatch.setattr(turn_queue, "NEW_TURN_SECONDS", 0.2)  # the other one takes too long to be waited for
    first.close()
    answer(QueuedLLM(ScriptedLLM([" last"]), line, "dora"), "dora").join(5)
    assert said[-1] == "dora last"
    fourth.close()


def test_turns_that_begin_while_one_gives_way_do_not_hold_it_up() -> None:
    line = TurnQueue(1)
    line.begin("first")
    giving = Thread(target=line.give_way, args=(Event(),))
    giving.start()
    giving.join(0.3)
    assert giving.is_alive()
    line.begin("second")
    line.arrive("first")
    giving.join(3)
    assert not giving.is_alive()


def test_who_stops_leaves_the_line_and_takes_no_seat() -> None:
    line, order = TurnQueue(1), list[str]()
    assert line.enter("zoe", Event())
    ann, bob = Asker(line, "ann", "ann", order), Asker(line, "bob", "bob", order)
    ann.stop.set()
    ended(ann)
    assert line.ahead(bob.stop) == 0
    line.leave("zoe")
    ended(bob)
    assert order == ["bob"]
    assert line.enter("ann", Event())


def test_a_turn_keeps_its_seat_for_all_its_requests_and_gives_it_back_once() -> None:
    line = TurnQueue(1)
    seats = [QueuedLLM(ScriptedLLM(["one", "two"]), line, "ann"), QueuedLLM(ScriptedLLM(["three"]), line, "bob")]
    for _ in range(2):
        seats[0].complete([PROMPT], Options(), Event())
    stopped = Event()
    stopped.set()
    assert list(seats[1].stream(PROMPT, Options(), stopped))[-1].finish == "cancelled"
    seats[1].close()
    seats[0].close()
    seats[0].close()
    assert line.enter("bob", Event())
    full = Event()
    waiting = Thread(target=line.enter, args=("ann", full))
    waiting.start()
    until(lambda: line.ahead(full) == 0)
    full.set()
    waiting.join(5)


def test_the_engine_rests_until_all_that_have_begun_have_their_first_sources() -> None:
    rests: list[float] = []
    line = TurnQueue(1, rests.append)
    line.begin("first")
    line.begin("second")
    line.arrive("first")
    line.arrive("first")
    assert rests == [turn_queue.NEW_TURN_SECONDS] * 2
    line.arrive("second")
    assert rests[2:] == [0]


def test_a_turn_that_takes_long_does_not_keep_the_engine_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    line = TurnQueue(1, rests.append)
    monkeypatch.setattr(turn_queue, "NEW_TURN_SECONDS", 0.01)
    line.begin("slow")
    time.sleep(0.02)
    line.begin("quick")
    line.arrive("quick")
    assert rests[-1] == 0


class Counting(Named):
    """Counts its replies."""

    written = 0

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        time.sleep(0.002)
        yield from super().stream(messages, options, stop)
        self.written += 1


class Resting(Named):
    """Notes how long it is to rest."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.rests: list[float] = []

    def rest(self, seconds: float) -> None:
        self.rests.append(seconds)


@pytest.fixture
def models(tmp_path: Path) -> Models:
    models = Models(Settings(data_dir=tmp_path, hub=False, llm=LLMSettings(slots=1)))
    models.take_up(models.known.named(), Counting("counting"))
    return models


def test_the_engine_of_the_models_rests_where_it_can(tmp_path: Path) -> None:
    models = Models(Settings(data_dir=tmp_path, hub=False, llm=LLMSettings(slots=1)))
    engine = Resting("resting")
    models.take_up(models.known.named(), engine)
    with models.lent("ann") as llm:
        assert engine.rests == [turn_queue.NEW_TURN_SECONDS]
        list(llm.stream(PROMPT, Options(), Event()))
    assert engine.rests[1:] == [0]


def test_nobody_waits_three_times_as_long_as_most_do(models: Models) -> None:
    """One person has twenty turns at once, seven others one after the other; waits are counted in others' turns."""
    engine, full = models.running.engine if models.running else None, Event()
    assert isinstance(engine, Counting)

    def asked(person: str) -> int:
        before = engine.written
        with models.lent(person) as llm:
            list(llm.stream(PROMPT, Options(), Event()))
        return engine.written - before

    def one_after_the_other(person: str) -> list[int]:
        full.wait(5)
        return [asked(person) for _ in range(4)]

    with ThreadPoolExecutor(27) as pool:
        greedy = [pool.submit(asked, "greedy") for _ in range(20)]
        people = [pool.submit(one_after_the_other, f"person {n}") for n in range(7)]
        full.set()
        waited = [turns for one in people for turns in one.result()]
    assert max(waited) <= 3 * median(waited)
    assert sum(one.result() > 3 * median(waited) for one in greedy) > 10


def test_the_line_of_a_running_turn_tells_how_many_are_before_it_and_is_not_stored(models: Models) -> None:
    runs, sat = Runs(models.line.ahead), Event()
    assert models.line.enter("zoe", sat)

    def answering(stop: Event) -> Iterator[Turn]:
        turn = Turn("?", step="draft")
        yield turn
        with models.lent("ann") as llm:
            *_, last = llm.stream(PROMPT, Options(), stop)
        yield replace(turn, draft=last.text, status="done")

    run = runs.start("ann", "c", answering)
    until(lambda: run.turn.wait)
    assert run.turn.wait == Wait("line")
    assert "wait" not in run.turn.to_json()
    models.line.leave("zoe")
    run.join(5)
    last = run.turn
    assert not last.wait
    assert last.status == "done"


@pytest.mark.parametrize(
    ("people", "line"), [(0, "you are next"), (1, "1 person before you"), (12, "12 people before you")]
)
def test_how_it_is_said(people: int, line: str) -> None:
    assert wait_progress(Turn("?", step="draft", wait=Wait("line", total=people))) == line
