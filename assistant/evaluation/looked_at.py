"""The ids of questions that were looked at during development, so that figures on them can say so.

`docs/results/looked_at.toml` lists samples ("seed 1, the first 150") and reasons; `looked_at.json` beside it holds the
ids of each set, which are computed from the samples and the data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.evaluation.tables import RESULTS_FOLDER, ROOT, Registry, derive
from assistant.experiment.datasets import StrictRecord, records, sample
from assistant.experiment.task import Summary

LIST_FILE, IDS_FILE = RESULTS_FOLDER / "looked_at.toml", RESULTS_FOLDER / "looked_at.json"


class SampleSpec(StrictRecord):
    """A sample of a file's records, as evaluations draw it; all of them without a limit."""

    file: str
    why: str
    seed: int = 0
    skip: int = 0
    limit: int | None = None


class LookedAtSet(StrictRecord):
    """A set of questions, and the samples of it that were looked at."""

    name: str
    samples: tuple[SampleSpec, ...]


class UnlistedData(StrictRecord):
    """Data that was looked at and can't be identified by ids."""

    what: str
    why: str


class LookedAtList(StrictRecord):
    """All that was looked at."""

    sets: tuple[LookedAtSet, ...]
    unlisted: tuple[UnlistedData, ...] = ()


def ids_of(looked: LookedAtList, registry: Registry, data: Path) -> dict[str, list[str]]:
    """The ids of each set, sorted, from the files of the data.

    Raises:
        DataError: a file is missing or broken.
    """
    with TemporaryDirectory() as folder:
        files = [sampled.file for question_set in looked.sets for sampled in question_set.samples]
        derive(registry, files, data, Path(folder))

        def drawn_ids(sampled: SampleSpec) -> list[str]:
            path = (Path(folder) if sampled.file in registry.derived else data) / sampled.file
            return sample([str(record["id"]) for _, record in records(path)], sampled.limit, sampled.seed, sampled.skip)

        return {
            question_set.name: sorted({id_ for sampled in question_set.samples for id_ in drawn_ids(sampled)})
            for question_set in looked.sets
        }


def write(ids_by_set: dict[str, list[str]], root: Path = ROOT) -> Path:
    """Write the ids, one line for each set."""
    path = root / IDS_FILE
    lines = (f"{json.dumps(name)}: {json.dumps(ids)}" for name, ids in ids_by_set.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return path


@cache
def looked_at_ids(root: Path = ROOT) -> frozenset[str]:
    """All ids that were looked at; none if only the package is installed."""
    path = root / IDS_FILE
    sets: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return frozenset(id_ for ids in sets.values() for id_ in ids)


def with_looked_at_remark(summary: Summary, ids: Iterable[str]) -> Summary:
    """The summary with a remark on how many of these questions were looked at before, if any.

    Rows that are numbered from 1 on have no ids of questions, though some set may use such numbers.
    """
    question_ids = set(ids)
    count = len(question_ids & looked_at_ids())
    if not count or question_ids == {str(n) for n in range(1, len(question_ids) + 1)}:
        return summary
    remark = f"of {len(question_ids)} questions that were looked at while this was made ({LIST_FILE.as_posix()})"
    return {**summary, "remarks": {**summary.get("remarks", {}), remark: count}}
