"""A step in its place: under which name it runs, and whether it is due."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assistant.protocols import Step
from assistant.types import Turn


def always(_: Turn) -> bool:
    """Whatever the turn is."""
    return True


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of a turn; it is left out where `is_due` says so of the turn as it then is."""

    name: str
    step: Step
    is_due: Callable[[Turn], bool] = always


Flow = tuple[Stage, ...]
