"""Trains the larger relevance estimator on pairs of a question and a passage: what is added to an encoder.

It goes on from what the larger judge of support learned, which has read questions beside passages already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from assistant.experiment.datasets import equal_parts, sample
from assistant.judges.examples import examples
from assistant.protocols import Progress, Retriever, silent
from assistant.training.relevance.pairs import make_pairs, quoted_pairs, write_search_corpus, written_pairs
from assistant.training.support.pairs import TRUE, Split, fingerprints, fold, read_material
from assistant.training.support.quoted import PATHS as QUOTED_PATHS
from assistant.training.support.quoted import read_quoted
from assistant.training.support.train import load_or_make_pairs, untruncated_pairs
from assistant.training.support.written import read_written
from assistant.training.trainer import LabelledPair, PairTrainer, Plan

# The examples of messages that ask nothing of any document (prompts/intents.toml).
TALK = ("small_talk", "more_small_talk", "conversation", "recall", "forget", "why", "beside")
# Development pairs that the stages of the training are compared by.
MAX_STAGE_PAIRS = 600


def train(
    folder: Path,
    plan: Plan,
    data: Path,
    count: int,
    indexed: Callable[[Path], Retriever],
    progress: Progress,
    own_share: float = 0.0,
) -> dict[str, Any]:
    """Train in the folder on so many pairs, of which a share at most is of short documents; what it came to.

    Raises:
        DataError: the folder or the data can't be used, or the folder holds a training by another plan.
        ModelError: the base can't be loaded.
    """

    def make_split(split: Split) -> list[LabelledPair]:
        material = read_material(data, split)
        return make_pairs(material, indexed(write_search_corpus(material, data, folder / split)), plan.seed, silent)

    claim = {"seed": plan.seed, "material": fingerprints(data)}
    all_pairs = load_or_make_pairs(folder, claim, lambda: {"train": make_split("train"), "dev": make_split("dev")})
    all_pairs = {name: untruncated_pairs(pairs, plan) for name, pairs in all_pairs.items()}
    own_pairs = _own_pairs("train", all_pairs["train"], plan, int(count * own_share)) if own_share else []
    pairs = own_pairs + _sampled(all_pairs["train"], count - len(own_pairs), plan.seed)
    watched_pairs = _sampled(all_pairs["dev"], MAX_STAGE_PAIRS, plan.seed)
    if own_share:
        watched_pairs += _own_pairs("dev", all_pairs["dev"], plan, MAX_STAGE_PAIRS)
    stages = PairTrainer(folder, plan, pairs, watched_pairs).run(progress)
    return {
        "pairs": len(pairs),
        "of short documents": len(own_pairs),
        "that answer": sum(pair.label == TRUE for pair in pairs),
        "stages": [asdict(stage) for stage in stages],
    }


def _own_pairs(split: Split, pairs: Sequence[LabelledPair], plan: Plan, most: int) -> list[LabelledPair]:
    """At most so many pairs of short documents, of each of their files and of written passages the same number.

    Among them are those of talk, of which every tenth message is kept apart for "dev". What has nothing to do with
    either is also drawn from the passages of the other pairs.
    """
    table = examples("intents")
    messages = [text for kind in TALK for text in table[kind] if (fold(text, 10) == 0) == (split == "dev")]
    passages = [pair.second for pair in pairs]
    sets = [quoted_pairs(read_quoted(split, [path]), messages, passages, plan.seed) for path in QUOTED_PATHS]
    sets.append(written_pairs(read_written(split), plan.seed))
    return equal_parts([untruncated_pairs(found, plan) for found in sets], most, plan.seed)


def _sampled(pairs: list[LabelledPair], most: int, seed: int) -> list[LabelledPair]:
    return sample(pairs, min(most, len(pairs)), seed)
