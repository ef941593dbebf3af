"""Writes into a turn what each step cost: seconds and tokens, a step inside another counted once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from time import perf_counter

from assistant.llm.meter import Meter
from assistant.protocols import Parts, Step
from assistant.types import Tokens, Turn


def timed(name: str, step: Step, turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Run `step`, naming it in the turn while it runs and noting its seconds and tokens when it ends.

    Tokens are read off the `Meter` that `parts.llm` is; without one only seconds are noted.
    """
    turn = replace(turn, step=name)
    yield turn
    # what steps inside this one note by then is taken off at the end, so that nothing counts twice
    seconds, tokens = perf_counter() - turn.seconds, _read(parts) - turn.tokens
    for snapshot in step(turn, parts, stop):
        turn = snapshot
        yield turn
    spent = perf_counter() - seconds - turn.seconds
    read = _read(parts) - tokens - turn.tokens
    yield replace(
        turn,
        wait=None,
        timings={**turn.timings, name: turn.timings.get(name, 0.0) + spent},
        spent={**turn.spent, name: turn.spent.get(name, Tokens()) + read} if read != Tokens() else turn.spent,
    )


def charged(turn: Turn, name: str, seconds: float) -> Turn:
    """The turn with more seconds noted for a step than it took just now."""
    return replace(turn, timings={**turn.timings, name: turn.timings.get(name, 0.0) + seconds})


def _read(parts: Parts) -> Tokens:
    return parts.llm.tokens if isinstance(parts.llm, Meter) else Tokens()
