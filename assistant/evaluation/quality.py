"""Trains and measures the passage quality classifier, on texts whose labels follow their sources.

One record, a line: `{"text": "...", "label": "reliable"|"unreliable"|"junk", "source": "wikitext-2",
"split": "train"|"test"}`. As labels follow sources, and sources differ in length, short and long texts are told apart,
and a source can be left out of training to see how the model does on one that it has not met.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sklearn.metrics import confusion_matrix, f1_score, precision_recall_fscore_support

from assistant.errors import DataError
from assistant.experiment.datasets import records
from assistant.experiment.measures import mean
from assistant.judges.quality import LABELS, Classifier, Label, fit
from assistant.protocols import Progress

# The longest texts of each band, in words.
BANDS = {"short": 40, "medium": 100, "long": 10**9}
# A source with fewer texts says little about how well it is judged.
FEWEST = 50


@dataclass(frozen=True, slots=True)
class Example:
    """A text with its label."""

    text: str
    label: Label
    source: str
    held_out: bool


def read_examples(path: Path) -> list[Example]:
    """The labelled texts of a file.

    Raises:
        DataError: a line is broken, has no text, or a label or split that is none; or one of the splits is empty.
    """
    examples = [_example(place, record) for place, record in records(path)]
    for split in (False, True):
        if not any(example.held_out == split for example in examples):
            raise DataError(f"{path} holds no text whose split is {'test' if split else 'train'}; both are needed.")
    return examples


def train(examples: Sequence[Example]) -> Classifier:
    """Learn from the texts that are not held out.

    Raises:
        DataError: a label has no text.
    """
    used = [example for example in examples if not example.held_out]
    return fit([example.text for example in used], [example.label for example in used])


def measure(model: Classifier, examples: Sequence[Example], seed: int = 0) -> dict[str, Any]:
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


def unseen(examples: Sequence[Example], progress: Progress) -> dict[str, dict[str, Any]]:
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


def report(summary: dict[str, Any]) -> str:
    """The summary as Markdown tables."""
    return "\n\n".join(_tables(summary))


def _example(place: str, record: dict[str, Any]) -> Example:
    text, label, split = record.get("text"), record.get("label"), record.get("split")
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"{place}, has no text; mend or remove the line.")
    if label not in LABELS:
        raise DataError(f"{place}, has the label {label!r}, not one of {', '.join(LABELS)}; mend or remove the line.")
    if split not in {"train", "test"}:
        raise DataError(f"{place}, has the split {split!r}, not train or test; mend or remove the line.")
    return Example(text, label, str(record.get("source", "")), split == "test")


def _band(text: str) -> str:
    length = len(text.split())
    return next(name for name, most in BANDS.items() if length <= most)


def _scores(tested: Sequence[Example], said: Sequence[Label]) -> dict[str, Any]:
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


def _by_source(tested: Sequence[Example], said: Sequence[Label]) -> dict[str, dict[str, Any]]:
    found: dict[str, list[tuple[Label, Label]]] = defaultdict(list)
    for example, label in zip(tested, said, strict=True):
        found[example.source].append((example.label, label))
    return {
        source: {
            "label": pairs[0][0],
            "texts": len(pairs),
            "right": sum(true == label for true, label in pairs) / len(pairs),
            "said": {label: sum(one == label for _, one in pairs) for label in LABELS},
        }
        for source, pairs in sorted(found.items())
    }


def _tables(summary: dict[str, Any]) -> Iterator[str]:
    accuracy = summary["accuracy"]
    yield (
        f"Trained on {summary['trained_on']:,} texts, {summary['terms']:,} terms; tested on {summary['texts']:,}: "
        f"macro-F1 {summary['macro_f1']:.3f}, accuracy {accuracy['value']:.3f} "
        f"({accuracy['low']:.3f} to {accuracy['high']:.3f})."
    )
    yield _table(
        ("length", "texts", "macro-F1", *(f"F1 {label}" for label in LABELS)),
        [_band_row("all", summary), *(_band_row(_named(name), of) for name, of in summary["by_length"].items())],
    )
    confusion = zip(LABELS, summary["confusion"], strict=True)
    yield _table(("is, and was taken for", *LABELS), [(label, *map(str, row)) for label, row in confusion])
    for key, title in (("by_source", "source"), ("unseen", "source that was left out of training")):
        if key in summary:
            yield _table((title, "is", "texts", "right", *LABELS), _source_rows(summary[key]))


def _band_row(name: str, scores: dict[str, Any]) -> tuple[str, ...]:
    of = scores["labels"]
    each = (f"{of[label]['f1']:.3f} ({of[label]['texts']})" if label in of else "-" for label in LABELS)
    return (name, str(scores["texts"]), f"{scores['macro_f1']:.3f}", *each)


def _named(band: str) -> str:
    limits = {"short": "up to 40 words", "medium": "41 to 100 words", "long": "more than 100 words"}
    return limits[band]


def _source_rows(sources: dict[str, dict[str, Any]]) -> list[tuple[str, ...]]:
    return [
        (source, of["label"], str(of["texts"]), f"{of['right']:.3f}", *(str(of["said"][label]) for label in LABELS))
        for source, of in sources.items()
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
