"""Training a tiny cross-encoder on what a scripted generator holds likely."""

import json
from dataclasses import dataclass, field, replace
from math import inf, log
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from assistant.commands import train
from assistant.commands import train as command
from assistant.errors import DataError, ModelError, SettingsError
from assistant.experiment.datasets import Question
from assistant.judges.relevance.estimators.cross_encoder import CrossEncoderEstimator
from assistant.protocols import silent
from assistant.training.checkpoint import NAME as CHECKPOINT
from assistant.training.loop import MODEL
from assistant.training.relevance.likelihoods import examples, examples_by_words, open_run, score_missing_rows
from assistant.training.relevance.train import Epoch, Example, Plan, Trainer
from assistant.types import Passage
from tests.fixtures_models import fetched
from tests.scripted import FixedRetriever, ScriptedLLM
from tests.test_evaluation_data import lines

pytest_plugins = ["tests.fixtures_relevance"]
TOWNS = {"france": "paris", "peru": "lima", "norway": "oslo", "kenya": "nairobi"}
PASSAGES = [Passage(one, one, f"the capital of {one} is {town} .") for one, town in TOWNS.items()]


def example(country: str, *, possible: bool = True) -> Example:
    """Whatever is asked, the generator finds the answer in the passage about Peru."""
    logs = tuple(log(0.8) if passage.id == "peru" else log(0.001) for passage in PASSAGES)
    return Example(f"capital of {country} ?", tuple(PASSAGES), logs if possible else (-inf,) * 4)


EXAMPLES = [example(country) for country in TOWNS]


def trainer(folder: Path, base: Path, epochs: int = 2, **changes) -> Trainer:
    plan = replace(Plan(str(base), epochs=epochs, batch=2, rate=3e-3, length=48), **changes)
    return Trainer(folder, plan, EXAMPLES, EXAMPLES)


