"""The paper's estimator and its training with a generator, by T5s that are made here."""

import json
import shutil
from dataclasses import replace
from math import exp, log
from pathlib import Path
from threading import Event

import pytest
import torch
import typer
from torch import Tensor
from typer.testing import CliRunner

from assistant.commands.train import joint
from assistant.errors import DataError, ModelError
from assistant.judges.relevance.estimators.seq2seq import (
    Seq2SeqEstimator,
    encoded,
    first_logits,
    load,
    scores,
    word_ids,
)
from assistant.protocols import silent
from assistant.training.relevance.joint import ESTIMATOR, GENERATOR, JointExample, JointPlan, JointTrainer
from assistant.training.relevance.losses import generation_loss, relevance_loss, token_loss
from assistant.types import Passage
from tests.test_evaluation_data import lines

pytest_plugins = ["tests.fixtures_relevance"]
TOWNS = {"france": "paris", "peru": "lima", "norway": "oslo", "kenya": "nairobi"}
PASSAGES = tuple(Passage(one, one, f"the capital of {one} is {town} .") for one, town in TOWNS.items())
ASKED = [JointExample(f"where is {town} ?", (one,), PASSAGES) for one, town in TOWNS.items()]
# the passages are of different lengths
ASKED_UNEVENLY = replace(ASKED[1], passages=(replace(PASSAGES[0], text="paris ."), *PASSAGES[1:]))


@pytest.fixture(autouse=True)
def one_thread():
    """For a model this small, threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trainer(folder: Path, base: Path, **changes) -> JointTrainer:
    plan = replace(JointPlan(str(base), str(base), epochs=2, batch=2, rate=3e-3, length=32), **changes)
    return JointTrainer(folder, plan, ASKED, ASKED)


# --- the estimator -----------------------------------------------------------------------------------------------


def test_confidence_is_true_against_false(tiny_t5) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    found = Seq2SeqEstimator(tiny_t5).estimate("where is lima ?", list(PASSAGES) * 3, Event())
    tokenizer, model = AutoTokenizer.from_pretrained(tiny_t5), AutoModelForSeq2SeqLM.from_pretrained(tiny_t5).eval()
    read = tokenizer("question: where is lima ? context: peru: the capital of peru is lima .", return_tensors="pt")
    with torch.inference_mode():
        odds = model(**read, decoder_input_ids=torch.tensor([[0]])).logits[0, 0].softmax(-1)
    true, false = (float(odds[tokenizer(word)["input_ids"][0]]) for word in ("true", "false"))
    assert found[1].confidence == pytest.approx(true / (true + false), abs=1e-5)
    assert found[1].score == pytest.approx(log(true / false), abs=1e-4)
    assert len(found) == 12
    assert found[9].score == pytest.approx(found[1].score, abs=1e-4)


def test_it_stops_and_takes_odd_texts(tiny_t5) -> None:
    estimator = Seq2SeqEstimator(tiny_t5, "tiny")
    odd = [Passage("x", "", ""), Passage("y", "\ud800", "word " * 3000)]
    assert all(0 < one.confidence < 1 for one in estimator.estimate("where " * 900, odd, Event()))
    assert estimator.estimate("?", [], Event()) == []
    stop = Event()
    stop.set()
    assert [one.score for one in estimator.estimate("?", PASSAGES, stop)] == [0] * 4
    assert estimator.name == "seq2seq:tiny"


def test_what_is_no_t5_is_refused(tiny_t5, tiny_cross_encoder, tmp_path) -> None:
    for folder in (tmp_path, tiny_cross_encoder):
        with pytest.raises(ModelError, match="holds no encoder-decoder"):
            Seq2SeqEstimator(folder)
    broken = tmp_path / "broken"
    shutil.copytree(tiny_t5, broken)
    (broken / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(ModelError, match="no complete encoder-decoder"):
        Seq2SeqEstimator(broken)
    with pytest.raises(ModelError, match="can't tell 'true' from 'false'"):
        word_ids(lambda word, add_special_tokens: {"input_ids": [7]})


# --- losses ------------------------------------------------------------------------------------------------------


def test_token_loss_and_its_gradients() -> None:
    # three contexts, a vocabulary of five, of which 1 is "true" and 3 is "false"
    rows = [[0.1, 1.0, -0.5, 0.3, 0.0], [2.0, 0.0, 0.0, -1.0, 1.0], [0.0, 3.0, -2.0, 2.0, -1.0]]
    logits = torch.tensor([rows], dtype=torch.float64, requires_grad=True)
    found = token_loss(logits, (1, 3), torch.ones(1, 3, dtype=torch.bool))
    found.backward()
    odds = [[exp(v) / sum(map(exp, row)) for v in row] for row in rows]
    others = [sum(p for t, p in enumerate(row) if t not in (1, 3)) for row in odds]
    assert found.item() == pytest.approx(sum(others) / 3)
    # d/dz_t of the others' sum S: p_t (1 - S) for another token, -p_t S for the two
    by_hand = [
        [(p * (1 - s) if t not in (1, 3) else -p * s) / 3 for t, p in enumerate(row)]
        for row, s in zip(odds, others, strict=True)
    ]
    for got, wanted in zip(logits.grad[0].tolist(), by_hand, strict=True):
        assert got == pytest.approx(wanted)


def test_contexts_that_are_missing_have_no_tokens() -> None:
    logits = torch.zeros(1, 2, 4)
    logits[0, 1, 0] = 50
    assert token_loss(logits, (1, 3), torch.tensor([[True, False]])).item() == pytest.approx(0.5)


def first_of(folder: Path, asked: JointExample) -> tuple[Tensor, tuple[int, int]]:
    """What a model in a folder holds of the first token that it writes, and the tokens "true" and "false"."""
    tokenizer, model = load(folder)
    inputs = encoded(tokenizer, asked.question, asked.passages, torch.device("cpu"))
    with torch.inference_mode():
        return first_logits(model, inputs), word_ids(tokenizer)


def log_likelihoods(folder: Path, asked: JointExample) -> Tensor:
    """How likely the answer is after each passage, by transformers' own loss: the mean over its word and the end."""
    tokenizer, model = load(folder)
    labels = tokenizer(asked.answers[0], return_tensors="pt")["input_ids"]
    assert labels.shape == (1, 2)
    found = []
    for passage in asked.passages:
        inputs = encoded(tokenizer, asked.question, [passage], torch.device("cpu"))
        with torch.inference_mode():
            found.append(-2 * model(**inputs, labels=labels).loss)
    return torch.stack(found)


