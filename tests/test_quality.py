"""The classifier of passage quality: learned, kept without pickle, measured, and trained by its command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner, Result

from assistant.commands.train import quality
from assistant.errors import DataError, ModelError
from assistant.evaluation.quality import MIN_SOURCE_TEXTS, measure, measure_unseen_sources, read_examples, train
from assistant.experiment.report import markdown
from assistant.judges.quality import LABELS, Classifier, fit

DATA = Path(__file__).parents[2] / "shared" / "data" / "quality" / "passage_quality.jsonl.gz"
WORDS = {
    "reliable": ("The town was founded in the century by settlers.", "encyclopedia"),
    "unreliable": ("I honestly think this movie was kind of awful.", "forum"),
    "junk": ("Click here for free loans, limited offer, act now!", "spam"),
}


def texts_of(label: str, count: int) -> list[str]:
    """Different texts of one manner; every third is long."""
    return [f"{WORDS[label][0]} Number {n}. " * (12 if n % 3 == 0 else 1) for n in range(count)]


def records(each: int = 12) -> list[dict[str, Any]]:
    return [
        {
            "text": text,
            "label": label,
            "source": f"{WORDS[label][1]} {n % 2}",
            "split": "test" if n % 4 == 3 else "train",
        }
        for label in LABELS
        for n, text in enumerate(texts_of(label, each))
    ]


def write(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def model() -> Classifier:
    texts = [(text, label) for label in LABELS for text in texts_of(label, 9)]
    return fit([text for text, _ in texts], [label for _, label in texts])


def test_manner_is_told_by_words(model: Classifier) -> None:
    found = model.judge(["A castle was founded by settlers.", "honestly this was awful, I think", "FREE loans: click"])
    assert [one.label for one in found] == ["reliable", "unreliable", "junk"]
    assert all(1 / 3 < one.probability <= 1 for one in found)
    assert model.judge([]) == []


def test_probabilities_are_scikit_learns_own(model: Classifier) -> None:
    """Its own vectors and model, fitted on the same texts, must say the same: the arrays are all there is of ours."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts = [(text, at) for at, label in enumerate(LABELS) for text in texts_of(label, 9)]
    theirs = make_pipeline(
        TfidfVectorizer(min_df=3, sublinear_tf=True),
        LogisticRegression(C=10.0, class_weight="balanced", max_iter=1000),
    )
    theirs.fit([text for text, _ in texts], [at for _, at in texts])
    asked = ["founded by settlers", "free loans and a movie", "words that it never met"]
    ours = model.probabilities(asked)
    assert ours.shape == (3, 3)
    assert np.allclose(ours, theirs.predict_proba(asked), atol=1e-3)
    assert np.allclose(ours.sum(axis=1), 1)


def test_length_alone_changes_nothing(model: Classifier) -> None:
    once = "The town was founded by settlers. "
    assert np.allclose(model.probabilities([once]), model.probabilities([once.lower()]))
    assert model.judge([once])[0].label == model.judge([once * 30])[0].label


def test_marks_of_a_collection_are_no_words() -> None:
    marked = fit(
        *zip(*[(f"{text} <unk> well @-@ known", one) for one in LABELS for text in texts_of(one, 6)], strict=True)
    )
    assert "unk" not in marked.terms
    assert "known" in marked.terms


def test_a_model_survives_its_file(model: Classifier, tmp_path: Path) -> None:
    path = tmp_path / "models" / "quality.npz"
    model.save(path)
    again = Classifier.load(path)
    asked = ["founded by settlers", "free loans", "awful movie"]
    assert again.terms == model.terms
    assert np.array_equal(again.probabilities(asked), model.probabilities(asked))


def test_files_that_are_no_models_are_refused(model: Classifier, tmp_path: Path) -> None:
    path = tmp_path / "q.npz"
    with pytest.raises(ModelError, match="is no model of passage quality"):
        Classifier.load(path)
    path.write_text("not a model")
    with pytest.raises(ModelError, match="train it with: python -m assistant train quality"):
        Classifier.load(path)
    np.savez(path, version=np.array(1), terms=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ModelError, match="is no model"):
        Classifier.load(path)
    np.savez(path, version=np.array(2))
    with pytest.raises(ModelError, match="is a model of version 2, not 1"):
        Classifier.load(path)
    np.savez(path, version=np.array(1), terms=np.frombuffer(b"a\nb", np.uint8))
    with pytest.raises(ModelError, match="is no model"):
        Classifier.load(path)
    arrays = {"idf": model.idf, "weights": model.weights[1:], "bias": model.bias}
    terms = np.frombuffer("\n".join(model.terms).encode(), np.uint8)
    np.savez(path, version=np.array(1), terms=terms, **arrays)
    with pytest.raises(ModelError, match="do not fit together"):
        Classifier.load(path)
    with pytest.raises(ModelError, match="can't be written"):
        model.save(path / "inside" / "a file.npz")


