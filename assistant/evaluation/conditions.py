"""Under what an experiment's rows were made, beside what its command names: they must not be mixed with others."""

from __future__ import annotations

from assistant.settings import Settings

_SECTIONS = ("llm", "embedder", "facts", "retrieve", "relevance", "turn")
# How fast a model is, and what commands and claims name by themselves.
_FREE = {
    "llm": {"model", "slots", "continuous", "piece", "threads"},
    "retrieve": {"retriever"},
    "turn": {"loop", "strategy", "uncertainty", "unknown_threshold"},
}


def model_of(settings: Settings) -> str:
    """The language model, and behind it every setting that decides what comes out and is not the usual one."""
    unusual = [
        f"{name}.{key} = {value}"
        for name in _SECTIONS
        for key, value in _differing(settings, name).items()
        if key not in _FREE.get(name, ())
    ]
    return f"{settings.llm.model}, {', '.join(unusual)}" if unusual else settings.llm.model


def _differing(settings: Settings, name: str) -> dict[str, object]:
    section = getattr(settings, name)
    usual = type(section)().model_dump()
    return {key: value for key, value in section.model_dump().items() if value != usual[key]}
