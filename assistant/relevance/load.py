"""Loads the relevance estimator that is named."""

from __future__ import annotations

from collections.abc import Callable

from assistant.relevance.estimate import Estimator
from assistant.settings import Settings
from assistant.types import LLM, Progress

BY_LLM = "llm"


def load(name: str, llm: Callable[[], LLM], settings: Settings, progress: Progress) -> Estimator:
    """The chat model (`llm`), or a cross-encoder: a folder, a hub id or a name of the catalogue, fetched if need be.

    Raises:
        ModelError: it can't be had or loaded, or is no cross-encoder.
    """
    if name == BY_LLM:
        from assistant.relevance.by_llm import LlmEstimator  # noqa: PLC0415

        return LlmEstimator(llm())
    from assistant.llm.catalogue import Catalogue  # noqa: PLC0415
    from assistant.relevance.cross_encoder import CrossEncoderEstimator  # noqa: PLC0415

    folder = Catalogue.load().resolve(name, settings, progress)
    return CrossEncoderEstimator(folder, folder.name)
