"""The model and settings that an experiment's rows were made with: rows made with others must not be mixed in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assistant.experiment.datasets import fingerprint
from assistant.llm.catalogue import Catalogue
from assistant.llm.load import model_of as model_meant
from assistant.llm.model_folders import name_of
from assistant.settings import Settings

_SECTIONS = ("llm", "embedder", "facts", "retrieve", "relevance", "turn")
# Settings that only change the speed, or that commands put into their claims themselves.
_IGNORED = {
    "llm": {
        *("model", "slots", "continuous_batching", "prefill_chunk", "threads"),
        *("api_key", "first_token_timeout", "next_token_timeout", "target_turn_seconds"),
    },
    "retrieve": {"retriever"},
    "turn": {"loop", "strategy", "uncertainty", "unknown_threshold"},
}


def model_of(settings: Settings) -> str:
    """The language model, followed by every setting that affects results and is not at its default."""
    return _model_and_settings(settings, _SECTIONS)


def llm_of(settings: Settings) -> str:
    """The language model, followed by those of its own settings that are not at their default."""
    return _model_and_settings(settings, ("llm",))


def _model_and_settings(settings: Settings, sections: Sequence[str]) -> str:
    changed_settings = [
        f"{name}.{key} = {_identified(value)}"
        for name in sections
        for key, value in getattr(settings, name).model_dump(exclude_defaults=True, exclude=_IGNORED.get(name)).items()
    ]
    return ", ".join([_model_name(settings), *changed_settings])


def _identified(value: Any) -> Any:
    """The value of a setting; one that is a file or a folder with the hash of what is there, as training changes it."""
    path = Path(value).expanduser() if isinstance(value, str) and value else None
    if path is not None and path.is_dir():
        return f"{value} ({name_of(path)})"
    return f"{value} ({fingerprint(path)[:8]})" if path is not None and path.is_file() else value


def _model_name(settings: Settings) -> str:
    """The model that is loaded on this machine; one in a folder is named with a hash, as training changes it."""
    model = model_meant(settings)
    folder = Path(model).expanduser()
    # a name of the catalogue stays one, even where a folder is called the same
    return name_of(folder) if folder.is_dir() and Catalogue.load().resolve(model, settings) == folder else model


def always_drafting(settings: Settings) -> Settings:
    """The settings with the loop as its paper has it.

    A draft is written for every question, however sure its first search is, and it sees the whole conversation.
    """
    return settings.changed(turn={"draft_threshold": 1.0, "draft_history": "whole"})
