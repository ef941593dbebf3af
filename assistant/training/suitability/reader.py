"""Trains the reader of the suitability judge: a cross-encoder that reads fact and text together.

It learns from pairs of three recipes, things as tables and passages name them, as a model's replies do, and sentences
that offer nothing, and from pairs that were written one by one (`written.jsonl`). A sixth of the written facts, with
all their pairs, is kept apart: stages of the training are compared by it. How tags and reader are weighed, and the
threshold, are chosen on it and on other development pairs, each set counting the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from threading import Event
from typing import Any, Literal

import numpy as np

from assistant.evaluation.suitability import Pair
from assistant.judges.suitability.judge import BLEND, Blend, Both, has_few_words
from assistant.judges.suitability.knowledge import Knowledge
from assistant.judges.suitability.reader import Reader
from assistant.judges.suitability.tags import ByTags
from assistant.protocols import Embedder, Progress
from assistant.training.suitability.pairs import Pair as Made
from assistant.training.suitability.pairs import make
from assistant.training.suitability.replies import make_replies
from assistant.training.suitability.tables import load
from assistant.training.suitability.tellings import make_tellings
from assistant.training.trainer import Labelled, PairTrainer, Plan

WRITTEN = Path(__file__).with_name("written.jsonl")
# One of so many facts is kept apart.
APART = 6
# The share of pairs without a clash that may count as one, near misses many of them; and shares of the reader.
FALSE_ALARMS = 0.08
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
NOTHING_YET = Blend(0.5, 0.5, 0.5, "nothing yet")


@dataclass(frozen=True, slots=True)
class Written:
    """A pair that was written one by one; `kind` says what makes it clash, or why it doesn't."""

    fact: str
    text: str
    clash: bool
    kind: str


@dataclass(frozen=True, slots=True)
class Lesson:
    """How many pairs of each recipe are learned, and how often each written one."""

    tables: int = 12_000
    replies: int = 9_000
    tellings: int = 9_000
    times: int = 3

    def pairs(self, seed: int) -> list[Labelled]:
        """All of them, in an order drawn by the seed."""
        known = load("train", seed)
        made = [
            *make(known, self.tables, seed),
            *make_replies(known, self.replies, seed),
            *make_tellings(known, self.tellings, seed),
        ]
        pairs = [*_labelled(made), *_labelled(written("train")) * self.times]
        Random(seed).shuffle(pairs)  # noqa: S311 - training data, not a secret
        return pairs


@cache
def written(part: Literal["train", "dev"]) -> tuple[Written, ...]:
    """The written pairs of the facts to learn from, or of those kept apart."""
    rows = map(json.loads, WRITTEN.read_text(encoding="utf-8").splitlines())
    found = (Written(row["fact"], row["text"], bool(row["clash"]), row["kind"]) for row in rows)
    return tuple(one for one in found if _is_apart(one.fact) == (part == "dev"))


def _is_apart(fact: str) -> bool:
    return int(sha256(fact.lower().encode()).hexdigest(), 16) % APART == 0


def train(folder: Path, plan: Plan, lesson: Lesson, progress: Progress) -> dict[str, Any]:
    """Train in the folder; how many pairs were learned from, and what each stage came to.

    Raises:
        DataError: the folder holds a training by another plan.
        ModelError: the base can't be loaded.
    """
    pairs = lesson.pairs(plan.seed)
    stages = PairTrainer(folder, plan, pairs, _labelled(written("dev"))).run(progress)
    return {"pairs": len(pairs), "stages": [asdict(stage) for stage in stages]}


def weigh(
    folder: Path,
    base: Path | None,
    knowledge: Knowledge,
    embedder: Embedder,
    more: Mapping[str, Sequence[Pair]],
    things: Sequence[Pair] = (),
) -> Blend:
    """Weigh the reader in a folder with the tags, and write the blend beside it.

    `base` is the encoder that the folder's reader is added to, if it is; `more` are other development pairs by their
    names, and `things` such pairs whose texts name things.

    Raises:
        ModelError: the reader can't be loaded, or the tags belong to another embedder.
    """
    judge = Both(ByTags(knowledge, embedder), Reader(folder, base), NOTHING_YET)
    blend = fit(judge, {"that were written and kept apart": written("dev"), **more}, things)
    blend.save(folder / BLEND)
    return blend


def _labelled(pairs: Sequence[Written | Made]) -> list[Labelled]:
    return [Labelled(one.fact, one.text, float(one.clash)) for one in pairs]


def fit(judge: Both, sets: Mapping[str, Sequence[Written | Pair]], things: Sequence[Pair] = ()) -> Blend:
    """The weight that ranks best, and the threshold with few enough false alarms, each by the mean over the sets.

    Texts of few words are weighed by what ranks the `things` best; without any that clash, or others, as all texts are.
    """
    judged = [_judged(judge, pairs) for pairs in sets.values()]
    reader = _best(judged)
    blended = [(_likely(found, reader), clash) for found, clash in judged]
    threshold = _strict(blended)
    recall = float(np.mean([np.mean(likely[clash] >= threshold) for likely, clash in blended]))
    about = ", ".join(f"{len(pairs)} pairs {name}" for name, pairs in sets.items())
    told = f"{about}: of the clashes {recall:.0%} are found where {FALSE_ALARMS:.0%} of the others count as one"
    few = [one for one in things if has_few_words(one.text)]
    if len({one.clash for one in few}) < 2:
        return Blend(reader, reader, threshold, told)
    return Blend(reader, _best([_judged(judge, few)]), threshold, f"{told}; of few words: {len(few)} things")


def _judged(judge: Both, pairs: Sequence[Written | Pair]) -> tuple[Any, Any]:
    """What tags and reader give to each pair, a row each, and which pairs clash."""
    found = [judge.evidence([one.fact], [one.text], Event())[0, 0] for one in pairs]
    return np.array(found), np.array([bool(one.clash) for one in pairs])


def _best(judged: Sequence[tuple[Any, Any]]) -> float:
    """The share of the reader that ranks best."""
    return max(SHARES, key=lambda share: _ranked([(_likely(found, share), clash) for found, clash in judged]))


def _likely(evidence: Any, share: float) -> Any:
    tags, reader = evidence.T
    return 1 / (1 + np.exp(-((1 - share) * tags + share * reader)))


def _ranked(sets: Sequence[tuple[Any, Any]]) -> float:
    """The mean AUC."""
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415 - takes a second to import

    return float(np.mean([roc_auc_score(clash, likely) for likely, clash in sets]))


def _strict(sets: Sequence[tuple[Any, Any]]) -> float:
    """The lowest threshold with few enough false alarms."""
    steps = np.unique(np.concatenate([likely for likely, _ in sets]))
    few = [at for at in steps if np.mean([np.mean(likely[~clash] >= at) for likely, clash in sets]) <= FALSE_ALARMS]
    return float(min(few, default=1.0))
