"""Trains the suitability judge on pairs of the recipe, and fits its curve and threshold on held-out ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from assistant.judges._model import Curve, PairModel
from assistant.training.suitability.pairs import Pair, make
from assistant.training.suitability.tables import load
from assistant.training.trainer import MODEL, Labelled, PairTrainer, Plan
from assistant.types import Progress

# Development and test pairs: of known groups of facts in new wordings, and of groups that training lacks.
KNOWN, NEW = 1500, 1000
# The share of pairs without a clash that may be taken for one, on the development pairs.
FALSE_ALARMS = 0.02
# Recipes whose texts name what clashes without offering it, or whose facts are alike: harder than what is read daily.
HARD = frozenset({"refused", "told", "opposite", "free from", "ingredient refused", "ingredient opposite"})


def held_out(part: Any, seed: int) -> dict[str, list[Pair]]:
    """The pairs of "dev" or "test": `known` groups of facts in new wordings, and `new` groups; all items are new."""
    known, new = make(load(part, seed, known=True), KNOWN, seed + 1), make(load(part, seed), NEW, seed + 2)
    return {"known": known, "new": new}


def train(folder: Path, plan: Plan, count: int, progress: Progress) -> dict[str, Any]:
    """Train in the folder, and write the curve beside the best model; what it came to.

    Raises:
        DataError: the folder can't be used, or holds a training by another plan.
        ModelError: the base can't be loaded.
    """
    pairs = make(load("train", plan.seed), count, plan.seed)
    dev = [pair for some in held_out("dev", plan.seed).values() for pair in some]
    stages = PairTrainer(folder, plan, _labelled(pairs), _labelled(dev)).run(progress)
    model = folder / MODEL
    Curve(1.0, 0.0, 0.5, "nothing yet", 0).save(model)
    logits = _logits(PairModel(model), dev)
    curve = fit(dev, logits, plan.seed)
    curve.save(model)
    return {
        "stages": [asdict(stage) for stage in stages],
        "curve": asdict(curve),
        "test": {name: _measured(model, some) for name, some in held_out("test", plan.seed).items()},
    }


def fit(dev: Sequence[Pair], logits: Sequence[float], seed: int) -> Curve:
    """Platt's curve on the development pairs, and the lowest threshold with few enough false alarms among them."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - takes a second to import

    x = np.asarray(logits, dtype=np.float64)
    found = LogisticRegression(C=1e4).fit(x[:, None], [pair.clash for pair in dev])
    plain = Curve(float(found.coef_[0, 0]), float(found.intercept_[0]), 0.5, "", len(dev))
    calm = [
        plain.probability(logit)
        for pair, logit in zip(dev, logits, strict=True)
        if not pair.clash and pair.recipe not in HARD
    ]
    threshold = float(np.quantile(calm, 1 - FALSE_ALARMS))
    about = (
        f"the development pairs of the recipe, seed {seed}; false alarms {FALSE_ALARMS:.0%} where nothing is refused"
    )
    return Curve(plain.slope, plain.intercept, threshold, about, len(dev))


def _measured(folder: Path, pairs: Sequence[Pair]) -> dict[str, float]:
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    model = PairModel(folder)
    found = model.probabilities([(pair.fact, pair.text) for pair in pairs], Event())
    said = [one >= model.curve.threshold for one in found]
    clash = [pair.clash for pair in pairs]
    hits = sum(s and c for s, c in zip(said, clash, strict=True))
    return {
        "pairs": len(pairs),
        "auc": float(roc_auc_score(clash, found)),
        "precision": hits / max(sum(said), 1),
        "recall": hits / sum(clash),
        "false_alarms": (sum(said) - hits) / (len(pairs) - sum(clash)),
    }


def _logits(model: PairModel, pairs: Sequence[Pair]) -> list[float]:
    """The logits of pairs; the curve of the model has to be the plain one."""
    found = np.clip(model.probabilities([(pair.fact, pair.text) for pair in pairs], Event()), 1e-9, 1 - 1e-9)
    return [float(one) for one in np.log(found / (1 - found))]


def _labelled(pairs: Sequence[Pair]) -> list[Labelled]:
    return [Labelled(pair.fact, pair.text, float(pair.clash)) for pair in pairs]
