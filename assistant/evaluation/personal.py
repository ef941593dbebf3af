"""Measures whether questions are written anew with what the facts say: "my country" as Germany for who lives in Berlin.

One record: {"facts": ["I live in Berlin."], "question": "How many people live in my country?", "must": ["german"]};
`must` are regular expressions that the rewrite has to hold, whatever the case. `history` [[said, reply], ...], `kind`,
`id` and `split` may be missing. One row: {"id", "question", "rewrite", "right"}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assistant.errors import DataError
from assistant.evaluation.marks import Pattern, has
from assistant.experiment.datasets import fingerprint, records
from assistant.experiment.measures import share
from assistant.experiment.runs import Row, Run
from assistant.protocols import Parts, Progress
from assistant.steps import facts, rewrite
from assistant.types import (
    Exchange,
    Fact,
    Turn,
    now,
)


class Pair(BaseModel):
    """A question of a person of whom something is known, and what its rewrite has to say."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    facts: tuple[str, ...]
    question: Annotated[str, Field(min_length=1)]
    must: Annotated[tuple[Pattern, ...], Field(min_length=1)]
    history: tuple[tuple[str, str], ...] = ()
    kind: str = ""
    id: str = ""
    split: str = ""


def read_pairs(path: Path, split: str = "") -> list[Pair]:
    """The pairs of a file, those of one split where one is named; each gets an id.

    Raises:
        DataError: a line can't be used; or there is no pair, or none of the split.
    """
    found = []
    for n, (place, record) in enumerate(records(path), 1):
        try:
            pair = Pair.model_validate({"id": f"p{n}", **record})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise DataError(f"{place}, is no pair of facts and question: '{where}': {first['msg']}.") from error
        if not split or pair.split == split:
            found.append(pair)
    if not found:
        raise DataError(f"There are no pairs{f' of the split {split!r}' if split else ''} in {path}.")
    return found


def open_run(folder: Path, pairs: Path, model: str) -> Run[str]:
    """The folder of a run over these pairs.

    Raises:
        DataError: the folder holds a run over others, or with another model.
    """
    return Run(folder, {"pairs": fingerprint(pairs), "model": model}, lambda row: str(row["id"]))


def measure(pairs: Sequence[Pair], parts: Parts, rows: Run[str] | None, progress: Progress) -> dict[str, Row]:
    """A row a pair, by its id; those that a run holds already aren't made again."""
    if rows is None:
        made: dict[str, Row] = {}
        for n, pair in enumerate(pairs):
            progress(n, len(pairs))
            made[pair.id] = _row(pair, parts)
        return made
    jobs = [(pair.id, lambda pair=pair: _row(pair, parts)) for pair in pairs]
    rows.fill(jobs, len(jobs), progress)
    return dict(rows.rows)


def summarise(pairs: Sequence[Pair], rows: Mapping[str, Row]) -> dict[str, Any]:
    """The share of right rewrites, over all and by kind, with Wilson's 95 % intervals."""
    right = [bool(rows[pair.id]["right"]) for pair in pairs]
    kinds = dict.fromkeys(pair.kind for pair in pairs if pair.kind)
    by_kind = {kind: [r for r, pair in zip(right, pairs, strict=True) if pair.kind == kind] for kind in kinds}
    found = share(right)
    return {
        "accuracy": found.value,
        "low": found.low,
        "high": found.high,
        "n": len(pairs),
        "kinds": {kind: {**asdict(share(some)), "n": len(some)} for kind, some in by_kind.items()},
    }


def _row(pair: Pair, parts: Parts) -> Row:
    moment = now()
    known = tuple(Fact(str(n), text, moment, moment) for n, text in enumerate(pair.facts))
    turn = Turn(pair.question, tuple(Exchange(said, said, reply) for said, reply in pair.history), known)
    for step in (facts.run, rewrite.run):
        *_, turn = step(turn, parts, Event())
    right = all(has(turn.question, one) for one in pair.must)
    return {"id": pair.id, "question": pair.question, "rewrite": turn.question, "right": right}
