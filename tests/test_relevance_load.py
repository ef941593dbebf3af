"""Estimators as the settings name them, packed into a quarter of their size, and those that can't be used."""

import json
import shutil
from pathlib import Path
from threading import Event

import pytest
import typer
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from assistant.commands.train import app as train
from assistant.commands.train import blend
from assistant.errors import DataError, ModelError, SettingsError
from assistant.judges import packed
from assistant.judges.load import relevance as load_estimator
from assistant.judges.relevance.blend import AGAIN, AGAIN_WORDS, NAME, Blend, TwoStageEstimator, fit
from assistant.judges.relevance.cached_estimator import CachedEstimator
from assistant.judges.relevance.calibration import Calibration
from assistant.judges.relevance.estimators.cross_encoder import CrossEncoderEstimator
from assistant.judges.relevance.load import CALIBRATION, load, load_calibrated
from assistant.judges.stand_ins import StandIns
from assistant.llm.model_folders import name_of
from assistant.protocols import silent
from assistant.settings import EmbedderSettings, RelevanceSettings, Settings
from assistant.settings import load as load_settings
from assistant.types import Passage, Relevance
from tests.fixtures_models import fetched
from tests.scripted import WORDS, ScriptedLLM
from tests.test_encoders import tiny
from tests.test_evaluation_data import lines

pytest_plugins = ["tests.fixtures_relevance"]
PASSAGES = [Passage("a", "Lentils", "Rich in protein."), Passage("b", "", "Milk."), Passage("c", "Walks", "Good.")]


def chosen(settings: Settings, **knobs: object):
    found = load_estimator(settings.model_copy(update={"relevance": RelevanceSettings(**knobs)}), silent)
    return found(ScriptedLLM()) if found else None


def confidences(estimator) -> list[float]:
    return [one.confidence for one in estimator.estimate("what holds protein", PASSAGES, Event())]


# --- packed ------------------------------------------------------------------------------------------------------


def test_a_packed_model_says_nearly_the_same(tiny_cross_encoder, tmp_path) -> None:
    size = packed.pack(tiny_cross_encoder, tmp_path / "small")
    assert size == sum(file.stat().st_size for file in (tmp_path / "small").iterdir())
    before, after = (CrossEncoderEstimator(one) for one in (tiny_cross_encoder, tmp_path / "small"))
    for one, other in zip(
        before.estimate("what holds protein", PASSAGES, Event()),
        after.estimate("what holds protein", PASSAGES, Event()),
        strict=True,
    ):
        assert other.score == pytest.approx(one.score, abs=0.05)
    weights = load_file(tmp_path / "small" / packed.WEIGHTS)
    name = "bert.encoder.layer.0.attention.self.query.weight"
    assert str(weights[name].dtype) == "torch.int8"
    plain = load_file(tiny_cross_encoder / "model.safetensors")[name]
    restored = weights[name].float() * weights[f"{name}.scale"]
    assert (plain - restored).abs().max() <= weights[f"{name}.scale"].max() / 2 + 1e-6


def test_packed_files_that_can_not_be_read(tiny_cross_encoder, tmp_path) -> None:
    small = tmp_path / "small"
    packed.pack(tiny_cross_encoder, small)
    weights = load_file(small / packed.WEIGHTS)
    save_file(weights, small / packed.WEIGHTS, metadata={"version": "2"})
    with pytest.raises(ModelError, match=r"is of version 2, not 1"):
        CrossEncoderEstimator(small)
    (small / packed.WEIGHTS).write_bytes(b"broken")
    with pytest.raises(ModelError, match="can't be read"):
        CrossEncoderEstimator(small)
    with pytest.raises(ModelError, match="no weights that can be packed"):
        packed.pack(small, tmp_path / "again")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="can't be written"):
        packed.pack(tiny_cross_encoder, tmp_path / "file")


def test_the_command_packs(tiny_cross_encoder, tmp_path) -> None:
    words = ["pack", "--model", str(tiny_cross_encoder), "--out", str(tmp_path / "small")]
    result = CliRunner().invoke(train, words, catch_exceptions=False)
    assert "MB" in result.stderr
    assert CrossEncoderEstimator(tmp_path / "small").estimate("?", PASSAGES, Event())


# --- blended -----------------------------------------------------------------------------------------------------


