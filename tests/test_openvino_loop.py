"""The loop that writes replies side by side: who is served, who is let go, and what happens when a batch fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest

from assistant.errors import ModelError
from assistant.llm.engines.openvino_loop import PIECE, Job, Loop

END = 0
REST = 30.0


@dataclass
class Handle:
    """A request as the engine has it: counts on from its prompt's last token, down to `END`."""

    tokens: list[int]
    room: int
    unread: list[int] = field(default_factory=list)
    status: str = "RUNNING"

    def step(self) -> None:
        self.tokens.append(self.tokens[-1] - 1)
        self.unread.append(self.tokens[-1])
        self.room -= 1
        if self.tokens[-1] == END or not self.room:
            self.status = "FINISHED"

    def can_read(self) -> bool:
        return bool(self.unread)

    def read(self) -> dict[int, Any]:
        if self.tokens[0] == 997 and self.tokens[-1] == END:
            raise RuntimeError("it can't be read")
        ids, self.unread = self.unread, []
        return {0: SimpleNamespace(generated_ids=ids, generated_log_probs=[-0.5] * len(ids))}

    def get_status(self) -> Any:
        return SimpleNamespace(name=self.status)

    def cancel(self) -> None:
        self.status = "CANCEL"


class Engine:
    """A pipeline whose steps fail while one of its requests began with a token of `poison`."""

    def __init__(self, poison: set[int], widest: list[int]) -> None:
        self.handles: list[Handle] = []
        self.poison, self.widest = poison, widest

    def add_request(self, _name: int, ids: Any, room: int) -> Handle:
        if ids[0][0] == 998:
            raise ValueError("no such setting")
        handle = Handle([int(token) for token in ids[0]], room)
        if handle.tokens[0] == 999:
            handle.status = "IGNORED"
        self.handles.append(handle)
        return handle

    def has_non_finished_requests(self) -> bool:
        return any(handle.status == "RUNNING" for handle in self.handles)

    def step(self) -> None:
        going = [handle for handle in self.handles if handle.status == "RUNNING"]
        self.widest.append(len(going))
        if any(handle.tokens[0] in self.poison for handle in going):
            raise RuntimeError("a check failed\nno memory for this one")
        for handle in going:
            handle.step()


@pytest.fixture
def loop_with() -> Iterator[Callable[..., tuple[Loop, list[int]]]]:
    loops: list[Loop] = []

    def make(*poison: int, slots: int = 4) -> tuple[Loop, list[int]]:
        widest: list[int] = []
        loops.append(Loop(lambda: Engine(set(poison), widest), lambda ids: ids, slots))
        return loops[-1], widest

    yield make
    for loop in loops:
        loop.close()


def job(*prompt: int, room: int = 100, stop: Event | None = None, owner: object = None) -> Job:
    return Job(prompt, room, lambda left: left, stop or Event(), owner or object())


def test_tokens_come_with_their_log_probabilities(loop_with: Any) -> None:
    loop, _ = loop_with()
    assert list(loop.start(job(7, 3))) == [(2, -0.5), (1, -0.5), (0, -0.5)]


def test_how_far_a_long_prompt_is_read_is_told_before_its_first_token(loop_with: Any) -> None:
    loop, _ = loop_with()
    prompt = [5] * (2 * PIECE) + [1]
    found = list(loop.start(job(*prompt)))
    assert found[0] == PIECE
    assert found[-1] == (0, -0.5)


def test_the_room_ends_a_reply(loop_with: Any) -> None:
    loop, _ = loop_with()
    assert [token for token, _ in loop.start(job(9, room=2))] == [8, 7]


def test_jobs_are_written_side_by_side_up_to_the_slots(loop_with: Any) -> None:
    loop, widest = loop_with(slots=2)
    jobs = [job(400), job(300)]
    for one in jobs:
        loop.start(one)
    assert [len(list(one)) for one in jobs] == [100, 100]
    assert max(widest) == 2


def test_who_leaves_makes_room(loop_with: Any) -> None:
    loop, _ = loop_with(slots=1)
    stream = iter(loop.start(job(10_000, room=9000)))
    next(stream)
    stream.close()
    assert [token for token, _ in loop.start(job(2))] == [1, 0]


