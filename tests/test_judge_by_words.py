"""The judge of support by words in common."""

from __future__ import annotations

from pathlib import Path
from threading import Event

from assistant.parts import load_support
from assistant.settings import Settings, TurnSettings
from assistant.types import Claim, Passage
from tests.scripted import ScriptedLLM

LENTILS = (Passage("l", "Lentils", "A cup of lentils holds 18 grams of protein."),)


def test_a_setting_names_it_and_it_compares_words(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, turn=TurnSettings(support="words"))
    judge = load_support(settings)(ScriptedLLM())
    told = ("A cup of lentils holds protein.", "A cup holds 19 grams.", "Oats hold iron.")
    claims = [Claim(text, LENTILS) for text in told]
    assert [verdict.state for verdict in judge.judge(claims, Event())] == ["supported", "not", "not"]