def embedding(settings: Settings, model: Path) -> Settings:
    return settings.model_copy(update={"embedder": EmbedderSettings(model=str(model))})


def test_a_blend_is_the_weighted_sum(settings, tiny_cross_encoder, tmp_path) -> None:
    folder = tmp_path / "tiny"
    shutil.copytree(tiny_cross_encoder, folder)
    [judge] = CrossEncoderEstimator(folder).estimate("rich in protein", PASSAGES[:1], Event())
    Blend("words", 2.0, 3.0, -1.0).save(folder / NAME)
    knobs = settings.model_copy(update={"relevance": RelevanceSettings(estimator="cross_encoder", model=str(folder))})
    found = load_estimator(knobs, silent, WORDS)
    assert found
    estimator = found(ScriptedLLM())
    assert estimator.name.startswith("cross-encoder:tiny-")
    assert estimator.name.endswith("+cosine")
    [blended] = estimator.estimate("rich in protein", PASSAGES[:1], Event())
    assert blended.score == pytest.approx(2 * judge.score + 3 * 3 / (3**0.5 * 4**0.5) - 1, abs=1e-4)
    assert estimator.estimate("?", [], Event()) == []
    stop = Event()
    stop.set()
    assert [one.score for one in estimator.estimate("?", PASSAGES, stop)] == [0, 0, 0]


def test_weights_are_fitted_and_what_tells_nothing_is_refused() -> None:
    scores, alike = [3.0, 2.0, 1.0, -1.0, -2.0, 0.5] * 20, [0.9, 0.1, 0.8, 0.2, 0.1, 0.9] * 20
    found = fit("words", scores, alike, [True, False, True, False, False, True] * 20)
    assert found.other > found.judge > 0
    assert found.pairs == 120
    with pytest.raises(DataError, match="All 2 passages are relevant"):
        fit("words", [1.0, 2.0], [0.1, 0.2], [True, True])
    with pytest.raises(DataError, match="says nothing about relevance"):
        fit("words", [1.0, -1.0] * 10, [0.9, 0.1] * 10, [False, True] * 10)