def in_time(work: Callable[[], Any]) -> Any:
    """What the work returns, which has to be there long before a rest of `REST` seconds is over."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(REST / 3)


def test_replies_wait_while_it_rests_and_go_on_afterwards(loop_with: Any) -> None:
    loop, widest = loop_with()
    loop.rest(REST)
    started = loop.start(job(3))
    time.sleep(0.1)
    assert not widest  # no step was made
    loop.rest(0)
    assert [token for token, _ in in_time(lambda: list(started))] == [2, 1, 0]


def test_a_rest_ends_by_itself_and_steps_come_before_the_next(loop_with: Any) -> None:
    loop, _ = loop_with()
    loop.rest(0.05)
    loop.rest(REST)  # one that has begun is not made longer
    assert len(in_time(lambda: list(loop.start(job(3))))) == 3
    loop.rest(REST)  # nor does one follow another at once
    assert len(in_time(lambda: list(loop.start(job(3))))) == 3


def test_a_loop_that_rests_can_be_closed(loop_with: Any) -> None:
    loop, _ = loop_with()
    loop.rest(REST)
    started = loop.start(job(3))
    in_time(loop.close)
    assert list(started) == []


def test_a_stop_ends_it_before_and_after_its_start(loop_with: Any) -> None:
    loop, _ = loop_with()
    stop = Event()
    stop.set()
    assert list(loop.start(job(5, stop=stop))) == []
    stop = Event()
    stream = iter(loop.start(job(10_000, room=9000, stop=stop)))
    next(stream)
    stop.set()
    assert list(stream) == []


def test_a_failed_batch_costs_only_the_one_that_fails_alone_as_well(loop_with: Any) -> None:
    loop, _ = loop_with(66)
    good, bad, other = job(5), job(66, 50), job(4)
    for one in (good, bad, other):
        loop.start(one)
    assert [token for token, _ in good] == [4, 3, 2, 1, 0]
    assert [token for token, _ in other] == [3, 2, 1, 0]
    with pytest.raises(ModelError, match=r"could not go on with the reply \(no memory for this one\); ask again"):
        list(bad)
    assert [token for token, _ in loop.start(job(2))] == [1, 0]


def test_who_is_finished_in_the_step_that_fails_is_not_begun_again() -> None:
    go, widest = Event(), list[int]()

    class Held(Engine):
        def step(self) -> None:
            go.wait(10)
            super().step()

    loop = Loop(lambda: Held(set(), widest), lambda ids: ids, slots=3)
    # the two that wait behind the first begin in one step, and end in one
    first, good, bad = job(9, room=1), job(2), job(997, 2)
    for one in (first, good, bad):
        loop.start(one)
    go.set()
    assert [[token for token, _ in one] for one in (first, good)] == [[8], [1, 0]]
    with pytest.raises(ModelError, match="can't be read"):
        list(bad)
    widest.clear()
    go.clear()
    four = [job(90) for _ in range(4)]
    with ThreadPoolExecutor() as pool:
        begun = [pool.submit(loop.start, one) for one in four]
        time.sleep(0.2)  # three have their seats by then, and with one too many so would the fourth
        go.set()
        assert [len(list(one.result(10))) for one in begun] == [90] * 4
    loop.close()
    assert max(widest) <= 3  # no seat was given back twice


def test_a_request_that_the_engine_does_not_take_costs_the_others_nothing(loop_with: Any) -> None:
    loop, _ = loop_with()
    with pytest.raises(ModelError, match=r"could not begin the reply \(no such setting\); ask again"):
        list(loop.start(job(998)))
    assert [token for token, _ in loop.start(job(2))] == [1, 0]


def test_where_the_engine_can_not_be_made_anew_all_are_told_and_nobody_waits() -> None:
    left = [Engine({66}, [])]

    def make() -> Engine:
        if not left:
            raise ModelError("No memory is left; close other programs.")
        return left.pop()

    loop = Loop(make, lambda ids: ids, slots=1)
    for one in (job(66), job(2)):
        with pytest.raises(ModelError, match=r"stopped \(No memory is left; close other programs\); start again"):
            list(loop.start(one))
    loop.close()


def test_the_engine_that_failed_is_gone_before_another_is_made() -> None:
    there: list[Any] = []

    def make() -> Engine:
        assert not there or there[-1]() is None
        engine = Engine({66}, [])
        there.append(ref(engine))
        return engine

    loop = Loop(make, lambda ids: ids, slots=1)
    with pytest.raises(ModelError, match="could not go on"):
        list(loop.start(job(66)))
    assert len(there) > 1
    loop.close()


def test_what_the_engine_has_no_room_for_is_told(loop_with: Any) -> None:
    loop, _ = loop_with()
    with pytest.raises(ModelError, match=r"no room for this prompt; lower llm\.context"):
        list(loop.start(job(999)))


def test_closing_ends_what_is_being_written(loop_with: Any) -> None:
    loop, _ = loop_with()
    stream = iter(loop.start(job(100_000, room=90_000)))
    next(stream)
    loop.close()
    assert len(list(stream)) < 90_000
    with pytest.raises(ModelError, match="unloaded"):
        loop.start(job(1))
