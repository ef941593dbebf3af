"""The options that say how a turn runs: its loop, its strategy, and how many passages it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from typer import Option

from assistant import turn as flow
from assistant.registry import variants
from assistant.settings import IfUnanswerable, Settings
from assistant.types import Choices


def _any_of(kind: variants.Kind) -> str:
    """The names of all variants, as a sentence has them."""
    *others, last = variants.names(kind)
    return f"{', '.join(others)} or {last}"


@dataclass(frozen=True)
class TurnOptions:
    """The options that say how a turn runs; an option that is left out is as the settings have it."""

    loop: Annotated[str | None, Option(help=f"How the passages are found: {_any_of('loops')}.")] = None
    loops: Annotated[
        int | None,
        Option(
            min=1, max=5, help="How often a draft is written and searched for (the X of Generate-Retrieve-Generate)."
        ),
    ] = None
    strategy: Annotated[
        str | None, Option(help=f"How the answer is made from the passages: {_any_of('strategies')}.")
    ] = None
    k: Annotated[int | None, Option("--k", min=1, max=20, help="Passages shown to the model.")] = None

    def choices(self, settings: Settings, library: str = "", below: IfUnanswerable | Literal[""] = "") -> Choices:
        """What was chosen for the turn, from the options and the settings; `library` replaces the settings' one.

        Raises:
            SettingsError: the loop or strategy doesn't exist; the message lists those that do.
        """
        loop = self.loop or settings.turn.loop
        choices = Choices(
            self.strategy or settings.turn.strategy,
            loop,
            self.k or settings.retrieve.top_k_for(loop),
            library or settings.library,
            loops=self.loops or settings.turn.grg_rounds,
            retriever=settings.retrieve.retriever,
            below=below,
        )
        flow.check(choices)
        return choices
