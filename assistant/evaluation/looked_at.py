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

from assistant.evaluation.tables import FOLDER, ROOT, Registry, derive
from assistant.experiment.datasets import Strict, records, sample
from assistant.experiment.task import Summary

LIST, IDS = FOLDER / "looked_at.toml", FOLDER / "looked_at.json"


class Drawn(Strict):
    """A sample of a file's records, as evaluations draw it; all of them without a limit."""

    file: str
    why: str
    seed: int = 0
    skip: int = 0
    limit: int | None = None


class Looked(Strict):
    """A set of questions, and the samples of it that were looked at."""

    name: str
    samples: tuple[Drawn, ...]


class Unlisted(Strict):
    """Data that was looked at and can't be identified by ids."""

    what: str
    why: str


class List(Strict):
    """All that was looked at."""

    sets: tuple[Looked, ...]
    unlisted: tuple[Unlisted, ...] = ()


def ids_of(looked: List, registry: Registry, data: Path) -> dict[str, list[str]]:
    """The ids of each set, sorted, from the files of the data.

    Raises:
        DataError: a file is missing or broken.
    """
    with TemporaryDirectory() as passing:
        derive(registry, [one.file for of in looked.sets for one in of.samples], data, Path(passing))

        def drawn(one: Drawn) -> list[str]:
            path = (Path(passing) if one.file in registry.derived else data) / one.file
            return sample([str(record["id"]) for _, record in records(path)], one.limit, one.seed, one.skip)

        return {of.name: sorted({id_ for one in of.samples for id_ in drawn(one)}) for of in looked.sets}


def write(ids_by_set: dict[str, list[str]], root: Path = ROOT) -> Path:
    """Write the ids, one line for each set."""
    path = root / IDS
    lines = (f"{json.dumps(name)}: {json.dumps(ids)}" for name, ids in ids_by_set.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return path


@cache
def known(root: Path = ROOT) -> frozenset[str]:
    """All ids that were looked at; none if only the package is installed."""
    path = root / IDS
    sets: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return frozenset(id_ for ids in sets.values() for id_ in ids)


def remarked(summary: Summary, ids: Iterable[str]) -> Summary:
    """The summary with a remark on how many of these questions were looked at before, if any.

    Rows that are numbered from 1 on have no ids of questions, though some set may use such numbers.
    """
    several = set(ids)
    count = len(several & known())
    if not count or several == {str(n) for n in range(1, len(several) + 1)}:
        return summary
    says = f"of {len(several)} questions that were looked at while this was made ({LIST.as_posix()})"
    return {**summary, "remarks": {**summary.get("remarks", {}), says: count}}
