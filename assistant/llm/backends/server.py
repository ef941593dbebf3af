"""A model that a server runs: llama-server, vLLM, Ollama, LM Studio, or any other OpenAI-compatible one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from assistant.errors import ModelError
from assistant.llm.backends import ModelTraits
from assistant.protocols import Engine, Progress
from assistant.settings import LLMSettings, Settings

TITLE = "a server"
OWN_PROCESS = True


def fitness(traits: ModelTraits) -> int:  # noqa: ARG001 - it is never taken unless it was chosen
    """How well a server suits: never by itself, only if it is set."""
    return 0


def load(path: Path, name: str, settings: Settings, progress: Progress) -> Engine:  # noqa: ARG001 - nothing is loaded
    """The model `name` of the server that is set.

    Raises:
        ModelError: it doesn't answer, has no such model, or can't do what is needed; the message says what to do.
    """
    from assistant.llm.engines.server import Server  # noqa: PLC0415 - takes a second to import

    engine = Server(settings.llm)
    try:
        engine.meet()
    except ModelError:
        engine.close()
        raise
    return engine


def load_or_wait(llm_settings: LLMSettings, tell: Callable[[str], None]) -> Engine:
    """Like `load`; a server that doesn't answer yet is asked again at the next message, and `tell` gets the reason.

    Raises:
        ModelError: there is no such address.
    """
    from assistant.llm.engines.server import Server  # noqa: PLC0415

    engine = Server(llm_settings)
    try:
        engine.meet()
    except ModelError as error:
        tell(f"{error} The next message tries again.")
    return engine
