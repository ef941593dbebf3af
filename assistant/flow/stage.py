"""A step in its place in a flow: the name under which it runs, and whether it is due."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assistant.protocols import Parts, Step
from assistant.types import Turn


def always(turn: Turn, parts: Parts) -> bool:  # noqa: ARG001 - called like all conditions
    """The condition of steps that run in every turn."""
    return True


@dataclass(frozen=True, slots=True)
class Stage:
    """A named step of a turn. It is skipped unless `is_due` holds when its place in the flow is reached."""

    name: str
    step: Step
    is_due: Callable[[Turn, Parts], bool] = always


Flow = tuple[Stage, ...]
