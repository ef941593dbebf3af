"""The relevance estimators, one file for each; adding one is adding a file.

A module here is a `PromptedModule`, a `TrainedModule` or an `AdapterModule`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from assistant.protocols import LLM, Estimator
from assistant.registry import variants


@runtime_checkable
class PromptedModule(Protocol):
    """A module whose estimator prompts the language model of the turn."""

    def asking(self, llm: LLM) -> Estimator:
        """The estimator that asks this model."""
        ...


@runtime_checkable
class TrainedModule(Protocol):
    """A module whose estimator is a trained model; `SHIPPED` is the folder of the one that comes with Sequitur."""

    SHIPPED: Path | None

    def trained(self, folder: Path, name: str) -> Estimator:
        """The model of a folder, under this name.

        Raises:
            ModelError: it can't be loaded, or is another kind of model.
        """
        ...


@runtime_checkable
class AdapterModule(Protocol):
    """A module whose estimator is an adapter on an encoder that is fetched; `SHIPPED` is the folder of the shipped one.

    It is the second stage: it reads the passages that the shipped cross-encoder finds most relevant.
    """

    SHIPPED: Path | None

    def added(self, folder: Path, name: str, base: Path) -> Estimator:
        """The adapter of a folder on this encoder, under this name.

        Raises:
            ModelError: they can't be loaded, or don't belong together.
        """
        ...


def named(name: str) -> PromptedModule | TrainedModule | AdapterModule:
    """The module of this name.

    Raises:
        SettingsError: there is no such estimator; the message lists those there are.
    """
    module: object = variants.module("estimators", name)
    assert isinstance(module, PromptedModule | TrainedModule | AdapterModule)  # noqa: S101 - see above
    return module
