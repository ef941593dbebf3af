"""Who is let in: wrong passwords are counted by name and by address, and whoever guesses has to wait.

Guesses from one address keep nobody else out: an address from which a user has logged in before is let through
whatever others do with the user's name.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, Protocol

from fastapi import HTTPException
from sqlalchemy import Engine
from starlette.types import ASGIApp, Receive, Scope, Send

from assistant.errors import StoreError
from assistant.store.shared import WrongPasswords
from assistant.store.users import Logins, composed_name

# Wrong passwords that are free: for a name from one address, for one address, and for a name from strange addresses.
FREE_TRIES, FREE_OF_ADDRESS, FREE_OF_NAME = 5, 20, 20
FIRST_WAIT, LONGEST_WAIT = 2.0, 900.0
MAX_REMEMBERED = 10_000
# Log-ins that wait for one another, a fifth of a second each: of all addresses, and of one.
MOST_CHECKED, MOST_OF_ADDRESS = 50, 5
_TOO_MANY_AT_ONCE = "Many people log in at this moment; try again in {wait} s."
_TOO_MANY_WRONG = "No log-in is tried for {wait} s, since too many wrong passwords came; wait and try again."

_ADDRESS = ContextVar("address", default="")


class Addresses:
    """ASGI middleware: notes the address that a request comes from, which Gradio doesn't tell who checks passwords."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, as ASGI has it."""
        token = _ADDRESS.set(network((scope.get("client") or ("",))[0]))
        try:
            await self._app(scope, receive, send)
        finally:
            _ADDRESS.reset(token)


def network(address: str) -> str:
    """What counts as one address: of IPv6 the first half, the rest of which a computer chooses by itself."""
    plain = address.partition("%")[0]
    try:
        version = ipaddress.ip_address(plain).version
    except ValueError:
        return address[:64]
    return str(ipaddress.ip_network((plain, 64), strict=False)) if version == 6 else plain


@dataclass(frozen=True, slots=True)
class _Failures:
    count: int
    until: float


def wait_after(count: int, free: int) -> float:
    """Seconds after so many wrong passwords in a row, of which some are `free`: none, 2, 4, up to 15 minutes."""
    return min(FIRST_WAIT * 2.0 ** min(count - free, 20), LONGEST_WAIT) if count >= free else 0.0


class FailureCounts(Protocol):
    """Wrong passwords in a row, by what they are counted for."""

    def wait(self, key: object) -> float:
        """Seconds until the next try; 0 where it may come now."""
        ...

    def note(self, key: object) -> None:
        """One more."""
        ...

    def forget(self, key: object) -> None:
        """The right one came."""
        ...


def shared_counts(engine: Engine) -> tuple[FailureCounts, FailureCounts, FailureCounts] | None:
    """Counts that all processes on one PostgreSQL share; None for a file of SQLite, which serves one page."""
    if engine.dialect.name != "postgresql":
        return None
    pairs, addresses, names = (
        WrongPasswords(engine, kind, partial(wait_after, free=free))
        for kind, free in (("pair", FREE_TRIES), ("address", FREE_OF_ADDRESS), ("name", FREE_OF_NAME))
    )
    return pairs, addresses, names


class Failures:
    """Wrong passwords in a row, counted in the memory of this process; `clock` gives seconds.

    After `free` of them there is a wait: see `wait_after`. Of too many the oldest are forgotten.
    """

    def __init__(self, free: int, clock: Callable[[], float]) -> None:
        self._free, self._clock = free, clock
        self._failures: dict[object, _Failures] = {}

    def wait(self, key: object) -> float:
        """Seconds until the next try; 0 where it may come now."""
        failures = self._failures.get(key)
        return max(failures.until - self._clock(), 0.0) if failures else 0.0

    def note(self, key: object) -> None:
        """One more."""
        failures = self._failures.pop(key, None)
        count = failures.count + 1 if failures else 1
        self._failures[key] = _Failures(count, self._clock() + wait_after(count, self._free))
        if len(self._failures) > MAX_REMEMBERED:
            self._failures.pop(next(iter(self._failures)))

    def forget(self, key: object) -> None:
        """The right one came."""
        self._failures.pop(key, None)


class Authenticator:
    """Lets users in who know their password, `logins.check` running beside the event loop: it is slow on purpose.

    One is checked at a time, so that guesses made side by side don't get around the wait; users at addresses that they
    have logged in from before have a lane of their own. `clock` gives seconds. With counts that are `shared`, those of
    pairs of name and address, of addresses and of names, guesses at one process are known to the others.
    """

    def __init__(
        self,
        logins: Logins,
        clock: Callable[[], float] = time.monotonic,
        shared: tuple[FailureCounts, FailureCounts, FailureCounts] | None = None,
    ) -> None:
        self._logins = logins
        self._pairs, self._addresses, self._names = shared or (
            Failures(FREE_TRIES, clock), Failures(FREE_OF_ADDRESS, clock), Failures(FREE_OF_NAME, clock)
        )  # fmt: skip
        self._lanes = {has_met: asyncio.Lock() for has_met in (True, False)}
        self._waiting: Counter[str] = Counter()

    def gradio_auth(self) -> Callable[[str, str], Awaitable[bool]]:
        """What Gradio asks, in the middle of a request that `Addresses` has seen."""

        async def admits(name: str, password: str) -> bool:
            return await self.admits(name, password, _ADDRESS.get())

        return admits

    async def admits(self, name: str, password: str, address: str) -> bool:
        """Whether the password is the user's.

        Raises:
            HTTPException: 429, with the seconds to wait.
        """
        name = composed_name(name)
        if self._waiting[address] >= MOST_OF_ADDRESS:
            _refuse(FIRST_WAIT, _TOO_MANY_AT_ONCE)
        self._waiting[address] += 1
        try:
            has_met = await asyncio.to_thread(self._logins.knows_address, name, address)
            if not has_met and self._waiting.total() > MOST_CHECKED:
                _refuse(FIRST_WAIT, _TOO_MANY_AT_ONCE)
            async with self._lanes[has_met]:
                return await self._checked(name, password, address, has_met)
        finally:
            self._waiting[address] -= 1
            self._waiting += Counter()  # drops those of whom nobody waits

    async def _checked(self, name: str, password: str, address: str, has_met: bool) -> bool:
        if wait := await asyncio.to_thread(self.wait, name, address, has_met):
            _refuse(wait)
        is_right = await asyncio.to_thread(self._logins.check, name, password)
        await asyncio.to_thread(self._note, name, address, has_met, is_right)
        return is_right

    def _note(self, name: str, address: str, has_met: bool, is_right: bool) -> None:
        if is_right:
            with suppress(StoreError):  # a database that can only be read lets users in all the same
                self._pairs.forget((name, address))
                self._names.forget(name)
                self._logins.note_login(name, address)
            return
        self._pairs.note((name, address))
        self._addresses.note(address)
        if not has_met:
            self._names.note(name)

    def wait(self, name: str, address: str, has_met: bool) -> float:
        """Seconds until the name may be tried again from this address; `has_met`: it logged in from there before."""
        pair_wait = self._pairs.wait((name, address))
        return pair_wait if has_met else max(pair_wait, self._addresses.wait(address), self._names.wait(name))


def _refuse(seconds: float, message: str = _TOO_MANY_WRONG) -> NoReturn:
    wait = math.ceil(seconds)
    raise HTTPException(429, message.format(wait=wait), {"Retry-After": str(wait)})
