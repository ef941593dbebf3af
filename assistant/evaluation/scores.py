"""The scores of a run's answers, without the texts: small enough to store, and to pool with other runs.

A file of scores is CSV, one line for each row of a run: a digest of what the run was made with (its data, model, seed
and loop), what tells the row from the others (`KEY`), its measures, four marks (0 or 1), and for each iteration of its
loop whether the document held an answer ("1 0 1").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import pandas as pd
from pandas import DataFrame

from assistant.errors import DataError
from assistant.experiment.datasets import GoldPlacement
from assistant.experiment.measures import differences, mean, means, unknown_scores
from assistant.experiment.runs import Row
from assistant.experiment.task import Summary

# What the others are compared to: the first of these that was measured.
BASES = ("retrieve_then_read", "concat", "concat@word", "ranked/concat")
KEY = ("strategy", "k", "placement", "samples", "shots", "id")
MEASURES = ("em", "f1", "unknown", "nm", "gold_found", "prompt_tokens", "completion_tokens", "seconds")
MARKS = ("unanswerable", "empty", "failed", "pooled")
FIELDS = ("made", *KEY, *MEASURES, *MARKS, "recalls")
_COLUMN_TYPES = dict.fromkeys(FIELDS, "str") | dict.fromkeys(MEASURES, "float") | dict.fromkeys(MARKS, "int")
_COLUMN_TYPES |= dict.fromkeys(("k", "samples", "shots"), "int")
_SETTING = ["k", "placement", "samples", "shots"]


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """What can vary within one run: passages shown, where the gold one is, samples per prompt (1 = greedy), shots."""

    k: int = 5
    placement: GoldPlacement = "none"
    samples: int = 1
    shots: int = 0

    def __str__(self) -> str:
        shots = f", {self.shots}-shot" if self.shots else ""
        return f"k = {self.k}, gold {self.placement}, p = {self.samples}{shots}"


def of_rows(claim: Row, rows: Sequence[Row]) -> DataFrame:
    """The scores of rows that were made as the task's `claim` says, in their order."""
    # samples of one order that leave each other out are what is pooled
    digest = sha256(json.dumps({**claim, "skip": 0}, sort_keys=True).encode()).hexdigest()[:12]
    scores = [
        {
            "shots": 0,
            **row,
            "made": digest,
            "empty": not row["answer"].strip(),
            "failed": bool(row["error"]),
            "pooled": bool(row["pool"]),
            "recalls": " ".join(f"{iteration['recall']:g}" for iteration in row.get("iterations", ())),
        }
        for row in rows
    ]
    return DataFrame(scores, columns=list(FIELDS)).astype(_COLUMN_TYPES)


def summaries(scores: DataFrame, seed: int) -> list[Summary]:
    """A summary for each setting: the measures of each strategy, and their paired differences to `base`.

    A measure is `{"value", "low", "high"}` with the ends of its 95 % bootstrap interval over questions; shares are
    between 0 and 1.
    """
    return [_summary(setting, setting_scores, seed) for setting, setting_scores in _by_setting(scores)]


def as_csv(scores: DataFrame) -> str:
    """The text of a file of scores."""
    short = {name: scores[name].map(lambda value: f"{value:.4f}".rstrip("0").rstrip(".")) for name in MEASURES}
    return str(scores.assign(**short).to_csv(index=False, lineterminator="\n"))


def read(path: Path) -> DataFrame:
    """The scores of a file.

    Raises:
        DataError: the file can't be read, or is no file of scores.
    """
    try:
        table = pd.read_csv(path, dtype="str", keep_default_na=False)
    except pd.errors.EmptyDataError:
        table = DataFrame()
    except (OSError, ValueError) as error:
        raise DataError(f"{path} can't be read ({error}); give the scores.csv of a run.") from error
    if tuple(table.columns) != FIELDS:
        raise DataError(f"{path} is no file of scores; `evaluate answers` writes them as scores.csv.")
    try:
        return table.astype(_COLUMN_TYPES)
    except ValueError as error:
        raise DataError(f"{path} is broken ({error}); make the file again.") from error


def pool(files: Sequence[Path]) -> DataFrame:
    """The scores of all files together.

    Raises:
        DataError: a file is broken or was made with something else, none holds a score, two hold the same question, or
            a strategy was not asked all that others were.
    """
    pooled = pd.concat([read(path).assign(file=str(path)) for path in files], ignore_index=True)
    if pooled.empty:
        raise DataError("The files hold no scores; give the scores.csv of runs that are done.")
    for _, other_row in pooled[pooled["made"] != pooled["made"][0]].iterrows():
        raise DataError(
            f"{other_row['file']} was made with another model, seed or loop than {files[0]}, or on other data."
        )
    for _, duplicate in pooled[pooled.duplicated(list(KEY))].iterrows():
        raise DataError(
            f"{duplicate['file']} has {duplicate['id']} once more; only runs on other questions can be pooled."
        )
    for setting, setting_scores in _by_setting(pooled):
        (first_name, first_ids), *other_groups = setting_scores.groupby("strategy", sort=False)["id"]
        for name, ids in other_groups:
            if set(ids) != set(first_ids):
                raise DataError(
                    f"{name} was asked {len(ids)} questions at {setting} and {first_name} {len(first_ids)}, or others;"
                    " pool runs of the same strategies."
                )
    return pooled.drop(columns="file")


def _by_setting(scores: DataFrame) -> Iterator[tuple[Setting, DataFrame]]:
    for (k, placement, samples, shots), setting_scores in scores.groupby(_SETTING, sort=False):
        yield Setting(int(k), placement, int(samples), int(shots)), setting_scores


def _summary(setting: Setting, scores: DataFrame, seed: int) -> Summary:
    by_strategy = {str(name): rows.set_index("id") for name, rows in scores.groupby("strategy", sort=False)}
    base = next((name for name in BASES if name in by_strategy), "")
    first_rows = next(iter(by_strategy.values()))
    columns = {name: rows.loc[first_rows.index, list(MEASURES)] for name, rows in by_strategy.items()}
    return {
        **asdict(setting),
        "questions": len(first_rows),
        "base": base,
        "gold_found": mean(first_rows["gold_found"], seed),
        "strategies": {name: _measures(rows.loc[first_rows.index], seed) for name, rows in by_strategy.items()},
        "differences": {
            name: differences(measures, columns[base], seed)
            for name, measures in columns.items()
            if base and name != base
        },
    }


def _measures(scores: DataFrame, seed: int) -> Summary:
    # by iteration; a question whose answer failed before a document was written counts as not recalled
    recalls = scores["recalls"].str.split(expand=True).astype(float).fillna(0.0)
    summary: Summary = {
        **means(scores[list(MEASURES)], seed),
        **{name: int(scores[name].sum()) for name in ("empty", "failed", "pooled")},
        "recall": [mean(recalls[iteration], seed) for iteration in recalls],
    }
    if scores["unanswerable"].any():
        unknown_measures = unknown_scores(scores["unknown"].astype(bool), scores["unanswerable"], seed)
        summary |= {f"unknown_{name}": value for name, value in unknown_measures.items()}
    return summary
