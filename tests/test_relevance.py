"""Estimators, weights, calibration and losses of RE-RAG, against numbers worked out by hand."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, inf, log
from pathlib import Path
from threading import Event
from typing import get_args

import pytest

from assistant.errors import DataError, ModelError, UtteranceError
from assistant.experiment.measures import calibration_error, reliability
from assistant.judges.relevance.calibration import (
    CalibratedEstimator,
    Calibration,
    Method,
    fit,
)
from assistant.judges.relevance.cosine import CosineEstimator
from assistant.judges.relevance.estimate import READ_CLOSELY, estimates, reranked, set_confidence
from assistant.judges.relevance.estimators.cross_encoder import CrossEncoderEstimator
from assistant.judges.relevance.estimators.llm import LlmEstimator
from assistant.judges.relevance.weights import best, marginal, weights
from assistant.types import Passage, Relevance
from tests.scripted import WORDS, ScriptedLLM

pytest_plugins = ["tests.fixtures_relevance"]
PASSAGES = [Passage("a", "Lentils", "Rich in protein."), Passage("b", "", "Milk."), Passage("c", "Walks", "Good.")]


def scripted(*true: float, context: int = 4096) -> ScriptedLLM:
    return ScriptedLLM(choices=[{"true": one, "false": 1 - one} for one in true], context=context)


# --- estimates ---------------------------------------------------------------------------------------------------


def test_a_persons_own_passage_is_as_relevant_as_its_best_sentence() -> None:
    """A lease says much in few words; of others' passages the whole counts, and of long ones the first few are read."""
    own = Passage("a", "Lease", "The rent is 900 euros. Dogs are allowed. Quiet hours are from ten.", own=True)
    other = replace(own, id="b", own=False)
    asked: list[str] = []

    class Short:
        name, calibration = "short", ""

        def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
            asked.extend(passage.text for passage in passages)
            return [
                Relevance.of_confidence(0.9 if passage.text == "Dogs are allowed." else 0.1) for passage in passages
            ]

    found = estimates("Are dogs allowed?", [other, own], Short(), Event())
    assert [one.confidence for one in found] == pytest.approx([0.1, 0.9])
    assert asked.count(own.text) == 2
    many = [replace(own, id=str(n)) for n in range(READ_CLOSELY + 2)]
    assert [one.confidence > 0.5 for one in estimates("", many, Short(), Event())] == [True] * READ_CLOSELY + [
        False
    ] * 2
    assert estimates("", [], Short(), Event()) == []


def test_scores_are_log_odds_and_stay_finite() -> None:
    assert Relevance.of_confidence(0.8).score == pytest.approx(log(4))
    assert Relevance.of_score(log(4)).confidence == pytest.approx(0.8)
    for certain in (Relevance.of_confidence(1.0), Relevance.of_score(inf), Relevance.of_score(900.0)):
        assert 0.99 < certain.confidence < 1
        assert certain.score < 20
    assert 0 < Relevance.of_score(-inf).confidence < 0.01
    for wrong in (lambda: Relevance.of_confidence(1.2), lambda: Relevance.of_score(float("nan"))):
        with pytest.raises(ValueError, match="has to be"):
            wrong()


def test_the_best_come_first_and_equals_keep_their_order() -> None:
    found = reranked(PASSAGES, [Relevance.of_confidence(r) for r in (0.2, 0.9, 0.2)], 2)
    assert [passage.id for passage, _ in found] == ["b", "a"]
    assert set_confidence([one for _, one in found]) == pytest.approx(0.9)
    assert set_confidence([]) == 0


def test_the_place_counts_as_prior_odds() -> None:
    def order(*confidences: float) -> str:
        relevance = [Relevance.of_confidence(one) for one in confidences]
        return "".join(passage.id for passage, _ in reranked(PASSAGES, relevance, 3, prior=1.0))

    # even odds in the third place are worth a third of those in the first: odds of 1 to 3, a confidence of 0.25
    assert order(0.24, 0.01, 0.5) == "cab"
    assert order(0.26, 0.01, 0.5) == "acb"


def test_the_model_is_asked_of_each_passage() -> None:
    llm = scripted(0.9, 0.3, 0.5)
    found = LlmEstimator(llm).estimate("What holds protein?", PASSAGES, Event())
    assert [one.confidence for one in found] == pytest.approx([0.9, 0.3, 0.5])
    assert found[2].score == pytest.approx(0)
    assert "Lentils: Rich in protein." in llm.asked[0][-1].content
    assert all("What holds protein?" in prompt[-1].content for prompt in llm.asked)
    assert LlmEstimator(llm).estimate("What?", [], Event()) == []


def test_a_passage_longer_than_the_window_is_cut_and_a_question_is_refused() -> None:
    llm = scripted(0.6, context=300)
    long = Passage("a", "Long", "First sentence here. " + "word " * 5000)
    [found] = LlmEstimator(llm).estimate("What?", [long], Event())
    assert found.confidence == pytest.approx(0.6)
    assert llm.count(llm.asked[0]) < 300
    assert "First sentence here." in llm.asked[0][-1].content
    with pytest.raises(UtteranceError, match="too long"):
        LlmEstimator(llm).estimate("what " * 400, [long], Event())


