"""Which judge of support the settings mean."""

from __future__ import annotations

from assistant.errors import ModelError
from assistant.judges.support import SHIPPED, Support
from assistant.settings import Settings
from assistant.types import LLM, Embedder, SupportJudge, SupportJudgeOf


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


def _failing(told: str) -> SupportJudgeOf:
    def fail(_: LLM) -> SupportJudge:
        raise ModelError(told)

    return fail
