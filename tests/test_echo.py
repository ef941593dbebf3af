"""The backend that says back what it is asked."""

from __future__ import annotations

from pathlib import Path
from threading import Event

from assistant.llm.load import backend_of, load
from assistant.protocols import silent
from assistant.settings import LLMSettings, Settings
from assistant.types import Message, Options


def test_it_is_loaded_where_it_is_asked_for_and_says_it_back(tmp_path: Path) -> None:
    file = tmp_path / "any.gguf"
    file.write_bytes(b"")
    settings = Settings(data_dir=tmp_path, llm=LLMSettings(backend="echo", model=str(file)))
    llm = load(settings, silent)
    assert backend_of(settings.llm) == "echo"
    assert llm.complete([(Message("user", "Say that again."),)], Options(), Event())[0].text == "Say that again."
    assert llm.choose([(Message("user", "Hi"),)], ("yes", "no"), Event())[0].probabilities == {"yes": 0.5, "no": 0.5}


def test_nobody_gets_it_who_does_not_ask(tmp_path: Path) -> None:
    assert backend_of(LLMSettings(model=str(tmp_path))) == "transformers"
