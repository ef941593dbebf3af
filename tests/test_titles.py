"""The retriever that puts fitting titles first; `test_contracts.py` holds it to what every retriever must do."""

from assistant.retrieve.retrievers.titles import TitlesFirst
from assistant.types import Passage
from tests.scripted import FixedRetriever


def test_a_fitting_title_comes_first() -> None:
    passages = [Passage("a", "Rice", "Milk and rice."), Passage("b", "Milk", "Milk is white.")]
    found = TitlesFirst(FixedRetriever(passages)).search("what is milk", 2)
    assert [one.id for one in found] == ["b", "a"]