def test_a_larger_one_reads_again_what_a_quick_one_finds_first() -> None:
    passages = [Passage(str(n), "", f"walk {n} " * (AGAIN_WORDS // 2)) for n in range(AGAIN + 2)]
    quick, judge = Places([float(-n) for n in range(AGAIN + 2)]), Places([float(n) for n in range(AGAIN)])
    found = TwoStageEstimator(judge, quick, Blend(quick.name, 0.2, 0.3, 1.0)).estimate("where", passages, Event())
    assert judge.asked == [passages[:AGAIN]]
    assert found[AGAIN - 1].score == pytest.approx(0.2 * (AGAIN - 1) - 0.3 * (AGAIN - 1) + 1)
    # what isn't read again counts as the least of what is
    assert found[AGAIN].score == pytest.approx(-0.3 * AGAIN + 1)
    assert TwoStageEstimator(judge, quick, Blend("", 2.0, 3.0, 1.0)).estimate("where", [], Event()) == []


def test_what_two_stages_cache_of_a_text_is_the_same_beside_any_others() -> None:
    passages = [Passage(str(n), "", f"walk {n} " * (AGAIN_WORDS // 2)) for n in range(AGAIN + 2)]
    estimator = TwoStageEstimator(Numbers(), Numbers(), Blend("", 0.2, 0.3, 1.0))
    cached = estimator.with_stages(CachedEstimator)
    for some in (passages, passages[:1], passages[:3]):
        assert cached.estimate("where", some, Event()) == estimator.estimate("where", some, Event())


@pytest.mark.parametrize(("words", "read"), [(AGAIN_WORDS // 20 - 1, 20), (AGAIN_WORDS // 10 - 1, 10)])
def test_of_short_passages_a_larger_one_reads_as_many_as_it_would_read_words(words: int, read: int) -> None:
    passages = [Passage(str(n), "", "walk " * words) for n in range(30)]
    quick, judge = Places([n / 10 for n in range(30)]), Places([1.0] * read)
    TwoStageEstimator(judge, quick, Blend(quick.name, 0.2, 0.3, 1.0)).estimate("where", passages, Event())
    assert judge.asked == [passages[: -read - 1 : -1]]


def test_the_smaller_one_stands_in_where_the_encoder_cannot_be_had(
    settings, monkeypatch, caplog: pytest.LogCaptureFixture
) -> None:
    fetched("all-MiniLM-L6-v2")
    small = chosen(settings, estimator="cross_encoder")

    def refused(*_: object) -> Path:
        raise ModelError("no network")

    monkeypatch.setattr("assistant.judges.relevance.load.encoder", refused)
    assert chosen(settings, estimator="large").name == small.name
    assert "no network" in caplog.text
    told, larger = StandIns(), settings.model_copy(update={"relevance": RelevanceSettings(estimator="large")})
    load_estimator(larger, silent, None, told)
    assert "smaller judges stand in for the larger ones, of relevance. no network" in told.told
    with pytest.raises(ModelError, match="no network"):
        load("large", ScriptedLLM, settings, silent)


def test_a_blend_finds_the_embedder_of_the_settings_by_its_name(settings, tiny_cross_encoder, tmp_path) -> None:
    folder, encoder, other = tmp_path / "judge", tmp_path / "encoder", tmp_path / "other"
    shutil.copytree(tiny_cross_encoder, folder)
    Blend(name_of(tiny(encoder, "BertModel")), 2.0, 3.0, -1.0).save(folder / NAME)
    with pytest.raises(ModelError, match=f"needs the embedder '{name_of(encoder)}'"):
        load(str(folder), ScriptedLLM, embedding(settings, tiny(other, "BertModel", seed=1)), silent)
    judge = load(str(folder), ScriptedLLM, embedding(settings, encoder), silent)
    [one] = judge.estimate("rich in protein", PASSAGES[:1], Event())
    assert 0 < one.confidence < 1


def test_blends_that_can_not_be_read(tmp_path) -> None:
    path = tmp_path / NAME
    Blend("words", 2.0, 3.0, -1.0).save(path)
    assert Blend.load(path) == Blend("words", 2.0, 3.0, -1.0)
    path.write_text(path.read_text().replace('"version": 2', '"version": 1'))
    with pytest.raises(ModelError, match=r"can't be read .version: .*make it again with `train blend`"):
        Blend.load(path)
    path.write_text("{")
    with pytest.raises(ModelError, match="can't be read"):
        Blend.load(path)
    with pytest.raises(DataError, match="can't be written"):
        Blend("words", 2.0, 3.0, -1.0).save(tmp_path / "no" / NAME)


@pytest.mark.lucene
def test_the_command_blends(tiny_cross_encoder, tmp_path, monkeypatch) -> None:
    folder = tmp_path / "tiny"
    shutil.copytree(tiny_cross_encoder, folder)
    corpus = lines(tmp_path / "c.jsonl", *({"id": p.id, "title": p.title, "contents": p.text} for p in PASSAGES))
    asked = {"id": "1", "question": "rich in protein, milk, good?", "answers": ["x"], "gold": ["a"]}
    monkeypatch.setattr("assistant.commands.train.embedder_of", lambda *_: WORDS)
    monkeypatch.setattr("assistant.judges.relevance.load.trained", lambda *_: Sure())
    app = typer.Typer()
    app.command()(blend)
    words = ["--corpus", corpus, "--questions", lines(tmp_path / "q.jsonl", asked), "--model", folder]
    CliRunner().invoke(app, [str(word) for word in (*words, "--data-dir", tmp_path / "d")], catch_exceptions=False)
    found = Blend.load(folder / NAME)
    assert found.beside == "words"
    assert found.pairs == 3


class Places:
    """Gives what it is asked of these scores, in order, and keeps what it was asked."""

    name, calibration = "places", ""

    def __init__(self, scores: list[float]) -> None:
        self._scores = scores
        self.asked: list[list[Passage]] = []

    def estimate(self, question, passages, stop) -> list[Relevance]:
        self.asked += [list(passages)] if passages else []
        return [Relevance.of_score(score) for score in self._scores[: len(passages)]]


class Numbers:
    """Gives each passage its number."""

    name, calibration = "numbers", ""

    def estimate(self, question, passages, stop) -> list[Relevance]:
        return [Relevance.of_score(float(passage.id)) for passage in passages]


class Sure:
    """Knows that the first passage is the one."""

    name, calibration = "sure", ""

    def estimate(self, question, passages, stop) -> list[Relevance]:
        return [Relevance.of_score(2.0 if passage.id == "a" else -2.0) for passage in passages]


# --- by the settings ---------------------------------------------------------------------------------------------


def test_none_is_none(settings) -> None:
    assert chosen(settings, estimator="none") is None


def test_each_kind_is_had_by_its_name(settings, tiny_cross_encoder, tiny_t5) -> None:
    assert chosen(settings, estimator="llm").name == "llm:scripted"
    assert chosen(settings, estimator="cross_encoder", model=str(tiny_cross_encoder)).name.startswith("cross-encoder:")
    assert chosen(settings, estimator="seq2seq", model=str(tiny_t5)).name.startswith("seq2seq:tiny-t5-")
    for folder, name in ((tiny_cross_encoder, "cross-encoder:tiny-cross-encoder-"), (tiny_t5, "seq2seq:tiny-t5-")):
        assert load(str(folder), ScriptedLLM, settings, silent).name.startswith(name)
    assert load("llm", ScriptedLLM, settings, silent).name == "llm:scripted"


@pytest.mark.model
def test_the_shipped_one_is_had_by_its_name(settings) -> None:
    knobs = embedding(settings, fetched("all-MiniLM-L6-v2"))
    assert load("shipped", ScriptedLLM, knobs, silent).name == "cross-encoder:shipped+cosine"


def test_two_models_in_folders_of_one_name_are_told_apart(settings, tiny_cross_encoder, tmp_path) -> None:
    def name(folder: Path) -> str:
        return load(str(folder), ScriptedLLM, settings, silent).name

    one, same, other = (tmp_path / part / "model" for part in ("one", "same", "other"))
    for folder in (one, same, other):
        shutil.copytree(tiny_cross_encoder, folder)
    weights = load_file(other / "model.safetensors")
    save_file({key: value + 1 for key, value in weights.items()}, other / "model.safetensors", {"format": "pt"})
    assert name(one) == name(same) != name(other)
    Calibration(name(one), "platt", intercept=3.0).save(tmp_path / "curve.json")
    with pytest.raises(ModelError, match="was fitted for cross-encoder:model-"):
        load_calibrated(str(other), tmp_path / "curve.json", ScriptedLLM, settings, silent)


def test_a_calibration_beside_the_model_is_used(settings, tiny_cross_encoder, tmp_path) -> None:
    folder = tmp_path / "tiny"
    shutil.copytree(tiny_cross_encoder, folder)
    plain = confidences(chosen(settings, estimator="cross_encoder", model=str(folder)))
    name = load(str(folder), ScriptedLLM, settings, silent).name
    curve = Calibration(name, "platt", slope=1.0, intercept=-3.0, pairs=1200, data="NQ")
    curve.save(folder / CALIBRATION)
    found = chosen(settings, estimator="cross_encoder", model=str(folder))
    assert found.calibration == "platt, on 1,200 passages of NQ"
    assert all(after < before / 5 for before, after in zip(plain, confidences(found), strict=True))
    Calibration(name, "platt", intercept=3.0).save(tmp_path / "other.json")
    other = chosen(settings, estimator="cross_encoder", model=str(folder), calibration=str(tmp_path / "other.json"))
    assert all(after > before for before, after in zip(plain, confidences(other), strict=True))


def test_one_that_can_not_be_had_says_so_when_it_is_asked(settings, tiny_cross_encoder, tmp_path) -> None:
    other = tmp_path / "tiny"
    shutil.copytree(tiny_cross_encoder, other)
    text = json.dumps({"estimator": "cross-encoder:tiny", "method": "platt", "version": 2})
    (other / CALIBRATION).write_text(text)
    for knobs, error, says in (
        ({"estimator": "cross_encoder", "model": str(tmp_path / "none")}, ModelError, "none"),
        ({"estimator": "cross_encoder", "model": str(other)}, ModelError, "version: Input should be 1"),
        ({"estimator": "seq2seq"}, ModelError, "set relevance.model"),
        ({"estimator": "llm", "calibration": str(tmp_path / "no.json")}, ModelError, "can't be read"),
    ):
        with pytest.raises(error, match=says):
            chosen(settings, **knobs).estimate("?", PASSAGES, Event())


@pytest.mark.parametrize("threshold", [0, 1, -0.5, 1.5, "nan"])
def test_thresholds_outside_of_0_and_1_are_refused(threshold, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(f"[relevance]\nthreshold = {threshold}\n")
    with pytest.raises(SettingsError, match=r"relevance\.threshold"):
        load_settings(file)
