"""Teaches the suitability judge its tables: classifiers of embeddings, with the threshold chosen on held-out pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from assistant.judges.suitability import Knowledge, Suitability
from assistant.training.suitability.pairs import Pair, fill, make
from assistant.training.suitability.tables import Item, Part, Tables, Tags, load
from assistant.types import Embedder

# Development and test pairs: of known groups of facts in new wordings, and of groups that training lacks.
KNOWN, NEW = 1500, 1000
# The share of development pairs without a clash that may be taken for one; warnings are among them.
FALSE_ALARMS = 0.02
# What counts for a tag that some of its kind have, and for one that a fact may rule out.
UNSURE, MAYBE = 0.5, 0.15
# A classifier of its own is learned for tags that so many things have; each frame of a sentence is filled so often.
ENOUGH, FILLED = 4, 4


def held_out(part: Part, seed: int) -> dict[str, list[Pair]]:
    """The pairs of "dev" or "test": `known` groups of facts in new wordings, and `new` groups; all items are new."""
    known, new = make(load(part, seed, known=True), KNOWN, seed + 1), make(load(part, seed), NEW, seed + 2)
    return {"known": known, "new": new}


def train(folder: Path, embedder: Embedder, seed: int) -> dict[str, Any]:
    """Teach the judge all tables, and write it into the folder; what one that was taught a part of them came to.

    Returns:
        {"threshold": t, "test": {"known": {pairs, auc, precision, recall, false_alarms}, "new": {...}}}
    """
    part = Suitability(taught(load("train", seed), embedder, seed), embedder)
    dev = [pair for some in held_out("dev", seed).values() for pair in some]
    threshold = _threshold(dev, _scores(part, dev))
    about = f"the recipe's development pairs, seed {seed}: {FALSE_ALARMS:.0%} of those without a clash count as one"
    whole = taught(load("all", seed), embedder, seed)
    replace(whole, threshold=threshold, chosen_on=about).save(folder)
    test = {name: _measured(part, some, threshold) for name, some in held_out("test", seed).items()}
    return {"threshold": threshold, "test": test}


def taught(tables: Tables, embedder: Embedder, seed: int) -> Knowledge:
    """What these tables teach; the threshold is yet to be chosen."""
    items = _items(tables)
    names = sorted({*_tags(items), *(tag for group in tables.groups for tag in group.clash.sure | group.clash.unsure)})
    things = embedder.encode([item.name for item in items])
    has = np.array([_row(item.tags, names, UNSURE) for item in items], np.float32)
    return Knowledge(
        groups=_groups(tables, embedder),
        rules=np.array([*(_row(one.clash, names, MAYBE) for one in tables.groups), [0.0] * len(names)], np.float32),
        things=things,
        has=has,
        tags=np.stack([_curve(things, has[:, n] == 1) for n in range(len(names))]),
        offers=_offers(tables, embedder, seed),
        embedder=embedder.name,
        threshold=0.5,
        chosen_on="nothing yet",
    )


def _items(tables: Tables) -> list[Item]:
    """Things by name: those of the tables, and single ingredients."""
    known = tables.ingredients
    ingredients = (Item(name, "food", known.tags.get(name, Tags(frozenset()))) for name in known.names)
    return [*tables.items, *tables.free, *ingredients]


def _tags(items: Sequence[Item]) -> set[str]:
    return {tag for item in items for tag in item.tags.sure | item.tags.unsure}


def _row(tags: Tags, names: Sequence[str], unsure: float) -> list[float]:
    return [1.0 if name in tags.sure else unsure if name in tags.unsure else 0.0 for name in names]


def _groups(tables: Tables, embedder: Embedder) -> NDArray[np.float32]:
    """Weights (G + 1, d + 1) that tell the groups of facts apart, the last one of facts that rule nothing out."""
    told = [(wording, n) for n, group in enumerate(tables.groups) for wording in group.wordings]
    none = [*(text for group in tables.groups for text in group.opposite), *tables.harmless]
    told += [(text, len(tables.groups)) for text in none]
    found = LogisticRegression(C=30, max_iter=300).fit(
        embedder.encode([text for text, _ in told]), [group for _, group in told]
    )
    return _weights(found)


def _curve(vectors: NDArray[np.float32], labels: NDArray[np.bool_]) -> NDArray[np.float32]:
    if labels.sum() < ENOUGH:
        return np.zeros(vectors.shape[1] + 1, np.float32)
    found = LogisticRegression(C=10, max_iter=300).fit(vectors, labels)
    [weights] = _weights(found)
    return np.asarray(weights)


def _offers(tables: Tables, embedder: Embedder, seed: int) -> NDArray[np.float32]:
    """Weights (d + 1,) that tell texts which offer something from those that warn of it, or only tell."""
    random = Random(seed)  # noqa: S311 - training data, not a secret
    texts: list[tuple[str, bool]] = []
    for kind, frames in tables.frames.items():
        some = [item for item in tables.items if item.kind == kind]
        offering = [(frame, True) for frame in (*frames.offers, *frames.lists)]
        for frame, offers in (*offering, *((frame, False) for frame in (*frames.refusals, *frames.told))):
            texts += [(fill(frame, *random.sample(some, 3)), offers) for _ in range(FILLED)]
    texts += [(item.name, True) for item in tables.offers] + [(text, False) for text in tables.idle]
    found = LogisticRegression(C=10, max_iter=500, class_weight="balanced").fit(
        embedder.encode([text for text, _ in texts]), [offers for _, offers in texts]
    )
    [weights] = _weights(found)
    return np.asarray(weights)


def _weights(found: LogisticRegression) -> NDArray[np.float32]:
    """Coefficients a row, with the intercept behind them."""
    weights: NDArray[np.float32] = np.column_stack([found.coef_, found.intercept_]).astype(np.float32)
    return weights


def _threshold(dev: Sequence[Pair], scores: Sequence[float]) -> float:
    """The lowest with few enough false alarms."""
    calm = [score for pair, score in zip(dev, scores, strict=True) if not pair.clash]
    return float(np.quantile(calm, 1 - FALSE_ALARMS))


def _scores(judge: Suitability, pairs: Sequence[Pair]) -> list[float]:
    return [judge.clashes([pair.fact], [pair.text], Event())[0][0] for pair in pairs]


def _measured(judge: Suitability, pairs: Sequence[Pair], threshold: float) -> dict[str, float]:
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    found = _scores(judge, pairs)
    said, clash = [one >= threshold for one in found], [pair.clash for pair in pairs]
    hits = sum(s and c for s, c in zip(said, clash, strict=True))
    return {
        "pairs": len(pairs),
        "auc": float(roc_auc_score(clash, found)),
        "precision": hits / max(sum(said), 1),
        "recall": hits / sum(clash),
        "false_alarms": (sum(said) - hits) / (len(pairs) - sum(clash)),
    }
