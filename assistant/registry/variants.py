"""Finds the variants of a kind by their files, so that adding one needs no list to be kept.

`assistant/strategies/concat_pf.py` is the strategy "concat_pf". The package of a kind says what each of its files must
have; helpers are in folders of their own. Names are listed without importing anything, since the settings need them.
"""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Literal

from assistant.errors import SettingsError

Kind = Literal["loops", "strategies", "retrievers", "backends", "estimators", "support judges", "readers"]
_PACKAGES: dict[Kind, str] = {
    "loops": "loops",
    "strategies": "strategies",
    "retrievers": "retrieve.retrievers",
    "backends": "llm.backends",
    "estimators": "judges.relevance.estimators",
    "support judges": "judges.support",
    "readers": "library.readers",
}


def names(kind: Kind) -> list[str]:
    """The variants there are, in alphabetical order."""
    folder = Path(__file__).parents[1].joinpath(*_PACKAGES[kind].split("."))
    module_names = (module_info.name for module_info in pkgutil.iter_modules([str(folder)]) if not module_info.ispkg)
    # no file of Python's can be called as llama.cpp is
    return sorted(name.replace("_", ".") if kind == "backends" else name for name in module_names)


def module(kind: Kind, name: str) -> ModuleType:
    """The file of the variant `name`.

    Raises:
        SettingsError: there is no such variant; the message lists those there are.
    """
    if name not in names(kind):
        raise SettingsError(f"'{name}' is not one of the {kind}; there are: {', '.join(names(kind))}.")
    return import_module(f"assistant.{_PACKAGES[kind]}.{name.replace('.', '_')}")


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
    variant_module = module(kind, name)
    return Variant(name, variant_module.TITLE, variant_module.SUMMARY)


def menu(kind: Kind) -> list[Variant]:
    """The variants there are, in the order of their titles."""
    return sorted((described(kind, name) for name in names(kind)), key=lambda variant: variant.title)
