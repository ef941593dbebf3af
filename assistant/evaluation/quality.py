"""Trains and measures the passage quality classifier, on texts whose labels follow their sources.

One record, a line: `{"text": "...", "label": "reliable"|"unreliable"|"junk", "source": "wikitext-2",
"split": "train"|"test"}`. As labels follow sources, and sources differ in length, short and long texts are told apart,
and a source can be left out of training to see how the model does on one that it has not met.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pandas import DataFrame, cut
from pydantic import BaseModel, Field
from sklearn.metrics import classification_report, confusion_matrix

from assistant.errors import DataError
from assistant.experiment.datasets import read_models
from assistant.experiment.measures import mean
from assistant.experiment.task import Summary
from assistant.judges.quality import LABELS, Classifier, Label, fit
from assistant.protocols import Progress

# The longest texts of each band, in words.
BANDS = {"short": 40, "medium": 100, "long": 10**9}
# A source with fewer texts says little about how well it is judged.
MIN_SOURCE_TEXTS = 50


class Example(BaseModel):
    """A text with its label."""

    text: Annotated[str, Field(pattern=r"\S")]
    label: Label
    split: Literal["train", "test"]
    source: str = ""


def read_examples(path: Path) -> list[Example]:
    """The labelled texts of a file.

    Raises:
        DataError: a line is broken, has no text, or a label or split that is none; or one of the splits is empty.
    """
    examples = read_models(path, Example, "no labelled text")
    for split in ("train", "test"):
        if not any(example.split == split for example in examples):
            raise DataError(f"{path} holds no text whose split is {split}; both are needed.")
    return examples


def train(examples: Sequence[Example]) -> Classifier:
    """Learn from the texts that are not held out.

    Raises:
        DataError: a label has no text.
    """
    return _fitted([example for example in examples if example.split == "train"])


def measure(model: Classifier, examples: Sequence[Example], seed: int = 0) -> Summary:
    """Macro-F1, each label's measures and the confusion matrix of the held-out texts, and the same by length."""
    judged_texts = _judged(model, [example for example in examples if example.split == "test"])
    bands = {name: judged_texts[judged_texts["band"] == name] for name in BANDS}
    return {
        "trained_on": len(examples) - len(judged_texts),
        "terms": len(model.terms),
        **_scores(judged_texts),
        "accuracy": mean(list((judged_texts["is"] == judged_texts["said"]).astype(float)), seed),
        "by_length": {name: _scores(band_texts) for name, band_texts in bands.items() if len(band_texts)},
        "by_source": _by_source(judged_texts),
    }


def measure_unseen_sources(examples: Sequence[Example], progress: Progress) -> dict[str, Summary]:
    """For each large source: what its texts are taken for by a model that was trained without it.

    A source that alone has its label can't be left out.
    """
    counts = Counter(example.source for example in examples)
    large_sources = [source for source, count in counts.most_common() if count >= MIN_SOURCE_TEXTS]
    results: dict[str, Summary] = {}
    for done, source in enumerate(large_sources):
        progress(done, len(large_sources))
        training_examples = [example for example in examples if example.source != source and example.split == "train"]
        if {example.label for example in training_examples} == set(LABELS):
            results |= _by_source(
                _judged(_fitted(training_examples), [example for example in examples if example.source == source])
            )
    progress(len(large_sources), len(large_sources))
    return results


def _fitted(examples: Sequence[Example]) -> Classifier:
    return fit([example.text for example in examples], [example.label for example in examples])


def _judged(model: Classifier, examples: Sequence[Example]) -> DataFrame:
    """What the texts are and are taken for, with their sources and bands of length."""
    judged = DataFrame([example.model_dump() for example in examples]).rename(columns={"label": "is"})
    judged["said"] = [judgement.label for judgement in model.judge(list(judged["text"]))]
    judged["band"] = cut(judged["text"].str.split().str.len(), [0, *BANDS.values()], labels=list(BANDS))
    return judged


def _scores(judged: DataFrame) -> Summary:
    """Macro-F1 is over the labels that the texts have: a band may lack one."""
    true, predicted = list(judged["is"]), list(judged["said"])
    present = [label for label in LABELS if label in true]
    report = classification_report(true, predicted, labels=present, output_dict=True, zero_division=0)
    names = {"precision": "precision", "recall": "recall", "f1-score": "f1", "support": "texts"}
    by_label = DataFrame({label: report[label] for label in present}).T.rename(columns=names).astype({"texts": int})
    return {
        "texts": len(judged),
        "macro_f1": float(report["macro avg"]["f1-score"]),
        "labels": by_label.to_dict("index"),
        "confusion": confusion_matrix(true, predicted, labels=LABELS).tolist(),
    }


def _by_source(judged: DataFrame) -> dict[str, Summary]:
    return {
        str(source): {
            "label": source_texts["is"].iloc[0],
            "texts": len(source_texts),
            "right": float((source_texts["is"] == source_texts["said"]).mean()),
            "said": {label: int((source_texts["said"] == label).sum()) for label in LABELS},
        }
        for source, source_texts in judged.groupby("source")
    }
