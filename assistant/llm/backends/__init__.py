"""The backends that run language models, one file for each; adding one is adding a file that looks like `Module`.

Its class is an `Engine` and passes `LLMContract` (tests/llm_contract.py); parts of it that deserve a file of their own
are in `llm/engines`. Choosing a backend imports every module here, so a module imports the library that runs its models
only when it loads one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from assistant.protocols import Engine, Progress
from assistant.registry import variants
from assistant.settings import Backend, Settings


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """The model that is to run: whether it is the usual one, whether a GGUF file, and whether torch sees a GPU for it.

    A GPU is looked for where the usual model is wanted; any other was chosen for what it is.
    """

    usual: bool
    gguf: bool
    gpu: bool


class Module(Protocol):
    """The interface of a module in this folder.

    `TITLE` is what people call it, and `OWN_PROCESS` says whether its engine runs in a process of its own.
    """

    TITLE: str
    OWN_PROCESS: bool

    def fitness(self, traits: ModelTraits) -> int:
        """How well it would run such a model on this machine; 0 = not at all. The highest value wins."""
        ...

    def load(self, path: Path, name: str, settings: Settings, progress: Progress) -> Engine:
        """Load the model at `path`, a file or a folder.

        Raises:
            ModelError: it can't be converted or loaded; the message says what to do.
        """
        ...


def named(name: Backend) -> Module:
    """The backend of this name.

    Raises:
        SettingsError: there is no such backend; the message lists those there are.
    """
    return cast("Module", variants.module("backends", name))


def fittest(traits: ModelTraits) -> Backend:
    """The name of the backend that runs such a model best on this machine."""
    return max(variants.names("backends"), key=lambda name: named(name).fitness(traits))
