"""Who is let in: guesses are slowed down, and keep nobody else out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from fastapi import HTTPException

from assistant.store import users
from assistant.store.database import connect
from assistant.store.users import Logins
from assistant.web import logins as door
from assistant.web.logins import (
    FIRST_WAIT,
    FREE_OF_ADDRESS,
    FREE_OF_NAME,
    FREE_TRIES,
    LONGEST_WAIT,
    MOST_CHECKED,
    MOST_OF_ADDRESS,
    Authenticator,
    Failures,
    network,
    shared_counts,
)

PASSWORD = "correct horse"
HOME, HOTEL = "192.0.2.1", "198.51.100.7"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def stored() -> Logins:
    logins = Logins(connect("sqlite://"))
    logins.add("ada", PASSWORD)
    return logins


def ran(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """What it returns. It runs in a thread of its own: a browser that is open keeps a loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


async def tried(there: Authenticator, name: str, password: str, address: str = HOME) -> bool | int:
    """Whether the password was right, or for how many seconds nothing is tried."""
    try:
        return await there.admits(name, password, address)
    except HTTPException as error:
        return int((error.headers or {})["Retry-After"])


async def waits(there: Authenticator, name: str, password: str, address: str = HOME) -> bool:
    """Whether nothing is tried for as long as after the first wrong password too many."""
    outcome = await tried(there, name, password, address)
    return not isinstance(outcome, bool) and 0 < outcome <= FIRST_WAIT


def test_guessing_is_slowed_down_even_for_the_right_password(stored: Logins) -> None:
    async def guess() -> None:
        clock = Clock()
        there = Authenticator(stored, clock)
        for _ in range(FREE_TRIES):
            assert await tried(there, "ada", "guess guess") is False
        assert await tried(there, "ada", PASSWORD) == 2
        assert await tried(there, "a\u0064a", "guess guess") == 2
        clock.now += 2
        assert await tried(there, "ada", "guess guess") is False
        assert await tried(there, "ada", PASSWORD) == 4
        clock.now += 4
        assert await tried(there, "ada", PASSWORD) is True
        assert await tried(there, "ada", "guess guess") is False
        assert await tried(there, "ada", PASSWORD) is True

    ran(guess)


def test_guesses_from_elsewhere_keep_nobody_out(stored: Logins) -> None:
    async def guess() -> None:
        there = Authenticator(stored, Clock())
        assert await tried(there, "ada", PASSWORD, HOME) is True
        for n in range(FREE_OF_NAME + 1):  # from very many addresses
            await tried(there, "ada", "guess guess", f"203.0.113.{n}")
        assert await tried(there, "ada", PASSWORD, HOTEL) == 2
        assert await tried(there, "ada", PASSWORD, HOME) is True
        assert await tried(there, "ada", PASSWORD, HOTEL) is True  # the guesses are forgotten
        assert await tried(Authenticator(stored, Clock()), "ada", PASSWORD, HOME) is True

    ran(guess)


@pytest.fixture
def doors(postgres_emptied: str) -> Iterator[tuple[Authenticator, Authenticator]]:
    """Those of two workers on one PostgreSQL."""
    engines = [connect(postgres_emptied) for _ in range(2)]
    Logins(engines[0]).add("ada", PASSWORD)
    yield tuple(Authenticator(Logins(engine), shared=shared_counts(engine)) for engine in engines)
    for engine in engines:
        engine.dispose()


def test_guesses_at_one_worker_count_at_the_other(doors: tuple[Authenticator, Authenticator]) -> None:
    async def guess() -> None:
        one, other = doors
        for n in range(FREE_TRIES - 1):
            assert await tried(doors[n % 2], "ada", "guess guess") is False
        assert await tried(other, "ada", PASSWORD) is True  # which is forgotten at both
        for _ in range(FREE_TRIES):
            assert await tried(one, "ada", "guess guess") is False
        assert [await waits(there, "ada", PASSWORD) for there in doors] == [True, True]
        assert await tried(other, "ada", PASSWORD, HOTEL) is True

    ran(guess)


