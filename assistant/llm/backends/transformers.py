"""Causal chat models through transformers, accelerate and bitsandbytes: on a GPU, and for all but GGUF files."""

from __future__ import annotations

from pathlib import Path

from assistant.llm.backends import Wanted
from assistant.llm.processor import sees_gpu
from assistant.protocols import Engine, Progress
from assistant.settings import LLMSettings, Quantisation, Settings

TITLE = "transformers"
APART = False


def fitness(wanted: Wanted) -> int:
    """How well transformers suits: best on a GPU; it runs GGUF files only if it is set, after dequantising them."""
    if wanted.usual and wanted.gpu:
        return 3
    return 0 if wanted.gguf else 1


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


def _quantisation(chosen: LLMSettings) -> Quantisation:
    if chosen.quantisation != "auto":
        return chosen.quantisation
    return "nf4" if sees_gpu() else "none"
