"""The estimator that comes with Sequitur, as the default settings load it: small, calibrated, quick, and of use."""

from statistics import median
from threading import Event
from time import process_time

import pytest

from assistant.judges.load import relevance as load_estimator
from assistant.judges.relevance.load import SHIPPED
from assistant.llm.embedder import SentenceEmbedder
from assistant.protocols import Estimator
from assistant.settings import Settings
from assistant.types import Passage
from tests.fixtures_models import fetched
from tests.scripted import ScriptedLLM

CHILE = Passage("cl", "Chile - Exports", "The exports of Chile are worth $111 billion: copper, fish, fruits and paper.")
SLEEP = Passage("sl", "Sleep", "People fall asleep faster when they go to bed only when sleepy and keep the room dark.")
QATAR = Passage(
    "qa", "Qatar", "In 2022 Qatar became the first country in the Arab world to host the football World Cup."
)
HEART = Passage("he", "Walking", "Walking for 30 minutes a day is good for the heart.")


@pytest.fixture(scope="module")
def estimator(tmp_path_factory: pytest.TempPathFactory) -> Estimator:
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), hub=False)
    embedder = SentenceEmbedder(fetched("all-MiniLM-L6-v2"))
    found = load_estimator(settings, lambda done, total: None, embedder)
    assert found
    return found(ScriptedLLM())


def test_it_is_small_and_says_where_it_comes_from() -> None:
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 30e6
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    for said in ("CC BY-SA", "train relevance", "--seed", "R@1"):
        assert said in card


@pytest.mark.model
def test_it_is_calibrated(estimator: Estimator) -> None:
    assert estimator.name == "cross-encoder:shipped+cosine"
    assert estimator.calibration.startswith("isotonic, on 3,080 passages of NQ and SQuAD")


@pytest.mark.model
@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("What does Chile export?", CHILE),
        ("How can I fall asleep faster?", SLEEP),
        ("Who hosted the World Cup?", QATAR),
    ],
)
def test_it_finds_what_answers(estimator: Estimator, question: str, answers: Passage) -> None:
    passages = [HEART, CHILE, SLEEP, QATAR]
    found = estimator.estimate(question, passages, Event())
    assert passages[max(range(4), key=lambda n: found[n].score)] is answers
    assert max(one.confidence for one in found) > 0.2


@pytest.mark.model
def test_it_knows_when_nothing_answers(estimator: Estimator) -> None:
    for question in ("Who wrote Hamlet?", "What is the boiling point of tungsten?"):
        assert all(one.confidence < 0.2 for one in estimator.estimate(question, [HEART, CHILE, SLEEP], Event()))


@pytest.mark.model
def test_25_passages_take_seconds(estimator: Estimator) -> None:
    passages = [Passage(str(n), "Lentils", "Lentils are rich in protein and hold much iron. " * 14) for n in range(25)]
    spent = []
    for _ in range(3):
        begun = process_time()
        estimator.estimate("What holds protein?", passages, Event())
        spent.append(process_time() - begun)
    # what the processors worked, since other tests may be running beside
    assert median(spent) < 10
