"""A step in its place: under which name it runs, and whether it is due; and steps that are chosen by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

from assistant.protocols import Parts, Step
from assistant.registry import variants
from assistant.types import Turn


def always(turn: Turn, parts: Parts) -> bool:  # noqa: ARG001 - asked as the others are
    """Whatever the turn is."""
    return True


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of a turn; it is left out where it isn't due for the turn as it then is."""

    name: str
    step: Step
    is_due: Callable[[Turn, Parts], bool] = always


Flow = tuple[Stage, ...]


def step_named(kind: Literal["loops", "strategies"], name: str) -> Step:
    """The `run` of the loop or strategy `name`.

    Raises:
        SettingsError: there is no such variant; the message lists those there are.
    """
    return cast("Step", variants.module(kind, name).run)
