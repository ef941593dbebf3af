"""Which judges the settings mean."""

from __future__ import annotations

from assistant.errors import ModelError
from assistant.judges.support import SHIPPED, Support
from assistant.protocols import (
    LLM,
    Embedder,
    SuitabilityJudge,
    SupportJudge,
    SupportJudgeOf,
)
from assistant.settings import Settings


def chosen(settings: Settings, embedder: Embedder | None = None) -> SupportJudgeOf:
    """The judge of support that the settings name, loaded once for all turns; the language model may use the embedder.

    One whose files are missing or cut short fails with a ModelError when it is asked for.
    """
    if settings.turn.support == "llm":
        from assistant.judges.by_llm import ByLLM  # noqa: PLC0415

        return lambda llm: ByLLM(llm, settings.turn.support_threshold, embedder)
    try:
        trained = Support(SHIPPED)
    except ModelError as error:
        return _failing(str(error))
    return lambda _: trained


def suitability(embedder: Embedder) -> SuitabilityJudge:
    """The judge of what suits a person, which comes with Sequitur and reads by this embedder.

    One whose files are missing or that was trained for another embedder fails with a ModelError when it is asked.
    """
    from assistant.judges.clash import judge_of  # noqa: PLC0415
    from assistant.judges.suitability import SHIPPED  # noqa: PLC0415

    try:
        return judge_of(SHIPPED, embedder)
    except ModelError as error:
        return Unusable(str(error))


class Unusable:
    """Stands for a judge that can't be used, and says why whenever it is asked."""

    threshold = 1.0

    def __init__(self, why: str) -> None:
        self._why = why

    def clashes(self, *_: object) -> list[list[float]]:
        """Raises a ModelError."""
        raise ModelError(self._why)


def _failing(told: str) -> SupportJudgeOf:
    def fail(_: LLM) -> SupportJudge:
        raise ModelError(told)

    return fail
