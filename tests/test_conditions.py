"""What an experiment says it was made with, and that samples of several commands stay apart."""

from pathlib import Path

import pytest

from assistant.commands.common import by_words_only
from assistant.errors import SettingsError
from assistant.evaluation import relevance, weighing
from assistant.evaluation.conditions import model_of
from assistant.settings import Settings
from tests.test_evaluation_data import lines


@pytest.fixture
def plain(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path)


def test_the_usual_settings_need_no_words(plain: Settings) -> None:
    assert model_of(plain) == "default"


@pytest.mark.parametrize(
    ("section", "change", "says"),
    [
        ("llm", {"backend": "transformers"}, "default, llm.backend = transformers"),
        ("llm", {"model": "fast"}, "fast"),
        ("llm", {"slots": 9, "piece": 64, "threads": 1}, "default"),
        ("relevance", {"model": "mine"}, "default, relevance.model = mine"),
        ("turn", {"draft_tokens": 9, "uncertainty": "word"}, "default, turn.draft_tokens = 9"),
        ("retrieve", {"k": 9, "retriever": "dense"}, "default, retrieve.k = 9"),
        ("retrieve", {"k1": 0.5, "b": 0.1}, "default, retrieve.k1 = 0.5, retrieve.b = 0.1"),
    ],
)
def test_what_decides_the_outcome_is_told(plain: Settings, section: str, change: dict, says: str) -> None:
    changed = getattr(plain, section).model_copy(update=change)
    assert model_of(plain.model_copy(update={section: changed})) == says


def test_a_command_that_searches_by_words_refuses_another_way(plain: Settings) -> None:
    assert by_words_only(plain) is plain
    dense = plain.retrieve.model_copy(update={"retriever": "dense"})
    with pytest.raises(SettingsError, match=r"leave retrieve\.retriever at bm25"):
        by_words_only(plain.model_copy(update={"retrieve": dense}))


def test_a_sample_that_is_skipped_holds_what_another_command_took(tmp_path: Path) -> None:
    corpus = lines(tmp_path / "c.jsonl", *({"id": f"p{n}", "contents": f"Text {n}."} for n in range(60)))
    asked = [{"id": f"q{n}", "question": f"What is {n}?", "answers": [str(n)], "gold": [f"p{n}"]} for n in range(60)]
    for one in asked[::2]:
        one |= {"answers": [], "unanswerable": True}
    questions = lines(tmp_path / "q.jsonl", *asked)
    taken = weighing.prepare(weighing.Experiment(corpus, questions, depth=5, k=5, limit=30))
    left = relevance.prepare(relevance.Experiment(corpus, questions, skip=30)).questions
    assert {one.id for one in taken}.isdisjoint(one.id for one in left)
    assert len(taken) + sum(bool(one.answers) for one in left) == 30
