"""GGUF models by llama.cpp inside this very process, which a debugger can then look into; the page may falter."""

from __future__ import annotations

from pathlib import Path

from assistant.llm.backends import Wanted
from assistant.llm.backends.llama_cpp import LlamaCpp
from assistant.protocols import Engine, Progress
from assistant.settings import Settings

TITLE = "llama.cpp, inside"
APART = False


def fitness(wanted: Wanted) -> int:  # noqa: ARG001 - the same for all models
    """Only who asks for it gets it."""
    return 0


def load(path: Path, name: str, settings: Settings, progress: Progress) -> Engine:  # noqa: ARG001 - it tells no progress
    """The model of a GGUF file.

    Raises:
        ModelError: see `LlamaCpp`.
    """
    return LlamaCpp(path, settings.llm, name)
