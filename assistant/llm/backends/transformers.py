"""Causal chat models through transformers, accelerate and bitsandbytes: on a GPU, and for all but GGUF files."""

from __future__ import annotations

from pathlib import Path

from assistant.llm.backends import ModelTraits
from assistant.llm.processor import sees_gpu
from assistant.protocols import Engine, Progress
from assistant.settings import LLMSettings, Quantisation, Settings

TITLE = "transformers"
OWN_PROCESS = False


def fitness(traits: ModelTraits) -> int:
    """How well transformers suits: best on a GPU; it runs GGUF files only if it is set, after dequantising them."""
    if traits.usual and traits.gpu:
        return 3
    return 0 if traits.gguf else 1


def load(path: Path, name: str, settings: Settings, progress: Progress) -> Engine:  # noqa: ARG001 - it tells no progress
    """The model of a folder, or of a GGUF file, which is dequantised on first use.

    Raises:
        ModelError: see `Transformers`, or the file can't be dequantised.
    """
    from assistant.llm.engines.transformers import Transformers  # noqa: PLC0415 - takes seconds to import

    if path.is_file():
        from assistant.llm.dequantise import dequantised  # noqa: PLC0415

        path = dequantised(path, settings)
    return Transformers(path, settings.llm, name, _quantisation(settings.llm))


def _quantisation(llm_settings: LLMSettings) -> Quantisation:
    if llm_settings.quantisation != "auto":
        return llm_settings.quantisation
    return "nf4" if sees_gpu() else "none"
