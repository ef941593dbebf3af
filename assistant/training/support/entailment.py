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
from assistant.training.trainer import Labelled

FOLDER = "entailment"
# Labels by which the sets call a supported claim, and a claim that isn't; others ("-": people disagreed) are left out.
_TRUE = frozenset({"entailment", "supports"})
_FALSE = frozenset({"neutral", "contradiction", "not_entailment", "not_entail", "refutes", "not enough info"})
_TABLES = {".csv": ",", ".tsv": "\t"}
# Sentences beside the evidence that are shown with it, so that it has to be found, and how often that is done.
_BESIDE, _OFTEN = 2, 0.5


def read_entailment(folder: Path, seed: int) -> list[Labelled]:
    """The pairs of all sets in a folder, in the order of the files' names; none where there is no such folder.

    Raises:
        DataError: a file can't be read, or a row lacks what such a row has; the line is named.
    """
    if not folder.is_dir():
        return []
    chance = Random(seed)  # noqa: S311 - an experiment, not a secret
    found = dict[Labelled, None]()
    for path in sorted(folder.iterdir()):
        for place, row in _rows(path):
            try:
                found |= dict.fromkeys(_pairs(row, chance))
            except (KeyError, TypeError, AttributeError) as error:
                raise DataError(f"{place}, is no entailment pair ({error}); give the set as published.") from error
    return list(found)


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if path.suffix not in _TABLES:
        yield from records(path)
        return
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for number, row in enumerate(csv.DictReader(file, delimiter=_TABLES[path.suffix]), start=2):
                yield f"{path}:{number}", {str(name).lower(): value for name, value in row.items()}
    except (OSError, UnicodeError, csv.Error) as error:
        raise DataError(f"{path} can't be read ({error}); give the set as published.") from error


def _pairs(row: Mapping[str, Any], chance: Random) -> Iterator[Labelled]:
    said = str(row["label"]).strip().lower()
    if said not in _TRUE | _FALSE:
        return
    label = float(said in _TRUE)
    if "gold_evidence" in row:
        yield Labelled(row["text"].strip(), f"{row['wikipedia_page']}: {_evidence(row, chance)}", label)
    else:
        claim, evidence = (row["claim"], row["evidence"]) if "claim" in row else (row["hypothesis"], row["premise"])
        yield Labelled(claim.strip(), evidence.strip(), label)


def _evidence(row: Mapping[str, Any], chance: Random) -> str:
    """The sentences that tell, often among others of the same page."""
    texts = list(dict.fromkeys(one["text"] for one in row["gold_evidence"]))
    others = [one["text"] for one in row["retrieved_evidence"] if one["text"] not in texts]
    if others and chance.random() < _OFTEN:
        texts = chance.sample(found := texts + others[:_BESIDE], len(found))
    return " ".join(texts)
