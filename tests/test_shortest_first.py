"""Who needs a lock for the least work has it next."""

from __future__ import annotations

from threading import Thread

import pytest

from assistant.llm.shortest_first import ShortestFirst
from tests.test_turn_queue import until


def test_the_least_work_comes_first_and_of_equals_who_came_first() -> None:
    lock, order = ShortestFirst(), list[str]()

    def take(name: str, work: int) -> None:
        with lock.hold(work):
            order.append(name)

    wanted = [("many", 900), ("few", 8), ("some", 90), ("few more", 8)]
    threads = [Thread(target=take, args=one) for one in wanted]
    with lock.hold(1):
        for count, thread in enumerate(threads, 1):
            thread.start()
            until(lambda count=count: lock.waiting_count == count)
        assert order == []
    for thread in threads:
        thread.join(5)
    assert order == ["few", "few more", "some", "many"]


def test_several_hold_it_but_no_two_with_the_same_thing() -> None:
    lock, order = ShortestFirst(2), list[str]()

    def take(thing: str, work: int) -> None:
        with lock.hold(work, thing):
            order.append(f"{thing}{work}")

    threads = [Thread(target=take, args=one) for one in [("a", 1), ("c", 9)]]
    with lock.hold(1, "a"):
        with lock.hold(1, "b"):
            for count, thread in enumerate(threads, 1):
                thread.start()
                until(lambda count=count: lock.waiting_count == count)
            assert order == []
        threads[1].join(5)
        assert order == ["c9"]
    threads[0].join(5)
    assert order == ["c9", "a1"]


def test_an_error_gives_it_back() -> None:
    lock = ShortestFirst()
    with pytest.raises(ValueError, match="no network"), lock.hold(1):
        raise ValueError("no network")
    with lock.hold(1):
        pass
