"""Which of the documents that were written for the judges are learned from, and which are kept apart.

They lie beside this file; a tenth is kept apart, by a hash of the text. Some documents are in several files, as a
passage, as an excerpt or as sentences: where one form of a document is kept apart, no other is learned from.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from assistant.experiment.datasets import records
from assistant.training.support.pairs import Split, fold

FILES = tuple(sorted(Path(__file__).parent.glob("*.jsonl")))


def is_in_split(title: str, text: str, split: Split) -> bool:
    """Whether a document is in the split "train" or "dev"; in "test" there is none."""
    if split == "dev":
        return _is_apart(text)
    return split == "train" and not _is_apart(text) and title not in _titles_apart()


def _is_apart(text: str) -> bool:
    return fold(text, 10) == 0


@cache
def _titles_apart() -> frozenset[str]:
    """The titles of all documents of which a form is kept apart."""
    rows = [row for path in FILES for _, row in records(path)]
    texts = (row["text"] if "text" in row else f"{row['title']}: {' '.join(row['sentences'])}" for row in rows)
    return frozenset(row["title"] for row, text in zip(rows, texts, strict=True) if _is_apart(text))
