"""Finds the variants of a kind by their files, so that adding one needs no list to be kept.

`assistant/strategies/concat_pf.py` is the strategy "concat_pf"; its `run` is the Step.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Literal, cast

from assistant.errors import SettingsError
from assistant.types import Step

Kind = Literal["loops", "strategies"]


def names(kind: Kind) -> list[str]:
    """The variants there are, in alphabetical order."""
    return sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent / kind)]))


def step(kind: Kind, name: str) -> Step:
    """The `run` of the variant `name`.

    Raises:
        SettingsError: there is no such variant; the message lists those there are.
    """
    if name not in names(kind):
        raise SettingsError(f"'{name}' is not one of the {kind}; there are: {', '.join(names(kind))}.")
    return cast("Step", import_module(f"assistant.{kind}.{name}").run)


def summary(kind: Kind, name: str) -> str:
    """The first line of the variant's docstring, for a person who chooses."""
    return (import_module(f"assistant.{kind}.{name}").__doc__ or name).strip().splitlines()[0]
