"""Finds the variants of a kind by their files, so that adding one needs no list to be kept.

`assistant/strategies/concat_pf.py` is the strategy "concat_pf"; its `run` is the Step, and its `TITLE` and `SUMMARY`
tell a person what it does.
"""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal, cast

from assistant.errors import SettingsError
from assistant.protocols import Step

Kind = Literal["loops", "strategies"]


def names(kind: Kind) -> list[str]:
    """The variants there are, in alphabetical order."""
    return sorted(
        module.name for module in pkgutil.iter_modules([str(Path(__file__).parents[1] / kind)]) if not module.ispkg
    )


def step(kind: Kind, name: str) -> Step:
    """The `run` of the variant `name`.

    Raises:
        SettingsError: there is no such variant; the message lists those there are.
    """
    if name not in names(kind):
        raise SettingsError(f"'{name}' is not one of the {kind}; there are: {', '.join(names(kind))}.")
    return cast("Step", import_module(f"assistant.{kind}.{name}").run)


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant for a person who chooses: its technical name, a short title, and what it does in one sentence."""

    name: str
    title: str
    summary: str


def described(kind: Kind, name: str) -> Variant:
    """The variant `name` in plain words; of one that is no longer there, as in old turns, only its name."""
    if name not in names(kind):
        return Variant(name, name, "")
    module = import_module(f"assistant.{kind}.{name}")
    return Variant(name, module.TITLE, module.SUMMARY)


def menu(kind: Kind) -> list[Variant]:
    """The variants there are, in the order of their titles."""
    return sorted((described(kind, name) for name in names(kind)), key=lambda variant: variant.title)
