"""One file a relevance estimator. A module here is `Asking`, `Trained` or `Added`; adding one is adding a file."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from assistant.protocols import LLM, Estimator
from assistant.registry import variants


@runtime_checkable
class Asking(Protocol):
    """A module whose estimator asks the language model of the turn."""

    def asking(self, llm: LLM) -> Estimator:
        """The estimator that asks this model."""
        ...


@runtime_checkable
class Trained(Protocol):
    """A module whose estimator is a model of its own. `SHIPPED` is the folder of the one that comes with Sequitur."""

    SHIPPED: Path | None

    def trained(self, folder: Path, name: str) -> Estimator:
        """The model of a folder, under this name.

        Raises:
            ModelError: it can't be loaded, or is another kind of model.
        """
        ...


@runtime_checkable
class Added(Protocol):
    """A module whose estimator is added to an encoder that is fetched. `SHIPPED` is the folder of the one that comes.

    It reads again what the estimator that needs nothing fetched finds most relevant.
    """

    SHIPPED: Path | None

    def added(self, folder: Path, name: str, base: Path) -> Estimator:
        """What a folder adds to this encoder, under this name.

        Raises:
            ModelError: they can't be loaded, or don't belong together.
        """
        ...


def named(name: str) -> Asking | Trained | Added:
    """The module of this name.

    Raises:
        SettingsError: there is no such estimator; the message lists those there are.
    """
    found: object = variants.module("estimators", name)
    assert isinstance(found, Asking | Trained | Added)  # noqa: S101 - see above
    return found
