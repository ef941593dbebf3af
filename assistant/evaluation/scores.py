"""What each answer of a run scored, without its texts: small enough to keep, and to pool with other runs.

A file of scores is CSV, one line for each row of a run: a digest of what the run was made with (its data, model, seed
and loop), what tells the row from the others (`KEY`), its measures, four marks (0 or 1), and for each iteration of its
loop whether the document held an answer ("1 0 1").
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

from assistant.errors import DataError
from assistant.evaluation.answers import Experiment, Key, Material, Setting, key_of
from assistant.experiment.measures import mean, paired_difference, unknown_scores
from assistant.experiment.runs import Row, Run

# What the others are compared to: the first of these that was measured.
BASES = ("retrieve_then_read", "concat", "ranked/concat")
KEY = ("strategy", "k", "placement", "samples", "shots", "id")
MEASURES = ("em", "f1", "unknown", "nm", "gold_found", "prompt_tokens", "completion_tokens", "seconds")
MARKS = ("unanswerable", "empty", "failed", "pooled")
FIELDS = ("made", *KEY, *MEASURES, *MARKS, "recalls")
_TEXTS = ("made", "strategy", "placement", "id")
Summary = dict[str, Any]
# By setting and strategy, of the same questions in the same order.
Scores = dict[Setting, dict[str, list[Row]]]


def of_run(experiment: Experiment, material: Material, run: Run[Key]) -> Scores:
    """The scores of a run that is done."""
    made = _made(run)
    return {
        setting: {
            name: [_score(made, run.rows[key_of(name, setting, question.id)]) for question in material.questions]
            for name in experiment.strategies
        }
        for setting in experiment.settings
    }


def summaries(scores: Scores, seed: int) -> list[Summary]:
    """A summary for each setting: the measures of each strategy, and their paired differences to `base`.

    A measure is `{"value", "low", "high"}` with the ends of its 95 % bootstrap interval over questions; shares are
    between 0 and 1.
    """
    return [_summary(setting, of, seed) for setting, of in scores.items()]


def as_csv(scores: Scores) -> str:
    """The text of a file of scores."""
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(FIELDS)
    for of in scores.values():
        writer.writerows([_cell(one[name]) for name in FIELDS] for rows in of.values() for one in rows)
    return file.getvalue()


def read(path: Path) -> list[Row]:
    """The scores of a file.

    Raises:
        DataError: the file can't be read, or is no file of scores.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            if tuple(rows.fieldnames or ()) != FIELDS:
                raise DataError(f"{path} is no file of scores; `evaluate answers` writes them as scores.csv.")
            return [_parsed(row, path, rows.line_num) for row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} can't be read ({error}); give the scores.csv of a run.") from error


def pool(files: Sequence[Path]) -> Scores:
    """The scores of all files together.

    Raises:
        DataError: a file is broken or was made with something else, none holds a score, two hold the same question, or
            a strategy was not asked all that others were.
    """
    found: dict[Setting, dict[str, dict[str, Row]]] = {}
    made = ""
    for path in files:
        for one in read(path):
            made = made or one["made"]
            if one["made"] != made:
                raise DataError(f"{path} was made with another model, seed or loop than {files[0]}, or on other data.")
            setting = Setting(one["k"], one["placement"], one["samples"], one["shots"])
            asked = found.setdefault(setting, {}).setdefault(one["strategy"], {})
            if one["id"] in asked:
                raise DataError(f"{path} has {one['id']} once more; only runs on other questions can be pooled.")
            asked[one["id"]] = one
    if not found:
        raise DataError("The files hold no scores; give the scores.csv of runs that are done.")
    return {setting: _aligned(setting, of) for setting, of in found.items()}


def _made(run: Run[Key]) -> str:
    asked = json.loads((run.folder / "run.json").read_text(encoding="utf-8"))
    # samples of one order that leave each other out are what is pooled
    return sha256(json.dumps({**asked, "skip": 0}, sort_keys=True).encode()).hexdigest()[:12]


def _score(made: str, row: Row) -> Row:
    return {
        "made": made,
        **{name: row[name] for name in KEY if name != "shots"},
        **{name: float(row[name]) for name in MEASURES},
        "shots": row.get("shots", 0),
        "unanswerable": row["unanswerable"],
        "empty": not row["answer"].strip(),
        "failed": bool(row["error"]),
        "pooled": bool(row["pool"]),
        "recalls": [float(one["recall"]) for one in row.get("iterations", ())],
    }


def _summary(setting: Setting, scores: Mapping[str, Sequence[Row]], seed: int) -> Summary:
    base = next((name for name in BASES if name in scores), "")
    first = next(iter(scores.values()))
    return {
        **asdict(setting),
        "questions": len(first),
        "base": base,
        "gold_found": asdict(mean([one["gold_found"] for one in first], seed)),
        "strategies": {name: _measures(of, seed) for name, of in scores.items()},
        "differences": {
            name: _differences(of, scores[base], seed) for name, of in scores.items() if base and name != base
        },
    }


def _measures(scores: Sequence[Row], seed: int) -> Summary:
    found: Summary = {name: asdict(mean([one[name] for one in scores], seed)) for name in MEASURES}
    found |= {name: sum(one[name] for one in scores) for name in ("empty", "failed", "pooled")}
    found["recall"] = _recalls(scores, seed)
    unanswerable = [one["unanswerable"] for one in scores]
    if any(unanswerable):
        of = unknown_scores([bool(one["unknown"]) for one in scores], unanswerable, seed)
        found |= {f"unknown_{name}": asdict(value) for name, value in of.items()}
    return found


def _recalls(scores: Sequence[Row], seed: int) -> list[dict[str, float]]:
    """By iteration; a question whose answer failed before a document was written counts as not recalled."""
    recalls = [one["recalls"] for one in scores]
    return [
        asdict(mean([of[n] if n < len(of) else 0.0 for of in recalls], seed)) for n in range(max(map(len, recalls)))
    ]


def _differences(scores: Sequence[Row], base: Sequence[Row], seed: int) -> dict[str, dict[str, float]]:
    return {
        name: asdict(paired_difference([one[name] for one in scores], [one[name] for one in base], seed))
        for name in MEASURES
    }


def _aligned(setting: Setting, asked: Mapping[str, Mapping[str, Row]]) -> dict[str, list[Row]]:
    ids = next(iter(asked.values()))
    for name, of in asked.items():
        if of.keys() != ids.keys():
            raise DataError(
                f"{name} was asked {len(of)} questions at {setting} and {next(iter(asked))} {len(ids)}, or others; pool"
                " runs of the same strategies."
            )
    return {name: [of[one] for one in ids] for name, of in asked.items()}


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".")
    return " ".join(str(_cell(one)) for one in value) if isinstance(value, list) else value


def _parsed(row: Mapping[str, str], path: Path, line: int) -> Row:
    try:
        return {
            **{name: row[name] if name in _TEXTS else int(row[name]) for name in ("made", *KEY)},
            **{name: float(row[name]) for name in MEASURES},
            **{name: bool(int(row[name])) for name in MARKS},
            "recalls": [float(one) for one in row["recalls"].split()],
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path}, line {line}, is broken ({error}); make the file again.") from error
