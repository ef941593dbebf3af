"""`evaluate relevance` on questions whose measures can be counted by hand, and once with a real index and model."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from assistant.commands.evaluate import evaluate_relevance as command
from assistant.errors import DataError, ModelError, UtteranceError
from assistant.evaluation.relevance import Estimates, Experiment, prepare
from assistant.experiment.report import markdown as table
from assistant.judges.relevance.calibration import Calibration
from assistant.protocols import silent
from assistant.types import Passage, Relevance
from tests.fixtures_models import sharing_models
from tests.test_evaluation_data import lines

pytest_plugins = ["tests.fixtures_models", "tests.fixtures_relevance"]
TOWNS = {"France": "Paris", "Peru": "Lima", "Norway": "Oslo", "Kenya": "Nairobi"}


@dataclass
class Fixed:
    """Gives the confidences that it was made with, by question and passage; 0.1 to all others."""

    confidences: dict[tuple[str, str], float]
    asked: list[str] = field(default_factory=list)
    name: str = "fixed"

    def estimate(self, question, passages, stop) -> list[Relevance]:
        self.asked.append(question)
        if "too long" in question:
            raise UtteranceError("The question is too long.")
        found = [self.confidences.get((question, passage.id), 0.1) for passage in passages]
        return [Relevance.of_confidence(one) for one in found]


class Alphabetical:
    """Finds France, Kenya, Norway and Peru, in this order, and never anything else."""

    def search(self, query: str, k: int) -> list[Passage]:
        return [Passage(one, one, f"The capital of {one} is {TOWNS[one]}.") for one in sorted(TOWNS)][:k]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    corpus = lines(
        tmp_path / "corpus.jsonl",
        *({"id": c, "title": c, "contents": f"The capital of {c} is {t}."} for c, t in TOWNS.items()),
    )
    asked = [{"id": f"q{c}", "question": f"capital of {c}?", "answers": [t], "gold": [c]} for c, t in TOWNS.items()]
    lost = {"id": "qMars", "question": "capital of Mars?", "answers": ["none"], "gold": ["Mars"]}
    return corpus, lines(tmp_path / "questions.jsonl", *asked, lost)


def ran(experiment: Experiment, estimator: Fixed, out: Path, **calibration):
    task = Estimates(experiment, prepare(experiment), estimator.name, "m", "bm25", **calibration)
    run = task.open(out)
    task.fill(run, (estimator, Alphabetical()), silent)
    return task.summarise(run.rows), task, run


RIGHT = {(f"capital of {one}?", one): 0.95 for one in TOWNS}


def test_a_perfect_estimator_ranks_the_gold_first_and_misses_what_is_not_there(files, tmp_path) -> None:
    summary, _, run = ran(Experiment(*files, depth=5, k=5), Fixed(RIGHT), tmp_path / "out")
    # the corpus lacks Mars, which no ranking can find
    assert summary["R@1"] == summary["R@5"] == pytest.approx(0.8)
    # nothing is said of the first ten where only five were looked at
    assert set(summary["found"]) == {"R@1", "R@5"}
    assert summary["found"]["R@1"] == pytest.approx(0.2)
    assert summary["turn"]["R@1"] == pytest.approx(0.8)
    assert summary["differences"]["R@1"]["value"] == pytest.approx(0.6)
    assert summary["unanswerable_precision"] == summary["unanswerable_recall"] == summary["unanswerable_f1"] == 1
    assert summary["unanswerable_share"] == pytest.approx(0.2)
    assert summary["unanswerable_f1_of_always"] == pytest.approx(1 / 3)
    # 4 of 0.95 are right, 16 of 0.1 wrong
    assert summary["ece"] == pytest.approx((4 * 0.05 + 16 * 0.1) / 20)
    assert summary["set_ece"] == pytest.approx((4 * 0.05 + 0.1) / 5)
    assert [one["count"] for one in summary["reliability"]] == [16, 4]
    assert run.rows["qPeru"]["passages"] == sorted(TOWNS)
    assert summary["questions"] == 5
    assert set(summary["intervals"]) >= {"R@1", "unanswerable_f1"}
    text = table(summary)
    assert "| R@1 | 0.200 |" in text
    assert "R@1 0.800" in text
    assert "| 2 | 0.900 | 1.000 | 4 | 0.950 | 1.000 |" in text
    json.dumps(summary)


def test_what_is_left_out_under_a_share_is_told(files, tmp_path) -> None:
    summary, _, _ = ran(Experiment(*files, depth=5, k=5), Fixed(RIGHT), tmp_path / "out")
    rows = {row["share"]: row for row in summary["left_out_under"]}
    # the gold passage has 0.95 and the others 0.1, a share of 0.105
    assert rows[0.1] == {"share": 0.1, "passages": 0, "gold": 0, "lost": 0}
    assert rows[0.2] == {"share": 0.2, "passages": pytest.approx(12 / 20), "gold": 0, "lost": 0}
    wrong = {(question, "Peru" if one != "Peru" else "Kenya"): 0.95 for question, one in RIGHT}
    lost, _, _ = ran(Experiment(*files, depth=5, k=5), Fixed(wrong), tmp_path / "wrong")
    assert lost["left_out_under"][-1] == {"share": 0.5, "passages": pytest.approx(12 / 20), "gold": 1, "lost": 1}
    assert "| lost |" in table(lost)


def test_what_nothing_answers_has_no_rank_and_what_finds_nothing_has_the_worst(files, tmp_path) -> None:
    corpus, _ = files

    def asked(country: str, **more: object) -> dict[str, object]:
        return {"id": country, "question": f"capital of {country}?", "answers": ["x"], "gold": [country], **more}

    questions = lines(tmp_path / "more.jsonl", asked("France", unanswerable=True), asked("Peru"), asked("nowhere"))
    experiment = Experiment(corpus, questions, depth=4, k=4, contexts="retrieved")

    class Half(Alphabetical):
        def search(self, query: str, k: int) -> list[Passage]:
            return [] if "nowhere" in query else super().search(query, k)

    task = Estimates(experiment, prepare(experiment), "fixed", "m", "bm25")
    run = task.open(tmp_path / "out")
    task.fill(run, (Fixed(RIGHT), Half()), silent)
    summary = task.summarise(run.rows)
    assert summary["R@1"] == pytest.approx(0.5)
    assert summary["found"]["R@1"] == 0


def test_a_run_by_one_search_is_not_gone_on_with_by_another(files, tmp_path) -> None:
    experiment = Experiment(*files, depth=5, k=5)
    by_words, by_both = (Estimates(experiment, prepare(experiment), "fixed", "m", name) for name in ("bm25", "hybrid"))
    by_words.open(tmp_path / "out")
    with pytest.raises(DataError, match="retriever"):
        by_both.open(tmp_path / "out")


def test_the_gold_is_taken_from_sets_that_have_it(files, tmp_path) -> None:
    fooled = {**RIGHT, ("capital of Kenya?", "Peru"): 0.95}
    summary, _, _ = ran(Experiment(*files, depth=4, k=4), Fixed(fooled), tmp_path / "out")
    without = summary["gold_withheld"]
    # four sets with gold, and the same four without, of which Kenya's still looks as if it had it; Mars never has
    assert without["share"] == 0.5
    assert without["thresholds"][0] == {
        "threshold": 0.5,
        "precision": 1,
        "recall": 0.75,
        "f1": pytest.approx(6 / 7),
        "given_up": 0,
    }
    assert without["recall"] == 0.75
    assert without["f1_of_always"] == pytest.approx(2 / 3)
    assert "recall 0.750" in table(summary)


def test_sets_without_gold_count_as_the_share_that_is_asked_for(files, tmp_path) -> None:
    # of Kenya's passage it is so unsure that at 0.5 the set with it counts as unanswerable, too
    unsure = {**RIGHT, ("capital of Kenya?", "Kenya"): 0.3, ("capital of Kenya?", "Peru"): 0.4}
    experiment = Experiment(*files, depth=4, k=4, share=0.2, thresholds=(0.5, 0.35))
    summary, task, run = ran(experiment, Fixed(unsure), tmp_path / "out")
    without = summary["gold_withheld"]
    assert without["share"] == pytest.approx(0.2)
    # said: one of four with gold (0.8 each), and four of four without (0.2 each)
    assert without["thresholds"] == [
        {"threshold": 0.5, "precision": pytest.approx(0.5), "recall": 1, "f1": pytest.approx(2 / 3), "given_up": 0.25},
        {"threshold": 0.35, "precision": 1, "recall": pytest.approx(0.75), "f1": pytest.approx(6 / 7), "given_up": 0},
    ]
    assert "share 0.200" in table(summary)
    fixed = replace(task, experiment=replace(experiment, thresholds=(0.35,))).summarise(run.rows)["gold_withheld"]
    assert (fixed["precision"], fixed["recall"]) == (1, pytest.approx(0.75))


def test_a_set_is_judged_by_what_is_shown_of_it(files, tmp_path) -> None:
    # Kenya's passage ranks second, so that a set of one has no gold
    unsure = {**RIGHT, ("capital of Kenya?", "Kenya"): 0.3, ("capital of Kenya?", "Peru"): 0.4}
    experiment = Experiment(*files, depth=4, k=1)
    summary, task, run = ran(experiment, Fixed(unsure), tmp_path / "out")
    assert summary["unanswerable_share"] == pytest.approx(0.4)
    assert summary["thresholds"][0] == {"threshold": 0.5, "precision": 1, "recall": 1, "f1": 1, "given_up": 0}
    deeper = replace(task, experiment=replace(experiment, k=2)).summarise(run.rows)
    assert deeper["unanswerable_share"] == pytest.approx(0.2)
    assert deeper["thresholds"][0]["precision"] == 0.5


def test_a_question_is_never_measured_with_the_threshold_it_chose(files, tmp_path) -> None:
    # Of Mars nothing is known, and yet Peru is taken for it with 0.85: only a threshold of 0.9 tells
    wrong = {("capital of Mars?", "Peru"): 0.85}
    summary, task, _ = ran(Experiment(*files, depth=4, k=4, seed=1), Fixed({**RIGHT, **wrong}), tmp_path / "out")
    place = [question.id for question in task.material.questions].index("qMars")
    # only the half without Mars is measured at a threshold that Mars chose
    assert summary["threshold_of_halves"][1 - place % 2] == 0.9
    assert summary["threshold_of_halves"][place % 2] == 0.5
    assert summary["unanswerable_recall"] == 0
    assert summary["thresholds"][4]["recall"] == 1


def test_marked_questions_are_judged_by_their_own_paragraph(files, tmp_path) -> None:
    corpus, _ = files
    questions = lines(
        tmp_path / "v2.jsonl",
        {"id": "1", "question": "capital of Peru?", "answers": ["Lima"], "gold": ["Peru"]},
        {"id": "2", "question": "river of Peru?", "answers": [], "gold": ["Peru"], "unanswerable": True},
        {"id": "3", "question": "capital of Mars?", "answers": ["x"], "gold": ["Mars"]},
    )
    estimator = Fixed({**RIGHT, ("capital of Peru?", "Kenya"): 0.99, ("river of Peru?", "Peru"): 0.7})
    summary, _, run = ran(Experiment(corpus, questions, depth=2, k=2), estimator, tmp_path / "out")
    assert summary["contexts"] == "own"
    assert summary["left_out"] == {"questions with gold passages that the corpus lacks": 1}
    assert run.rows["2"] == run.rows["2"] | {"passages": [], "own": ["Peru"]}
    # Peru is not among the two that are retrieved, and estimated all the same
    assert set(run.rows["1"]["scores"]) == {"France", "Kenya", "Peru"}
    assert summary["R@1"] == 0
    assert summary["unanswerable_share"] == 0.5
    assert [one["recall"] for one in summary["thresholds"]] == [0, 0, 0, 1, 1]
    assert [one["precision"] for one in summary["thresholds"]] == [0, 0, 0, 1, 1]
    assert summary["gold_withheld"] == {}
    told, _, _ = ran(
        Experiment(corpus, questions, depth=2, k=2, contexts="retrieved"), estimator, tmp_path / "retrieved"
    )
    assert told["unanswerable_share"] == 1


def test_a_killed_run_goes_on(files, tmp_path) -> None:
    experiment = Experiment(*files, depth=4, k=4)
    whole, _, _ = ran(experiment, Fixed(RIGHT), tmp_path / "out")
    path = tmp_path / "out" / "rows.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    again = Fixed(RIGHT)
    summary, _, _ = ran(experiment, again, tmp_path / "out")
    assert len(again.asked) == 1
    assert summary | {"seconds_per_question": 0} == whole | {"seconds_per_question": 0}
    with pytest.raises(DataError, match="another depth"):
        ran(replace(experiment, depth=3, k=3), again, tmp_path / "out")


def test_calibration_is_fitted_on_the_other_half_and_saved_from_all(files, tmp_path) -> None:
    confident = Fixed(dict.fromkeys(RIGHT, 0.6))
    experiment = Experiment(*files, depth=4, k=4)
    plain, task, run = ran(experiment, confident, tmp_path / "out")
    better = replace(task, method="platt").summarise(run.rows)
    assert better["calibration"] == "platt"
    assert better["ece"] < plain["ece"] / 4
    assert better["R@1"] == plain["R@1"]
    curve = task.fit_calibration(task.material.questions, run.rows, "platt")
    assert curve.pairs == 20
    assert replace(task, calibration=curve).summarise(run.rows)["ece"] < plain["ece"] / 4


def test_an_estimator_that_tells_nothing_is_not_calibrated(files, tmp_path) -> None:
    backwards = Fixed(dict.fromkeys(RIGHT, 0.01))
    with pytest.raises(DataError, match="The scores of fixed don't rise with relevance"):
        ran(Experiment(*files, depth=4, k=4), backwards, tmp_path / "out", method="platt")


def test_what_can_not_be_measured_is_said(files, tmp_path) -> None:
    corpus, questions = files
    with pytest.raises(DataError, match="raise the depth"):
        prepare(Experiment(corpus, questions, depth=3, k=4))
    goldless = lines(tmp_path / "q.jsonl", {"id": "1", "question": "who?", "answers": ["me"]})
    with pytest.raises(DataError, match="None of the 1 questions"):
        prepare(Experiment(corpus, goldless))
    long = lines(tmp_path / "l.jsonl", {"id": "1", "question": "too long?", "answers": ["x"], "gold": ["Peru"]})
    summary, _, run = ran(Experiment(corpus, long, depth=4, k=4), Fixed({}), tmp_path / "out")
    assert summary["remarks"] == {"questions too long for the estimator": 1}
    assert run.rows["1"]["error"] == "The question is too long."


# --- the command -------------------------------------------------------------------------------------------------


def evaluate(*words: object):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def on(files: tuple[Path, Path], tmp_path: Path) -> list[object]:
    return ["--corpus", files[0], "--questions", files[1], "--depth", 4, "--k", 4, "--data-dir", tmp_path / "data"]


@pytest.mark.lucene
def test_the_command_with_a_cross_encoder(files, tiny_cross_encoder, tmp_path) -> None:
    asked = [*on(files, tmp_path), "--estimator", tiny_cross_encoder, "--json"]
    summary = json.loads(evaluate(*asked).stdout)
    assert summary["estimator"].startswith("cross-encoder:tiny-cross-encoder-")
    assert summary["found"]["R@1"] == pytest.approx(0.8)
    assert 0 < summary["ece"] < 1
    [folder] = (tmp_path / "data" / "runs").iterdir()
    assert json.loads((folder / "summary.json").read_text()) == summary
    assert "R@1" in evaluate(*asked[:-1]).stdout
    assert "| threshold |" in (folder / "report.md").read_text()
    assert (folder / "reliability.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.lucene
def test_the_command_calibrates_and_applies_it(files, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("assistant.judges.relevance.load.load", lambda *_: Fixed(RIGHT))
    asked = [*on(files, tmp_path), "--json"]
    summary = json.loads(evaluate(*asked, "--out", tmp_path / "c", "--calibrate", "isotonic").stdout)
    found = Calibration.load(tmp_path / "c" / "calibration.json", "fixed")
    assert found.pairs == summary["questions"] * 4
    again = evaluate(*asked, "--calibration", tmp_path / "c" / "calibration.json")
    assert json.loads(again.stdout)["calibration"] == "isotonic"


@pytest.mark.model
@pytest.mark.lucene
def test_the_command_with_a_real_chat_model(files, smollm_path, tmp_path) -> None:
    corpus, questions, *_ = files
    asked = ["--corpus", corpus, "--questions", questions, "--depth", 2, "--k", 2, "--limit", 2, "--json"]
    asked += ["--data-dir", sharing_models(tmp_path)]
    result = evaluate(*asked, "--estimator", "llm", "--model", "smollm2-135m", "--out", tmp_path / "out")
    summary = json.loads(result.stdout)
    assert summary["estimator"] == "llm:smollm2-135m"
    assert {"unanswerable_precision", "unanswerable_recall", "unanswerable_f1", "ece", "R@1"} <= set(summary)


def test_bad_input_is_told_before_anything_is_loaded(files, tmp_path) -> None:
    asked = [*on(files, tmp_path), "--estimator", "llm", "--model", "there-is-no-such-model"]
    with pytest.raises(ModelError, match="can't be read"):
        evaluate(*asked, "--calibration", tmp_path / "none.json")
    with pytest.raises(DataError, match="raise the depth"):
        evaluate(*asked, "--k", 30)
    with pytest.raises(DataError, match="between 0 and 1"):
        evaluate(*asked, "--threshold", 0.5, "--threshold", 1)
    with pytest.raises(DataError, match="between 0 and 1"):
        evaluate(*asked, "--share", 0)
    Calibration("other", "platt").save(tmp_path / "c.json")
    both = evaluate(*asked, "--calibration", tmp_path / "c.json", "--calibrate", "platt")
    assert both.exit_code == 2
    assert not (tmp_path / "data").exists()