def test_an_address_that_one_worker_knows_goes_through_at_the_other(doors: tuple[Authenticator, Authenticator]) -> None:
    async def guess() -> None:
        one, other = doors
        assert await tried(one, "ada", PASSWORD, HOME) is True
        for n in range(FREE_OF_NAME):  # from very many addresses
            assert await tried(doors[n % 2], "ada", "guess guess", f"203.0.113.{n}") is False
        assert [await waits(there, "ada", PASSWORD, HOTEL) for there in doors] == [True, True]
        assert await tried(other, "ada", PASSWORD, HOME) is True

    ran(guess)


def test_an_address_that_tries_many_names_at_several_workers_has_to_wait(
    doors: tuple[Authenticator, Authenticator],
) -> None:
    async def guess() -> None:
        for n in range(FREE_OF_ADDRESS):
            assert await tried(doors[n % 2], f"user{n}", "guess guess", HOTEL) is False
        assert [await waits(there, "another", "guess guess", HOTEL) for there in doors] == [True, True]

    ran(guess)


def test_one_address_locks_a_name_for_itself_alone(stored: Logins) -> None:
    async def guess() -> None:
        there = Authenticator(stored, Clock())
        for _ in range(10 * FREE_TRIES):
            await tried(there, "ada", "guess guess", HOTEL)
        assert await tried(there, "ada", PASSWORD, HOTEL) == 2
        assert await tried(there, "ada", PASSWORD, HOME) is True

    ran(guess)


def test_an_address_that_tries_many_names_has_to_wait(stored: Logins) -> None:
    async def guess() -> None:
        there = Authenticator(stored, Clock())
        for n in range(FREE_OF_ADDRESS):
            assert await tried(there, f"user{n}", "guess guess", HOTEL) is False
        assert await tried(there, "another", "guess guess", HOTEL) == 2

    ran(guess)


def test_guesses_made_side_by_side_are_slowed_down_too(stored: Logins, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    verify = users.verify
    monkeypatch.setattr(users, "verify", lambda password, kept: checked.append(password) or verify(password, kept))

    async def guess() -> list[bool | int]:
        there = Authenticator(stored)
        return [await asyncio.gather(*(tried(there, "ada", f"guess {n}") for n in range(3))) for _ in range(4)]

    ran(guess)
    assert len(checked) == FREE_TRIES


def test_where_very_many_wait_a_known_user_is_let_in(stored: Logins, monkeypatch: pytest.MonkeyPatch) -> None:
    go, begun = Event(), Event()
    check = stored.check

    def slow(name: str, password: str) -> bool:
        if name != "ada":
            begun.set()
            go.wait(20)
        return check(name, password)

    monkeypatch.setattr(stored, "check", slow)

    async def storm() -> None:
        there = Authenticator(stored)
        assert await tried(there, "ada", PASSWORD, HOME) is True
        crowd = [
            asyncio.create_task(tried(there, f"guest{n}", "guess guess", f"203.0.113.{n}")) for n in range(MOST_CHECKED)
        ]
        assert await asyncio.to_thread(begun.wait, 10)
        while len([task for task in crowd if not task.done()]) < MOST_CHECKED:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        assert await tried(there, "one too many", "guess guess", HOTEL) == 2
        assert await tried(there, "ada", PASSWORD, HOME) is True
        go.set()
        assert not any(await asyncio.gather(*crowd))
        assert await tried(there, "ada", PASSWORD, HOTEL) is True

    ran(storm)


def test_one_address_has_few_waiting(stored: Logins) -> None:
    async def storm() -> list[bool | int]:
        there = Authenticator(stored)
        return await asyncio.gather(*(tried(there, f"guest{n}", "guess guess", HOTEL) for n in range(80)))

    results = ran(storm)
    assert results.count(False) == MOST_OF_ADDRESS
    assert results.count(2) == 80 - MOST_OF_ADDRESS


def test_the_wait_is_bounded_and_so_is_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    failures = Failures(FREE_TRIES, clock)
    for _ in range(40):
        failures.note("ada")
        clock.now += LONGEST_WAIT
    failures.note("ada")
    assert failures.wait("ada") == LONGEST_WAIT
    monkeypatch.setattr(door, "MAX_REMEMBERED", 3)
    for n in range(9):
        failures.note(n)
    assert failures.wait("ada") == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8:1::1", "2001:db8:2::1", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
    ],
)
def test_a_network_of_ipv6_is_one_address(one: str, other: str, same: bool) -> None:
    assert (network(one) == network(other)) is same


def test_what_is_no_address_is_cut() -> None:
    assert network("x" * 1000) == "x" * 64
    assert network("") == ""
