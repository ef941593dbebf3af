"""The retriever by key words, beside the contract that every retriever must keep (tests/test_contracts.py)."""

from __future__ import annotations

from pathlib import Path

from assistant.retrieve import retrievers
from assistant.settings import RetrieveSettings, Settings
from tests.scripted import FixedRetriever


class Indexes:
    """Words alone."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.found = settings, FixedRetriever([])

    def words(self) -> FixedRetriever:
        return self.found

    def meaning(self) -> FixedRetriever:
        raise AssertionError("it was not to be asked")


def test_the_longest_words_are_searched_for(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, retrieve=RetrieveSettings(retriever="keywords"))
    indexes = Indexes(settings)
    retrievers.named(settings.retrieve.retriever).opened(indexes).search("What is a good recipe for lentils?", 3)
    assert indexes.found.queries == ["good recipe lentils?"]
