"""What all tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from assistant.protocols import Parts
from assistant.retrieve import jvm
from assistant.settings import FILE_VARIABLE, PREFIX, FactSettings, RelevanceSettings, Settings, TurnSettings, load
from assistant.store import users
from assistant.types import Passage
from tests.scripted import WORDS, FixedRetriever, ScriptedLLM, WordJudge

pytest_plugins = ["tests.fixtures_models", "tests.fixtures_postgres"]

# where the tests run in the background Ctrl-C is ignored, and what they start would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)
# machines that test are slow
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_a_person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Only where the data lies is as a person has set it, so that models are fetched once; small judges are here."""
    data, empty = load().data_dir, tmp_path_factory.mktemp("settings") / "sequitur.toml"
    empty.touch()
    with pytest.MonkeyPatch.context() as patched:
        for name in list(os.environ):
            if name.upper().startswith(PREFIX):
                patched.delenv(name)
        patched.setenv(FILE_VARIABLE, str(empty))
        patched.setenv("SEQUITUR_DATA_DIR", str(data))
        patched.setenv("SEQUITUR_TURN__SUPPORT", "trained")
        patched.setenv("SEQUITUR_FACTS__SUITABILITY", "small")
        patched.setenv("SEQUITUR_RELEVANCE__ESTIMATOR", "cross_encoder")
        yield


@pytest.fixture(scope="session", autouse=True)
def password_costs() -> Iterator[tuple[int, int]]:
    """What it costs to hash a password: 0.2 s, and the tests hash hundreds, so that here it is next to nothing."""
    real = users.COST, users.LANES
    users.COST, users.LANES = 2**10, 1
    yield real
    users.COST, users.LANES = real


@pytest.fixture(scope="session", autouse=True)
def _java_compiles_once() -> Iterator[None]:
    """Compiling what has run a while once more pays off in servers that run for hours, not here."""
    usual = jvm.OPTIONS
    jvm.OPTIONS = (*usual, "-XX:TieredStopAtLevel=1")
    yield
    jvm.OPTIONS = usual


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    # The embedder of words knows no meaning, so that only the clearest small talk may count as such.
    turn, relevance = TurnSettings(intent_threshold=0.85, support="trained"), RelevanceSettings(estimator="none")
    facts = FactSettings(suitability="small")
    return Settings(data_dir=tmp_path, hub=False, turn=turn, relevance=relevance, facts=facts)


@pytest.fixture
def parts(settings: Settings) -> Parts:
    """Scripted parts; a test replaces what it looks at."""
    passages = [
        Passage("p1", "Lentils", "Lentils are rich in protein. A cup of cooked lentils holds 18 grams of protein."),
        Passage("p2", "Lactose", "Lactose is the sugar in milk. Oat drink holds no lactose."),
        Passage("p3", "Walking", "Walking for 30 minutes a day is good for the heart."),
    ]
    return Parts(settings, ScriptedLLM(), WORDS, FixedRetriever(passages), support=lambda _: WordJudge())
