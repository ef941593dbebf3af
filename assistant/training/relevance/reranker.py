"""Trains the larger relevance estimator on pairs of a question and a passage: what is added to an encoder.

It goes on from what the larger judge of support learned, which has read questions beside passages already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from assistant.experiment.datasets import sample
from assistant.protocols import Progress, Retriever, silent
from assistant.training.relevance.pairs import make, searched
from assistant.training.support.pairs import TRUE, Split, read
from assistant.training.support.train import kept, whole
from assistant.training.trainer import Labelled, PairTrainer, Plan

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

    def made_of(split: Split) -> list[Labelled]:
        material = read(data, split)
        return make(material, indexed(searched(material, data, folder / split)), plan.seed, silent)

    made = kept(folder, plan.seed, lambda: {"train": made_of("train"), "dev": made_of("dev")})
    made = {name: whole(pairs, plan) for name, pairs in made.items()}
    pairs = sample(made["train"], min(count, len(made["train"])), plan.seed)
    watched = sample(made["dev"], min(WATCHED, len(made["dev"])), plan.seed)
    stages = PairTrainer(folder, plan, pairs, watched).run(progress)
    return {
        "pairs": len(pairs),
        "that answer": sum(one.label == TRUE for one in pairs),
        "stages": [asdict(stage) for stage in stages],
    }