@pytest.mark.parametrize("one", [replace(ASKED[0], passages=PASSAGES[:3]), ASKED[1], ASKED_UNEVENLY])
def test_the_whole_loss_is_the_sum_of_its_parts(tiny_t5, tmp_path, one: JointExample) -> None:
    total = trainer(tmp_path, tiny_t5, alpha1=0.5, alpha2=2.0).loss([one])
    (logits, words), logs = first_of(tiny_t5, one), log_likelihoods(tiny_t5, one)
    present = torch.ones(1, len(one.passages), dtype=torch.bool)
    parts = (
        generation_loss(scores(logits, words)[None], logs[None], present).item(),
        relevance_loss(scores(logits, words)[None], logs[None], present).item(),
        token_loss(logits[None], words, present).item(),
    )
    assert total.item() == pytest.approx(parts[0] + 0.5 * parts[1] + 2 * parts[2], rel=1e-5)


def test_the_loss_reaches_both_models(tiny_t5, tmp_path) -> None:
    # without decay, a weight that has no gradient stays as it is
    trainer(tmp_path, tiny_t5, epochs=1, decay=0.0).run(silent)
    _, before = load(tiny_t5)
    for name in (ESTIMATOR, GENERATOR):
        _, model = load(tmp_path / name)
        assert not torch.equal(model.shared.weight, before.shared.weight)


# --- the training ------------------------------------------------------------------------------------------------


def test_both_learn_and_the_best_are_kept(tiny_t5, tmp_path) -> None:
    training = trainer(tmp_path, tiny_t5, epochs=40)
    before = training.loss(ASKED).item(), training.exact_match()
    history = training.run(silent)
    assert training.loss(ASKED).item() < before[0] / 3
    best = max(epoch.em for epoch in history)
    assert best == 1 > before[1]
    kept = trainer(tmp_path / "again", tmp_path / ESTIMATOR, generator=str(tmp_path / GENERATOR))
    assert kept.exact_match() == best
    # L_tok has taught the estimator to say nothing but true and false
    logits, words = first_of(tmp_path / ESTIMATOR, ASKED[0])
    assert logits.softmax(-1)[:, list(words)].sum(-1).min() > 0.9
    assert Seq2SeqEstimator(tmp_path / ESTIMATOR).estimate("where is lima ?", PASSAGES, Event())


def test_a_killed_training_goes_on_to_the_same_weights(tiny_t5, tmp_path) -> None:
    expected = trainer(tmp_path / "whole", tiny_t5, epochs=3).run(silent)

    def killed(done: int, total: int) -> None:
        if done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer(tmp_path / "killed", tiny_t5, epochs=3).run(killed)
    assert trainer(tmp_path / "killed", tiny_t5, epochs=3).run(silent) == expected
    assert len(json.loads((tmp_path / "killed" / "history.json").read_text())) == 3


@pytest.mark.lucene
def test_the_command_end_to_end(tiny_t5, tmp_path) -> None:
    corpus = lines(tmp_path / "c.jsonl", *({"id": p.id, "title": p.title, "contents": p.text} for p in PASSAGES))
    asked = ({"id": one, "question": f"where is {town} ?", "answers": [one]} for one, town in TOWNS.items())
    app = typer.Typer()
    app.command()(joint)
    words = ["--corpus", corpus, "--questions", lines(tmp_path / "q.jsonl", *asked), "--out", tmp_path / "out"]
    words += ["--estimator", tiny_t5, "--generator", tiny_t5, "--contexts", 2, "--epochs", 2, "--batch", 2]
    words += ["--length", 32, "--data-dir", tmp_path / "data", "--json", "--dev"]
    result = CliRunner().invoke(app, [str(word) for word in (*words, 1)], catch_exceptions=False)
    assert [epoch["number"] for epoch in json.loads(result.stdout)] == [1, 2]
    assert Seq2SeqEstimator(tmp_path / "out" / ESTIMATOR).estimate("where is lima ?", PASSAGES, Event())
    with pytest.raises(DataError, match="lower --dev"):
        CliRunner().invoke(app, [str(word) for word in (*words, 4)], catch_exceptions=False)


def test_what_can_not_be_trained_is_refused(tiny_t5, tmp_path) -> None:
    plan = JointPlan(str(tiny_t5), str(tiny_t5), epochs=1, length=32)
    for train in ([], [JointExample("what ?", (), PASSAGES)], [JointExample("what ?", ("x",), ())]):
        with pytest.raises(DataError, match="No question has both"):
            JointTrainer(tmp_path, plan, train, ASKED)
    with pytest.raises(ModelError, match="no encoder-decoder"):
        JointTrainer(tmp_path, replace(plan, generator=str(tmp_path)), ASKED, ASKED)
    trainer(tmp_path / "a", tiny_t5, epochs=1).run(silent)
    with pytest.raises(DataError, match="another plan or on other questions"):
        trainer(tmp_path / "a", tiny_t5, alpha2=0.0)
