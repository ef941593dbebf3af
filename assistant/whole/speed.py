"""About how long work on whole documents takes, by the speed of the model that was measured."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from assistant.llm.speed_test import speed_of
from assistant.protocols import Engine
from assistant.settings import Settings
from assistant.types import Passage, Work
from assistant.whole.plan import cost


def cost_sentence(work: Work, passages: Sequence[Passage], engine: Engine | None, settings: Settings) -> str:
    """What the work takes, such as "60 passages, 16 calls of the model, about 3 minutes.".

    Raises:
        LibraryError: there are too many passages.
    """
    work_cost = cost(work, passages)
    count = f"{work_cost.passages:,} passage{'s' if work_cost.passages != 1 else ''}"
    if not work_cost.calls:
        return f"{count}, compared without the model."
    calls = f"{count}, {work_cost.calls} call{'s' if work_cost.calls != 1 else ''} of the model"
    speed = speed_of(engine, settings) if engine else None
    if speed is None:
        return f"{calls}; its speed was not measured here, which the page's Model tab or `models measure` does."
    return f"{calls}, about {_minutes(work_cost.seconds(speed.read, speed.written))}."


def _minutes(seconds: float) -> str:
    minutes = ceil(seconds / 60)
    return f"{minutes} minutes" if minutes > 1 else "a minute"
