"""Trains and measures the passage quality classifier, on texts whose labels follow their sources.

One record, a line: `{"text": "...", "label": "reliable"|"unreliable"|"junk", "source": "wikitext-2",
"split": "train"|"test"}`. As labels follow sources, and sources differ in length, short and long texts are told apart,
and a source can be left out of training to see how the model does on one that it has not met.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from pandas import DataFrame
from pydantic import BaseModel, Field
from sklearn.metrics import confusion_matrix, f1_score, precision_recall_fscore_support

from assistant.errors import DataError
from assistant.experiment.datasets import read_models
from assistant.experiment.grid import grid, table
from assistant.experiment.measures import mean
from assistant.experiment.task import Summary
from assistant.judges.quality import LABELS, Classifier, Label, fit
from assistant.protocols import Progress

# The longest texts of each band, in words.
BANDS = {"short": 40, "medium": 100, "long": 10**9}
_NAMED = {"short": "up to 40 words", "medium": "41 to 100 words", "long": "more than 100 words"}
# A source with fewer texts says little about how well it is judged.
FEWEST = 50


class Example(BaseModel):
    """A text with its label."""

    text: Annotated[str, Field(pattern=r"\S")]
    label: Label
    split: Literal["train", "test"]
    source: str = ""

    @property
    def held_out(self) -> bool:
        """Whether it is for testing."""
        return self.split == "test"


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
    used = [example for example in examples if not example.held_out]
    return fit([example.text for example in used], [example.label for example in used])


def measure(model: Classifier, examples: Sequence[Example], seed: int = 0) -> Summary:
    """Macro-F1, each label's measures and the confusion matrix of the held-out texts, and the same by length."""
    tested = [example for example in examples if example.held_out]
    said = [judgement.label for judgement in model.judge([example.text for example in tested])]
    bands = {name: [at for at, one in enumerate(tested) if _band(one.text) == name] for name in BANDS}
    right = [float(example.label == label) for example, label in zip(tested, said, strict=True)]
    return {
        "trained_on": len(examples) - len(tested),
        "terms": len(model.terms),
        **_scores(tested, said),
        "accuracy": asdict(mean(right, seed)),
        "by_length": {
            name: _scores([tested[at] for at in places], [said[at] for at in places])
            for name, places in bands.items()
            if places
        },
        "by_source": _by_source(tested, said),
    }


def unseen(examples: Sequence[Example], progress: Progress) -> dict[str, Summary]:
    """For each large source: what its texts are taken for by a model that was trained without it.

    A source that alone has its label can't be left out.
    """
    counts = Counter(example.source for example in examples)
    large = [source for source, count in counts.most_common() if count >= FEWEST]
    results = {}
    for done, source in enumerate(large):
        progress(done, len(large))
        rest = [one for one in examples if one.source != source and not one.held_out]
        if {one.label for one in rest} == set(LABELS):
            model = fit([one.text for one in rest], [one.label for one in rest])
            left = [one for one in examples if one.source == source]
            results.update(_by_source(left, [found.label for found in model.judge([one.text for one in left])]))
    progress(len(large), len(large))
    return results


def report(summary: Summary) -> str:
    """The summary as Markdown tables."""
    told = (
        "Trained on {trained_on:,} texts, {terms:,} terms; tested on {texts:,}: macro-F1 {macro_f1:.3f},"
        " accuracy {accuracy[value]:.3f} ({accuracy[low]:.3f} to {accuracy[high]:.3f})."
    )
    each: dict[str, str] = {name: f"{{{name}}}" for name in LABELS}
    bands = {"length": "{name}", "texts": "{texts}", "macro-F1": "{macro_f1:.3f}"}
    bands |= {f"F1 {label}": f"{{{label}}}" for label in LABELS}
    sources = {"is": "{label}", "texts": "{texts}", "right": "{right:.3f}", **each}
    lengths = {"all": summary, **{_NAMED[name]: of for name, of in summary["by_length"].items()}}
    confusion = zip(LABELS, summary["confusion"], strict=True)
    tables = [
        told.format(**summary),
        table([{"name": name, **of, **_f1s(of["labels"])} for name, of in lengths.items()], bands),
        grid(["is, and was taken for", *LABELS], [(label, *map(str, row)) for label, row in confusion]),
        *(
            table(
                [{"name": name, **of, **of["said"]} for name, of in summary[key].items()], {head: "{name}", **sources}
            )
            for key, head in (("by_source", "source"), ("unseen", "source that was left out of training"))
            if key in summary
        ),
    ]
    return "\n\n".join(tables)


def _f1s(labels: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    return {name: "{f1:.3f} ({texts})".format(**labels[name]) if name in labels else "-" for name in LABELS}


def _band(text: str) -> str:
    length = len(text.split())
    return next(name for name, most in BANDS.items() if length <= most)


def _scores(tested: Sequence[Example], said: Sequence[Label]) -> Summary:
    """Macro-F1 is over the labels that the texts have: a band may lack one."""
    true = [example.label for example in tested]
    present = [label for label in LABELS if label in true]
    each = precision_recall_fscore_support(true, said, labels=present, zero_division=0)
    return {
        "texts": len(tested),
        "macro_f1": float(f1_score(true, said, labels=present, average="macro", zero_division=0)),
        "labels": {
            label: {"precision": float(p), "recall": float(r), "f1": float(f), "texts": int(n)}
            for label, p, r, f, n in zip(present, *each, strict=True)
        },
        "confusion": confusion_matrix(true, said, labels=LABELS).tolist(),
    }


def _by_source(tested: Sequence[Example], said: Sequence[Label]) -> dict[str, Summary]:
    found = DataFrame({"source": [one.source for one in tested], "is": [one.label for one in tested], "said": said})
    return {
        str(source): {
            "label": of["is"].iloc[0],
            "texts": len(of),
            "right": float((of["is"] == of["said"]).mean()),
            "said": {label: int((of["said"] == label).sum()) for label in LABELS},
        }
        for source, of in found.groupby("source")
    }
