"""Public entailment sets as pairs for the support judge: does one text say what the other says?

They lie as published in a folder, a file each: tables (.csv, .tsv) with the columns premise, hypothesis and label, and
JSON lines with claim, evidence and label, or as Fool Me Twice has them (Eisenschlos et al. 2021):

    {"text": "Filming was delayed.", "wikipedia_page": "Gandhi (film)", "label": "SUPPORTS",
     "gold_evidence": [{"text": "..."}], "retrieved_evidence": [{"text": "..."}]}

What is neutral is as little supported as what is contradicted.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from assistant.errors import DataError
from assistant.experiment.datasets import records
from assistant.training.trainer import LabelledPair

FOLDER = "entailment"
# Labels by which the sets call a supported claim, and a claim that isn't; others ("-": people disagreed) are left out.
_TRUE_LABELS = frozenset({"entailment", "supports"})
_FALSE_LABELS = frozenset({"neutral", "contradiction", "not_entailment", "not_entail", "refutes", "not enough info"})
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
# Sentences beside the evidence that are shown with it, so that it has to be found, and how often that is done.
_MAX_BESIDE, _BESIDE_SHARE = 2, 0.5


def read_entailment(folder: Path, seed: int) -> list[LabelledPair]:
    """The pairs of all sets in a folder, in the order of the files' names; none where there is no such folder.

    Raises:
        DataError: a file can't be read, or a row lacks what such a row has; the line is named.
    """
    if not folder.is_dir():
        return []
    chance = Random(seed)  # noqa: S311 - an experiment, not a secret
    pairs = dict[LabelledPair, None]()
    for path in sorted(folder.iterdir()):
        for location, row in _rows(path):
            try:
                pairs |= dict.fromkeys(_pairs(row, chance))
            except (KeyError, TypeError, AttributeError) as error:
                raise DataError(f"{location}, is no entailment pair ({error}); give the set as published.") from error
    return list(pairs)


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if path.suffix not in _DELIMITERS:
        yield from records(path)
        return
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for number, row in enumerate(csv.DictReader(file, delimiter=_DELIMITERS[path.suffix]), start=2):
                yield f"{path}:{number}", {str(name).lower(): value for name, value in row.items()}
    except (OSError, UnicodeError, csv.Error) as error:
        raise DataError(f"{path} can't be read ({error}); give the set as published.") from error


def _pairs(row: Mapping[str, Any], chance: Random) -> Iterator[LabelledPair]:
    label_name = str(row["label"]).strip().lower()
    if label_name not in _TRUE_LABELS | _FALSE_LABELS:
        return
    label = float(label_name in _TRUE_LABELS)
    if "gold_evidence" in row:
        yield LabelledPair(row["text"].strip(), f"{row['wikipedia_page']}: {_evidence(row, chance)}", label)
    else:
        claim, evidence = (row["claim"], row["evidence"]) if "claim" in row else (row["hypothesis"], row["premise"])
        yield LabelledPair(claim.strip(), evidence.strip(), label)


def _evidence(row: Mapping[str, Any], chance: Random) -> str:
    """The sentences that tell, often among others of the same page."""
    texts = list(dict.fromkeys(sentence["text"] for sentence in row["gold_evidence"]))
    other_texts = [sentence["text"] for sentence in row["retrieved_evidence"] if sentence["text"] not in texts]
    if other_texts and chance.random() < _BESIDE_SHARE:
        texts = chance.sample(shown_texts := texts + other_texts[:_MAX_BESIDE], len(shown_texts))
    return " ".join(texts)
