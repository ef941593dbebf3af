"""Trains the larger relevance estimator on pairs of a question and a passage: what is added to an encoder.

It goes on from what the larger judge of support learned, which has read questions beside passages already.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from assistant.errors import DataError
from assistant.experiment.datasets import sample
from assistant.protocols import Progress, Retriever, silent
from assistant.training.relevance.pairs import make, searched
from assistant.training.support.pairs import TRUE, read
from assistant.training.support.train import whole
from assistant.training.trainer import Labelled, PairTrainer, Plan

PAIRS = "pairs.json"
# Development pairs that the stages of the training are compared by.
WATCHED = 600


def train(
    folder: Path, plan: Plan, data: Path, count: int, indexed: Callable[[Path], Retriever], progress: Progress
) -> dict[str, Any]:
    """Train in the folder on so many pairs; what it came to.

    Raises:
        DataError: the folder or the data can't be used, or the folder holds a training by another plan.
        ModelError: the base can't be loaded.
    """
    made = {name: whole(pairs, plan) for name, pairs in _made(folder, data, plan.seed, indexed).items()}
    pairs = sample(made["train"], min(count, len(made["train"])), plan.seed)
    watched = sample(made["dev"], min(WATCHED, len(made["dev"])), plan.seed)
    stages = PairTrainer(folder, plan, pairs, watched).run(progress)
    return {
        "pairs": len(pairs),
        "that answer": sum(one.label == TRUE for one in pairs),
        "stages": [asdict(stage) for stage in stages],
    }


def _made(folder: Path, data: Path, seed: int, indexed: Callable[[Path], Retriever]) -> dict[str, list[Labelled]]:
    """The pairs, made once and kept."""
    path = folder / PAIRS
    if not path.exists():
        made = {}
        for split in ("train", "dev"):
            material = read(data, split)
            retriever = indexed(searched(material, data, folder / split))
            made[split] = [asdict(pair) for pair in make(material, retriever, seed, silent)]
        path.write_text(json.dumps(made), encoding="utf-8")
    try:
        return {split: [Labelled(**one) for one in some] for split, some in json.loads(path.read_text()).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is broken; remove it to have the pairs made again.") from error
