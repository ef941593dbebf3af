"""Trains the reader of the suitability judge: a cross-encoder that reads fact and text together.

It learns from pairs of the recipe and from pairs that were written one by one (`written.jsonl`). A sixth of the written
facts, with all their pairs, is kept apart: stages of the training are compared by it, and the threshold of tags and
reader together is chosen on it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from threading import Event
from typing import Any, Literal

import numpy as np

from assistant.judges.clash import Blend, Both, Reader, together
from assistant.judges.suitability import Knowledge, Suitability
from assistant.training.suitability.pairs import make
from assistant.training.suitability.tables import load
from assistant.training.trainer import MODEL, Labelled, PairTrainer, Plan
from assistant.types import Embedder, Progress

WRITTEN = Path(__file__).with_name("written.jsonl")
# One of so many facts is kept apart.
APART = 6
# Pairs of the recipe, and how often each written one is learned.
RECIPE, TIMES = 12_000, 3
# The share that may be taken for a clash of the pairs kept apart that don't clash: near misses, nearly all of them.
FALSE_ALARMS = 0.12
NOTHING_YET = Blend(0.5, "nothing yet")


@dataclass(frozen=True, slots=True)
class Written:
    """A pair that was written one by one; `kind` says what makes it clash, or why it doesn't."""

    fact: str
    text: str
    clash: bool
    kind: str


@cache
def written(part: Literal["train", "dev"]) -> tuple[Written, ...]:
    """The written pairs of the facts to learn from, or of those kept apart."""
    rows = map(json.loads, WRITTEN.read_text(encoding="utf-8").splitlines())
    found = (Written(row["fact"], row["text"], bool(row["clash"]), row["kind"]) for row in rows)
    return tuple(one for one in found if _is_apart(one.fact) == (part == "dev"))


def _is_apart(fact: str) -> bool:
    return int(sha256(fact.lower().encode()).hexdigest(), 16) % APART == 0


def train(folder: Path, plan: Plan, tables: Path, embedder: Embedder, progress: Progress) -> dict[str, Any]:
    """Train in the folder, and write the blend beside the best model; what it came to.

    `tables` is the folder of what `train suitability` learned.

    Raises:
        DataError: the folder holds a training by another plan.
        ModelError: the base, or what the tables taught, can't be loaded.
    """
    knowledge = Knowledge.load(tables)
    recipe = [
        Labelled(one.fact, one.text, float(one.clash)) for one in make(load("train", plan.seed), RECIPE, plan.seed)
    ]
    pairs = [*recipe, *(_labelled(written("train")) * TIMES)]
    Random(plan.seed).shuffle(pairs)  # noqa: S311 - training data, not a secret
    stages = PairTrainer(folder, plan, pairs, _labelled(written("dev"))).run(progress)
    blend = fit(Both(Suitability(knowledge, embedder), Reader(folder / MODEL), NOTHING_YET), written("dev"))
    blend.save(folder / MODEL)
    return {"pairs": len(pairs), "stages": [asdict(stage) for stage in stages], "blend": asdict(blend)}


def _labelled(pairs: Sequence[Written]) -> list[Labelled]:
    return [Labelled(one.fact, one.text, float(one.clash)) for one in pairs]


def fit(judge: Both, dev: Sequence[Written]) -> Blend:
    """The lowest threshold with few enough false alarms."""
    calm = [one for one in dev if not one.clash]
    likely = [together(judge.evidence([one.fact], [one.text], Event())[0, 0]) for one in calm]
    return Blend(
        float(np.quantile(likely, 1 - FALSE_ALARMS)),
        f"{len(calm)} pairs without a clash that were written one by one, of facts that it was not trained on: at most "
        f"{FALSE_ALARMS:.0%} of them count as one",
    )