@pytest.mark.model
def test_a_real_model_gives_probabilities(smollm) -> None:
    found = LlmEstimator(smollm).estimate("What holds protein?", PASSAGES, Event())
    assert len(found) == 3
    assert all(0 < one.confidence < 1 for one in found)
    assert len({one.confidence for one in found}) == 3


def test_likeness_is_a_baseline() -> None:
    found = CosineEstimator(WORDS).estimate("rich in protein", PASSAGES, Event())
    # three of the passage's four words, and no word of the others
    assert found[0].confidence == pytest.approx(3 / (3**0.5 * 4**0.5))
    assert found[1].confidence == pytest.approx(0, abs=1e-5)
    assert CosineEstimator(WORDS).estimate("?", [], Event()) == []


# --- cross-encoders ----------------------------------------------------------------------------------------------


def test_a_cross_encoder_scores_as_its_own_logits(tiny_cross_encoder: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    estimator = CrossEncoderEstimator(tiny_cross_encoder, "tiny")
    found = estimator.estimate("what holds protein", PASSAGES * 20, Event())
    tokenizer = AutoTokenizer.from_pretrained(tiny_cross_encoder)
    model = AutoModelForSequenceClassification.from_pretrained(tiny_cross_encoder).eval()
    with torch.inference_mode():
        read = tokenizer("what holds protein", "Lentils: Rich in protein.", return_tensors="pt")
        logit = float(model(**read).logits[0, 0])
    # it may be read in bf16, which has three digits
    assert found[0].score == pytest.approx(logit, abs=0.02)
    assert found[57].score == pytest.approx(found[0].score, abs=0.02)
    assert found[1].score != pytest.approx(found[0].score, abs=0.02)
    assert estimator.name == "cross-encoder:tiny"
    assert estimator.estimate("?", [], Event()) == []


def test_a_cross_encoder_stops_and_takes_odd_texts(tiny_cross_encoder: Path) -> None:
    estimator = CrossEncoderEstimator(tiny_cross_encoder)
    odd = [Passage("x", "", ""), Passage("y", "\ud800", "word " * 3000), Passage("z", "日本", "🙂\x00")]
    assert all(0 < one.confidence < 1 for one in estimator.estimate("protein " * 2000, odd, Event()))
    stop = Event()
    stop.set()
    assert estimator.estimate("?", PASSAGES, stop) == [Relevance(0.5, 0.0)] * 3


def test_what_is_no_cross_encoder_is_refused(tiny_cross_encoder: Path, tmp_path: Path) -> None:
    import json
    import shutil

    with pytest.raises(ModelError, match="holds no model"):
        CrossEncoderEstimator(tmp_path)
    folder = tmp_path / "copy"
    shutil.copytree(tiny_cross_encoder, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["BertModel"]}))
    with pytest.raises(ModelError, match="holds no cross-encoder"):
        CrossEncoderEstimator(folder)
    (folder / "config.json").write_text(json.dumps(config | {"id2label": {"0": "no", "1": "yes"}}))
    with pytest.raises(ModelError, match="gives 2 values"):
        CrossEncoderEstimator(folder)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(ModelError, match="no complete cross-encoder"):
        CrossEncoderEstimator(folder)


# --- weights -----------------------------------------------------------------------------------------------------


def test_weights_are_a_softmax() -> None:
    assert weights([log(1), log(2), log(5)]) == pytest.approx([0.125, 0.25, 0.625])
    assert weights([3.0]) == [1.0]
    assert weights([]) == []
    assert weights([1000.0, 0.0]) == pytest.approx([1, 0])
    with pytest.raises(ValueError, match="finite"):
        weights([inf, 0.0])


def test_answers_are_weighed_by_the_passages_relevance() -> None:
    scores = [log(3), log(1)]
    found = marginal(scores, [[log(0.2), log(0.6)], [log(0.5), -inf]])
    assert [exp(one) for one in found] == pytest.approx([0.75 * 0.2 + 0.25 * 0.6, 0.75 * 0.5])
    assert best(found) == 1


def test_the_ends_of_marginalisation() -> None:
    impossible = marginal([0.0, 1.0], [[-inf, -inf], [-inf, -inf]])
    assert impossible == [-inf, -inf]
    assert best(impossible) is None
    assert best([]) is None
    assert marginal([2.0], [[log(0.3)]]) == [pytest.approx(log(0.3))]
    assert marginal([], [[], []]) == [-inf, -inf]
    # far below what a float holds as a probability
    assert marginal([0.0, 0.0], [[-2000.0, -2000.0]]) == [pytest.approx(-2000.0)]
    with pytest.raises(ValueError, match="1 likelihoods for 2 passages"):
        marginal([0.0, 0.0], [[-1.0]])
    for wrong in (0.5, float("nan")):
        with pytest.raises(ValueError, match="0 or less"):
            marginal([0.0], [[wrong]])


