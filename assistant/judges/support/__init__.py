"""The judges of support, one file for each; adding one is adding a file that looks like `Module`."""

from __future__ import annotations

from typing import Protocol, cast

from assistant.judges.stand_ins import Instead, logged
from assistant.protocols import Embedder, Progress, SupportJudgeOf
from assistant.registry import variants
from assistant.settings import Settings


class Module(Protocol):
    """What a module in this folder looks like."""

    def judge(
        self, settings: Settings, embedder: Embedder | None, progress: Progress, instead: Instead = logged
    ) -> SupportJudgeOf:
        """The judge for all turns, fetched if need be; it may use this embedder.

        If a smaller judge replaces it, `instead` is called.

        Raises:
            ModelError: it can't be loaded.
        """
        ...


def named(name: str) -> Module:
    """The module of this name.

    Raises:
        SettingsError: there is no such judge; the message lists those there are.
    """
    return cast("Module", variants.module("support judges", name))
