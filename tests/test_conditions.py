"""What an experiment says it was made with, and that samples of several commands stay apart."""

from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from assistant.commands.common import by_words
from assistant.evaluation import relevance, weighing
from assistant.experiment.conditions import llm_of, model_of
from assistant.llm import load
from assistant.llm.catalogue import Catalogue
from assistant.settings import Settings
from tests.test_evaluation_data import lines


@pytest.fixture(autouse=True)
def no_small_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    """What all other tests set is no default."""
    for name in ("SEQUITUR_TURN__SUPPORT", "SEQUITUR_FACTS__SUITABILITY", "SEQUITUR_RELEVANCE__ESTIMATOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(load, "sees_gpu", lambda: False)
    return Settings(data_dir=tmp_path, hub=False)


def test_the_usual_settings_need_no_words(plain: Settings) -> None:
    assert model_of(plain) == "default"


@pytest.mark.parametrize(
    ("section", "change", "says"),
    [
        ("llm", {"backend": "transformers"}, "default, llm.backend = transformers"),
        ("llm", {"model": "fast"}, "fast"),
        ("llm", {"slots": 9, "prefill_chunk": 64, "threads": 1}, "default"),
        ("relevance", {"model": "mine"}, "default, relevance.model = mine"),
        ("turn", {"max_draft_tokens": 9, "uncertainty": "word"}, "default, turn.max_draft_tokens = 9"),
        ("retrieve", {"top_k": 9, "retriever": "dense"}, "default, retrieve.top_k = 9"),
        ("retrieve", {"k1": 0.5, "b": 0.1}, "default, retrieve.k1 = 0.5, retrieve.b = 0.1"),
    ],
)
def test_what_decides_the_outcome_is_told(plain: Settings, section: str, change: dict, says: str) -> None:
    changed = getattr(plain, section).model_copy(update=change)
    assert model_of(plain.model_copy(update={section: changed})) == says


def with_llm(settings: Settings, **changes: str) -> Settings:
    return settings.model_copy(update={"llm": settings.llm.model_copy(update=changes)})


def test_replies_are_told_apart_by_the_model_alone(plain: Settings) -> None:
    turn = plain.turn.model_copy(update={"max_answer_tokens": 9})
    assert llm_of(plain.model_copy(update={"turn": turn})) == "default"
    assert llm_of(with_llm(plain, backend="transformers")) == "default, llm.backend = transformers"


def test_the_model_of_a_gpu_is_told_where_it_is_the_one_that_is_loaded(plain: Settings, monkeypatch) -> None:
    monkeypatch.setattr(load, "sees_gpu", lambda: True)
    assert model_of(plain) == llm_of(plain) == "gpu-default"
    assert model_of(with_llm(plain, backend="llama.cpp")) == "default, llm.backend = llama.cpp"
    assert model_of(with_llm(plain, model="fast")) == "fast"


def test_what_nobody_chose_is_told_by_the_name_of_what_is_loaded(plain: Settings, monkeypatch) -> None:
    assert model_of(with_llm(plain, model="auto")) == model_of(with_llm(plain, model="default")) == "default"
    monkeypatch.setattr(load, "hub_trouble", lambda: "")
    online = plain.model_copy(update={"hub": True})
    assert model_of(online) == load.SMALL
    assert model_of(with_llm(online, model="default")) == "default"


def test_models_in_folders_are_told_apart_by_their_weights(plain: Settings, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "fast"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"first")
    monkeypatch.setattr(Catalogue, "fetch", lambda *_: tmp_path / "models" / "fast")
    before = model_of(with_llm(plain, model="./mine"))
    assert before.startswith("mine-")
    assert before == model_of(with_llm(plain, model=str(tmp_path / "mine")))
    (tmp_path / "mine" / "model.safetensors").write_bytes(b"trained on")
    assert model_of(with_llm(plain, model="./mine")) != before
    assert model_of(with_llm(plain, model="fast")) == "fast"


def test_estimators_and_calibrations_are_told_apart_by_what_is_in_them(plain: Settings, tmp_path: Path) -> None:
    folder, file = tmp_path / "estimator", tmp_path / "calibration.json"
    folder.mkdir()
    chosen = plain.relevance.model_copy(update={"model": str(folder), "calibration": str(file)})
    settings, told = plain.model_copy(update={"relevance": chosen}), set()
    for weights, curve in ((b"first", "1"), (b"trained on", "1"), (b"trained on", "2")):
        (folder / "model.safetensors").write_bytes(weights)
        file.write_text(curve)
        told.add(model_of(settings))
    assert len(told) == 3
    assert all(f"relevance.model = {folder} (estimator-" in one for one in told)


def run_of(command: Callable[..., None], *words: object) -> None:
    app = typer.Typer()
    app.command()(command)
    CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def test_a_command_that_searches_by_words_does_so_whatever_the_settings_say(plain: Settings) -> None:
    dense = plain.model_copy(update={"retrieve": plain.retrieve.model_copy(update={"retriever": "dense", "k1": 1.2})})
    found = by_words(dense).retrieve
    assert (found.retriever, found.k1) == ("bm25", 1.2)


def test_a_sample_that_is_skipped_holds_what_another_command_took(tmp_path: Path) -> None:
    corpus = lines(tmp_path / "c.jsonl", *({"id": f"p{n}", "contents": f"Text {n}."} for n in range(60)))
    asked = [{"id": f"q{n}", "question": f"What is {n}?", "answers": [str(n)], "gold": [f"p{n}"]} for n in range(60)]
    for one in asked[::2]:
        one |= {"answers": [], "unanswerable": True}
    questions = lines(tmp_path / "q.jsonl", *asked)
    taken = weighing.prepare(weighing.Experiment(corpus, questions, depth=5, k=5, limit=30))
    left = relevance.prepare(relevance.Experiment(corpus, questions, skip=30)).questions
    assert set(taken).isdisjoint(one.id for one in left)
    assert len(taken) + sum(bool(one.answers) for one in left) == 30