@pytest.fixture(autouse=True)
def one_thread():
    """For a model this small, threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# --- the trainer -------------------------------------------------------------------------------------------------


def test_it_learns_which_passages_the_generator_can_use(tiny_cross_encoder, tmp_path) -> None:
    training = trainer(tmp_path, tiny_cross_encoder, epochs=10)
    before = training.dev_loss()
    history = training.run(silent)
    best = min(epoch.dev for epoch in history)
    # even weights over four passages leave the answer at about 0.2; the best possible is 0.8
    assert before > 1
    assert best < 0.4
    assert [epoch.number for epoch in history] == list(range(1, 11))
    assert [epoch.dev for epoch in history if epoch.best][-1] == best
    found = CrossEncoderEstimator(tmp_path / MODEL).estimate("where is lima ?", PASSAGES, Event())
    assert max(found, key=lambda one: one.score) is found[1]


def test_the_model_that_is_kept_is_that_of_the_best_epoch(tiny_cross_encoder, tmp_path) -> None:
    training = trainer(tmp_path, tiny_cross_encoder, epochs=4)
    history = training.run(silent)
    kept = CrossEncoderEstimator(tmp_path / MODEL)
    again = Trainer(tmp_path / "again", Plan(str(tmp_path / MODEL), length=48), EXAMPLES, EXAMPLES)
    assert again.dev_loss() == pytest.approx(min(epoch.dev for epoch in history), abs=1e-5)
    assert kept.estimate("capital of peru ?", PASSAGES[:1], Event())


def test_epochs_are_compared_by_what_is_answered_rightly_and_then_by_the_loss(tiny_cross_encoder, tmp_path) -> None:
    def answered(right: str) -> list[Example]:
        written = tuple(("Lima" if p.id == "peru" else right if p.id == "kenya" else "", log(0.9)) for p in PASSAGES)
        return [replace(one, answers=written, accepted=("lima",)) for one in EXAMPLES]

    plan = Plan(str(tiny_cross_encoder), epochs=8, batch=2, rate=3e-3, length=48)
    training = Trainer(tmp_path / "a", plan, EXAMPLES, answered("Oslo"))
    history = training.run(silent)
    # the passage about Peru outweighs the other in the end
    assert history[-1].em == training.dev_em() == 1.0
    assert all(one.best == all(one.worth > before.worth for before in history[: one.number - 1]) for one in history)
    assert Epoch(1, 1.0, dev=9.0, best=True, em=0.5).worth > Epoch(2, 1.0, dev=1.0, best=False, em=0.4).worth
    assert Epoch(1, 1.0, dev=1.0, best=True).worth > Epoch(2, 1.0, dev=2.0, best=False).worth
    # answers that say the same add up, and none is none
    assert Trainer(tmp_path / "b", plan, EXAMPLES, answered("the lima.")).dev_em() == 1.0
    silence = [replace(one, answers=(("", 0.0),) * 4, accepted=("lima",)) for one in EXAMPLES]
    assert Trainer(tmp_path / "c", plan, EXAMPLES, silence).dev_em() == 0.0
    assert Trainer(tmp_path / "d", plan, EXAMPLES, EXAMPLES).dev_em() is None


def test_a_killed_training_goes_on_to_the_same_weights(tiny_cross_encoder, tmp_path) -> None:
    whole = trainer(tmp_path / "whole", tiny_cross_encoder, epochs=3, save_every=1)
    expected = whole.run(silent)

    def killed(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer(tmp_path / "killed", tiny_cross_encoder, epochs=3, save_every=1).run(killed)
    seen: list[int] = []
    resumed = trainer(tmp_path / "killed", tiny_cross_encoder, epochs=3, save_every=1)
    history = resumed.run(lambda done, total: seen.append(done))
    assert seen[0] == 3
    assert history == expected
    states = [torch.load(tmp_path / one / CHECKPOINT, weights_only=True)["model"] for one in ("whole", "killed")]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    # one that has ended does nothing; one with more epochs goes on
    assert trainer(tmp_path / "killed", tiny_cross_encoder, epochs=3).run(silent) == expected
    assert len(trainer(tmp_path / "killed", tiny_cross_encoder, epochs=4).run(silent)) == 4
    assert len(json.loads((tmp_path / "killed" / "history.json").read_text())) == 4


def test_a_training_may_end_within_an_epoch_and_go_on_later(tiny_cross_encoder, tmp_path) -> None:
    whole = trainer(tmp_path / "whole", tiny_cross_encoder, epochs=2).run(silent)
    history = trainer(tmp_path / "part", tiny_cross_encoder, epochs=2, max_steps=1).run(silent)
    assert len(history) == 1
    assert (tmp_path / "part" / MODEL / "config.json").exists()
    assert trainer(tmp_path / "part", tiny_cross_encoder, epochs=2, max_steps=1).run(silent) == history
    later = trainer(tmp_path / "part", tiny_cross_encoder, epochs=2).run(silent)
    assert later[-1].dev == pytest.approx(whole[-1].dev)
    assert [epoch.number for epoch in later] == [1, 2, 3]


def test_the_rate_rises_and_falls_and_frozen_words_stay(tiny_cross_encoder, tmp_path, monkeypatch) -> None:
    from transformers import BertForSequenceClassification

    rates: list[float] = []

    class Watched(torch.optim.AdamW):
        def step(self, *given: Any) -> Any:
            rates.append(self.param_groups[0]["lr"])
            return super().step(*given)

    monkeypatch.setattr(torch.optim, "AdamW", Watched)
    trainer(tmp_path, tiny_cross_encoder, epochs=8, warm_up=4, frozen=True).run(silent)
    assert rates[:4] == pytest.approx([0.75e-3, 1.5e-3, 2.25e-3, 3e-3])
    assert rates[15] == pytest.approx(1.5e-3)
    before, after = (
        BertForSequenceClassification.from_pretrained(folder) for folder in (tiny_cross_encoder, tmp_path / MODEL)
    )
    assert torch.equal(before.get_input_embeddings().weight, after.get_input_embeddings().weight)
    assert not torch.equal(before.classifier.weight, after.classifier.weight)


def test_no_passage_takes_part_with_a_score_of_nothing(tiny_cross_encoder, tmp_path) -> None:
    # of a question that no passage helps, every score has to fall below 0; of another, one passage has to rise above
    useless = [
        replace(example(one), log_likelihoods=(log(0.01),) * 4, log_likelihood_without=log(0.5)) for one in TOWNS
    ]
    plan = Plan(str(tiny_cross_encoder), epochs=15, batch=2, rate=3e-3, length=48)
    Trainer(tmp_path / "none", plan, useless, useless).run(silent)
    asked = "capital of peru ?"
    found = CrossEncoderEstimator(tmp_path / "none" / MODEL).estimate(asked, PASSAGES, Event())
    assert all(one.score < -1 for one in found)
    helped = [replace(example(one), log_likelihood_without=log(0.05)) for one in TOWNS]
    Trainer(tmp_path / "one", plan, helped, helped).run(silent)
    scores = [one.score for one in CrossEncoderEstimator(tmp_path / "one" / MODEL).estimate(asked, PASSAGES, Event())]
    assert scores[1] > 1
    assert max(scores[0], *scores[2:]) < 0


def test_what_can_not_be_trained_is_refused(tiny_cross_encoder, tmp_path) -> None:
    plan, hopeless = Plan(str(tiny_cross_encoder), length=48), [example("peru", possible=False)]
    with pytest.raises(DataError, match="to any training question possible"):
        Trainer(tmp_path / "a", plan, hopeless, EXAMPLES)
    with pytest.raises(DataError, match="to any development question possible"):
        Trainer(tmp_path / "a", plan, EXAMPLES, hopeless)
    with pytest.raises(ModelError, match="no encoder that can be trained"):
        Trainer(tmp_path / "a", replace(plan, base=str(tmp_path)), EXAMPLES, EXAMPLES)
    trainer(tmp_path / "b", tiny_cross_encoder, epochs=1).run(silent)
    with pytest.raises(DataError, match="another plan or on other questions"):
        trainer(tmp_path / "b", tiny_cross_encoder, rate=1.0)
    with pytest.raises(DataError, match="another plan or on other questions"):
        Trainer(tmp_path / "b", plan, EXAMPLES[:2], EXAMPLES)
    with pytest.raises(DataError, match="can't be written to"):
        trainer(tmp_path / "b" / CHECKPOINT, tiny_cross_encoder)
    (tmp_path / "b" / CHECKPOINT).write_bytes(b"broken")
    with pytest.raises(DataError, match="remove it to train from the start"):
        trainer(tmp_path / "b", tiny_cross_encoder)


def test_questions_with_fewer_passages_train_beside_others(tiny_cross_encoder, tmp_path) -> None:
    one = Example("capital of peru ?", (PASSAGES[1],), (log(0.5),))
    plan = Plan(str(tiny_cross_encoder), epochs=1, batch=2, length=48)
    [epoch] = Trainer(tmp_path, plan, [EXAMPLES[0], one], [one]).run(silent)
    # a single passage has all the weight, whatever the model thinks of it
    assert epoch.dev == pytest.approx(-log(0.5), abs=1e-5)
    assert epoch.loss > 0


@pytest.mark.model
def test_an_embedder_becomes_a_cross_encoder(tmp_path) -> None:
    base = fetched("all-MiniLM-L6-v2")
    plan = Plan(str(base), epochs=1, batch=1, length=32)
    [epoch] = Trainer(tmp_path, plan, EXAMPLES[:1], EXAMPLES[1:2]).run(silent)
    assert 0 < epoch.dev < 5
    with pytest.raises(ModelError, match="no cross-encoder"):
        CrossEncoderEstimator(base)
    found = CrossEncoderEstimator(tmp_path / MODEL).estimate("where is lima ?", PASSAGES, Event())
    assert len({one.score for one in found}) == 4


# --- the generator's likelihoods ---------------------------------------------------------------------------------


@dataclass
class Knowing(ScriptedLLM):
    """Holds an answer likely if it stands in the passage; keeps count of what it scored."""

    scored: list[str] = field(default_factory=list)
    can_score = True

    def score(self, batch, stop) -> list[float]:
        self.scored += [text for _, text in batch]
        return [log(0.8) if text in messages[-1].content else -inf for messages, text in batch]


QUESTIONS = [Question(one, f"capital of {one} ?", (town, "x"), (one,)) for one, town in TOWNS.items()]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return lines(tmp_path / "corpus.jsonl", *({"id": p.id, "title": p.title, "contents": p.text} for p in PASSAGES))


def test_likelihoods_are_scored_once_and_kept(corpus, tmp_path) -> None:
    llm, retriever = Knowing(), FixedRetriever(PASSAGES)
    run = open_run(tmp_path / "cache", corpus, 3, "m")
    score_missing_rows(QUESTIONS[:2], run, llm, retriever, 3, silent)
    # after each passage, and without one
    assert llm.scored == ["paris"] * 4 + ["lima"] * 4
    again = open_run(tmp_path / "cache", corpus, 3, "m")
    score_missing_rows(QUESTIONS[:3], again, llm, retriever, 3, silent)
    assert llm.scored[8:] == ["oslo"] * 4
    found = examples(QUESTIONS[:3], again, {passage.id: passage for passage in PASSAGES})
    assert found[1] == Example("capital of peru ?", tuple(PASSAGES[:3]), (-inf, pytest.approx(log(0.8)), -inf))
    # the same id with another answer is another row
    score_missing_rows([replace(QUESTIONS[0], answers=("rome",))], again, llm, retriever, 3, silent)
    assert llm.scored[-1] == "rome"
    with pytest.raises(DataError, match="another contexts"):
        open_run(tmp_path / "cache", corpus, 4, "m")


def test_questions_to_choose_by_are_answered_from_each_passage(corpus, tmp_path) -> None:
    llm, retriever = Knowing(["Lima", "unknown", "Quito"]), FixedRetriever(PASSAGES)
    run, passages = open_run(tmp_path / "cache", corpus, 3, "m"), {passage.id: passage for passage in PASSAGES}
    score_missing_rows(QUESTIONS[:2], run, llm, retriever, 3, silent, answered=1)
    score_missing_rows(QUESTIONS[:2], run, llm, retriever, 3, silent, answered=1)
    one, other = examples(QUESTIONS[:2], run, passages)
    assert [text for text, _ in one.answers] == ["Lima", "", "Quito"]
    assert one.accepted == QUESTIONS[0].answers
    assert (other.answers, other.accepted) == ((), ())


def test_words_alone_tell_which_passages_help() -> None:
    asked = [*QUESTIONS[:2], Question("none", "capital of mars ?", ("nowhere", ""), ())]
    found = examples_by_words(asked, FixedRetriever(PASSAGES), 3, silent)
    assert found[1].log_likelihoods == pytest.approx((log(0.01), log(0.9), log(0.01)))
    assert found[1].log_likelihood_without == pytest.approx(log(0.1))
    assert found[2].log_likelihoods == pytest.approx((log(0.01),) * 3)
    assert found[0].passages == tuple(PASSAGES[:3])
    # part of a word is not the word
    part = examples_by_words([Question("p", "?", ("lim",), ())], FixedRetriever(PASSAGES), 2, silent)
    assert part[0].log_likelihoods == pytest.approx((log(0.01),) * 2)


def test_a_backend_that_can_not_score_is_refused_and_a_long_question_kept_out(corpus, tmp_path) -> None:
    run = open_run(tmp_path / "cache", corpus, 2, "m")
    with pytest.raises(SettingsError, match=r"set llm\.backend to transformers"):
        score_missing_rows(QUESTIONS, run, ScriptedLLM(), FixedRetriever(PASSAGES), 2, silent)
    long = [replace(QUESTIONS[0], text="capital " * 5000)]
    score_missing_rows(long, run, Knowing(), FixedRetriever(PASSAGES), 2, silent)
    [found] = examples(long, run, {passage.id: passage for passage in PASSAGES})
    assert not found.has_possible_answer


# --- the command -------------------------------------------------------------------------------------------------


@pytest.mark.lucene
def test_the_command_end_to_end(corpus, tiny_cross_encoder, tmp_path, monkeypatch) -> None:
    questions = lines(
        tmp_path / "questions.jsonl",
        *({"id": q.id, "question": q.text, "answers": list(q.answers)} for q in QUESTIONS),
        {"id": "none", "question": "river of peru ?", "answers": [], "unanswerable": True},
    )
    monkeypatch.setattr(command, "language_model", lambda settings: Knowing(["lima"] * 4))
    asked = ["relevance", "--corpus", corpus, "--questions", questions, "--out", tmp_path / "out"]
    asked += ["--base", tiny_cross_encoder, "--length", 48, "--contexts", 4, "--data-dir", tmp_path / "data"]

    def run(*more: object):
        return CliRunner().invoke(train.app, [str(word) for word in (*asked, *more)], catch_exceptions=False)

    result = run("--dev", 1, "--epochs", 2, "--batch", 2, "--json")
    assert [epoch["number"] for epoch in json.loads(result.stdout)] == [1, 2]
    assert CrossEncoderEstimator(tmp_path / "out" / MODEL).estimate("capital ?", PASSAGES, Event())
    [cache] = (tmp_path / "data" / "likelihoods").iterdir()
    # four scored, and one of them answered
    assert len((cache / "rows.jsonl").read_text().splitlines()) == 5
    assert "| epochs | number | loss |" in run("--dev", 1, "--epochs", 2, "--batch", 2).stdout
    with pytest.raises(DataError, match="lower --dev"):
        run("--dev", 4)
