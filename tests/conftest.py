"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.settings import RelevanceSettings, Settings, TurnSettings
from assistant.types import Parts, Passage
from tests.scripted import WORDS, FixedRetriever, ScriptedLLM

pytest_plugins = ["tests.fixtures_models"]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    # The embedder of words knows no meaning, so that only the clearest small talk may count as such.
    turn, relevance = TurnSettings(intent_threshold=0.85), RelevanceSettings(estimator="none")
    return Settings(data_dir=tmp_path, hub=False, turn=turn, relevance=relevance)


@pytest.fixture
def parts(settings: Settings) -> Parts:
    """Scripted parts; a test replaces what it looks at."""
    passages = [
        Passage("p1", "Lentils", "Lentils are rich in protein. A cup of cooked lentils holds 18 grams of protein."),
        Passage("p2", "Lactose", "Lactose is the sugar in milk. Oat drink holds no lactose."),
        Passage("p3", "Walking", "Walking for 30 minutes a day is good for the heart."),
    ]
    return Parts(settings, ScriptedLLM(), WORDS, FixedRetriever(passages))