# --- calibration -------------------------------------------------------------------------------------------------

# At score 2 and -2 of a temperature of 2 and no shift: sigmoid(1) = 0.731.
SCORES = [2.0] * 1000 + [-2.0] * 1000
LABELS = [n < 731 for n in range(1000)] + [n < 269 for n in range(1000)]


@pytest.mark.parametrize("method", get_args(Method))
def test_every_method_finds_the_shares_that_are_there(method) -> None:
    found = fit("e", method, SCORES, LABELS)
    assert found.apply(Relevance.of_score(2.0)).confidence == pytest.approx(0.731, abs=0.002)
    assert found.apply(Relevance.of_score(-2.0)).confidence == pytest.approx(0.269, abs=0.002)
    if method == "temperature":
        assert 1 / found.slope == pytest.approx(2, abs=0.02)
        assert found.intercept == 0


def test_temperature_cannot_shift_but_the_others_can() -> None:
    scores, labels = [4.0] * 100 + [1.0] * 100, [n < 80 for n in range(100)] + [n < 10 for n in range(100)]
    assert fit("e", "temperature", scores, labels).apply(Relevance.of_score(1.0)).confidence > 0.4
    for method in ("platt", "isotonic"):
        found = fit("e", method, scores, labels).apply(Relevance.of_score(1.0))
        assert found.confidence == pytest.approx(0.1, abs=0.01)


def test_isotonic_is_never_certain() -> None:
    found = fit("e", "isotonic", [-1.0, 0.0, 1.0, 2.0], [False, False, True, True])
    for score in (-5.0, 5.0):
        relevance = found.apply(Relevance.of_score(score))
        assert 0.1 < relevance.confidence < 0.9
        assert relevance.score == pytest.approx(log(relevance.confidence / (1 - relevance.confidence)))


def test_what_can_not_be_calibrated_is_refused() -> None:
    with pytest.raises(DataError, match="All 2 passages are relevant"):
        fit("e", "platt", [1.0, 2.0], [True, True])
    with pytest.raises(DataError, match="All 0 passages are irrelevant"):
        fit("e", "platt", [], [])
    with pytest.raises(DataError, match="as temperature needs; try platt or isotonic"):
        fit("e", "temperature", [3.0, 4.0] * 10, [False] * 19 + [True])
    for method in get_args(Method):
        with pytest.raises(DataError, match="don't rise with relevance"):
            fit("e", method, [-1.0, 1.0], [True, False])
    with pytest.raises(ValueError, match="2 scores and 1 labels"):
        fit("e", "platt", [1.0, 2.0], [True])


@pytest.mark.parametrize("method", get_args(Method))
def test_a_calibration_is_read_back_as_it_was(method, tmp_path: Path) -> None:
    found = fit("llm:m", method, SCORES, LABELS)
    found.save(tmp_path / "c.json")
    assert Calibration.load(tmp_path / "c.json", "llm:m") == found
    assert [file.name for file in tmp_path.iterdir()] == ["c.json"]


def test_calibrations_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    fit("llm:m", "platt", SCORES, LABELS).save(path)
    good = path.read_text()
    for text, says in (
        (good.replace('"version": 1', '"version": 2'), "version: Input should be 1"),
        (good.replace("llm:m", "llm:other"), "was fitted for llm:other, not for llm:m"),
        (good.replace('"platt"', '"isotonic"'), "has no knots"),
        (good.replace('"platt"', '"magic"'), "method: Input should be"),
        ("[]", "can't be read"),
        (good[:20], "Invalid JSON"),
        ("{}", "Field required"),
    ):
        path.write_text(text)
        with pytest.raises(ModelError, match=says):
            Calibration.load(path, "llm:m")
    with pytest.raises(ModelError, match="can't be read"):
        Calibration.load(tmp_path / "none.json", "llm:m")
    with pytest.raises(DataError, match="can't be written"):
        Calibration("e", "platt").save(tmp_path / "no" / "c.json")


def test_an_estimator_is_calibrated_in_place() -> None:
    halved = CalibratedEstimator(
        LlmEstimator(scripted(0.9, 0.5)), Calibration("llm:scripted", "temperature", slope=0.5)
    )
    found = halved.estimate("?", PASSAGES[:2], Event())
    assert halved.name == "llm:scripted"
    assert found[0].score == pytest.approx(log(9) / 2)
    assert found[1].confidence == pytest.approx(0.5)


def test_calibration_error_by_hand() -> None:
    confidences, relevant = [0.95, 0.85, 0.15, 0.11, 1.0], [True, False, False, True, True]
    bins = reliability(confidences, relevant)
    assert list(zip(bins["low"], bins["count"], strict=True)) == [(0.1, 2), (0.8, 1), (0.9, 2)]
    assert bins["confidence"].iloc[0] == pytest.approx(0.13)
    assert bins["relevant"].iloc[0] == 0.5
    by_hand = (2 * abs(0.13 - 0.5) + 1 * 0.85 + 2 * (1 - 0.975)) / 5
    assert calibration_error(bins) == pytest.approx(by_hand)