def test_what_can_not_be_learned_is_said() -> None:
    with pytest.raises(DataError, match="No text is labelled junk"):
        fit(["one", "two"], ["reliable", "unreliable"])
    with pytest.raises(DataError, match="No word is in 3 of the 3 texts"):
        fit(["one", "two", "three"], list(LABELS))


def test_the_measures_can_be_counted_by_hand(tmp_path: Path) -> None:
    rows = records()
    # one held-out text is labelled against its manner: it must be the only one judged wrong
    rows[3]["label"] = "junk"
    examples = read_examples(write(tmp_path, rows))
    summary = measure(train(examples), examples)
    assert (summary["trained_on"], summary["texts"]) == (27, 9)
    assert summary["confusion"] == [[2, 0, 0], [0, 3, 0], [1, 0, 3]]
    assert summary["accuracy"]["value"] == pytest.approx(8 / 9)
    assert summary["labels"]["reliable"] == pytest.approx({"precision": 2 / 3, "recall": 1, "f1": 0.8, "texts": 2})
    assert summary["macro_f1"] == pytest.approx((0.8 + 1 + 6 / 7) / 3)
    assert {name: band["texts"] for name, band in summary["by_length"].items()} == {"short": 6, "long": 3}
    assert summary["by_source"]["forum 1"] == {
        "label": "unreliable",
        "texts": 3,
        "right": 1.0,
        "said": {"reliable": 0, "unreliable": 3, "junk": 0},
    }
    assert "| short | 6 |" in markdown(summary)


def test_a_source_is_judged_by_a_model_that_never_saw_it(tmp_path: Path) -> None:
    rows = records(2 * MIN_SOURCE_TEXTS)
    for row in rows:
        if row["source"] == "spam 1":
            row["source"] = "spam 0"
    found = measure_unseen_sources(read_examples(write(tmp_path, rows)), lambda done, total: None)
    # without "spam 0" there would be no junk to learn from
    assert sorted(found) == ["encyclopedia 0", "encyclopedia 1", "forum 0", "forum 1"]
    assert found["forum 0"]["texts"] == MIN_SOURCE_TEXTS
    assert found["forum 0"]["right"] == 1.0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"text": " "}, "line 1, is no labelled text: 'text'"),
        ({"label": "good"}, "line 1, is no labelled text: 'label': Input should be 'reliable', 'unreliable' or 'junk'"),
        ({"split": None}, "line 1, is no labelled text: 'split': Input should be 'train' or 'test'"),
    ],
)
def test_broken_lines_are_named(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    rows = records()
    rows[0].update(change)
    with pytest.raises(DataError, match=says):
        read_examples(write(tmp_path, rows))
    with pytest.raises(DataError, match="no text whose split is test"):
        read_examples(write(tmp_path, [row for row in records() if row["split"] == "train"]))


def typed(*words: object) -> Result:
    app = typer.Typer()
    app.command()(quality)
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def test_the_command_writes_the_model_and_its_report(tmp_path: Path) -> None:
    into = tmp_path / "quality.npz"
    result = typed("--data", write(tmp_path, records()), "--out", into, "--json")
    assert json.loads(result.stdout)["macro_f1"] == 1
    assert json.loads((tmp_path / "quality.json").read_text())["texts"] == 9
    assert "macro_f1 1.000" in (tmp_path / "quality.md").read_text()
    assert Classifier.load(into).judge(["free loans: click here now"])[0].label == "junk"


@pytest.mark.parametrize("name", ["quality.json", "quality.md", "quality"])
def test_a_file_that_the_report_would_replace_is_refused_before_training(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"The model goes into a \.npz file, beside which its report is written"):
        typed("--data", tmp_path / "nowhere.jsonl", "--out", tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_real_texts_are_told_apart_at_every_length() -> None:
    if not DATA.exists():
        pytest.skip("the labelled texts are not here")
    examples = read_examples(DATA)
    summary = measure(train(examples), examples)
    assert summary["macro_f1"] > 0.94
    assert all(band["macro_f1"] > 0.9 for band in summary["by_length"].values())
