"""Trains the support judge on pairs of the recipe, and fits its curve and thresholds on held-out articles."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from transformers import AutoTokenizer

from assistant.errors import DataError, ModelError, disk_errors_as
from assistant.evaluation.support import Pair, read_pairs
from assistant.experiment.datasets import sample
from assistant.experiment.runs import jsonl
from assistant.judges.pair_model import CURVE, Curve
from assistant.judges.support.trained import Support
from assistant.protocols import Progress
from assistant.training.loop import MODEL
from assistant.training.support.entailment import FOLDER as ENTAILMENT
from assistant.training.support.entailment import read_entailment
from assistant.training.support.pairs import FALSE, TRUE, Material, Split, make, near_misses, read
from assistant.training.support.quoted import pairs as quoted_pairs
from assistant.training.support.quoted import quoted
from assistant.training.support.spans import read_spans
from assistant.training.support.written import NAMES, written
from assistant.training.support.written import pairs as written_pairs
from assistant.training.trainer import Labelled, PairTrainer, Plan
from assistant.types import Claim, Passage

PAIRS, MISSES = "pairs.json", "near_misses.jsonl"
SPANS = Path("wice", "non_supported_tokens_train.jsonl.gz")
# Development pairs that stages of the training are compared by, at most so many of the recipe and so many of those that
# were written for it, and pairs of the recipe that the curve is fitted on.
WATCHED, FITTED = 500, 2000
_STEPS = 200
# The share of all pairs that those of entailment sets are at most.
ENTAILED = 0.15


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is learned: so many pairs in all, of which those written for it are a share of `own` at most.

    Each of these is learned so many `times`; all others once.
    """

    count: int
    own: float = 1 / 3
    times: int = 3


def train(
    folder: Path, plan: Plan, data: Path, lesson: Lesson, progress: Progress, hand: Path | None = None
) -> dict[str, Any]:
    """Train in the folder, and write the curve beside the best model; what it came to.

    `hand` holds pairs labelled by hand, as `evaluate support` reads them: the threshold is chosen on their split "dev"
    as well.

    Besides the pairs that were written for it, those of entailment sets, where the data has such, are up to 15 %; the
    others are the recipe's. A base that is larger learns low-rank changes to it (`plan.rank`, `plan.adapter`). The
    best model is told by development pairs of the recipe and of those written for it.

    Raises:
        DataError: the folder or the data can't be used, or the folder holds a training by another plan.
        ModelError: the base can't be loaded.
    """

    def make_pairs() -> dict[str, list[Labelled]]:
        learned = _enough(read(data, "train"), plan.seed, lesson.count)
        return {"train": learned, "dev": make(read(data, "dev"), plan.seed + 1)}

    made, count = kept(folder, plan.seed, make_pairs), lesson.count
    own = lesson.times * whole(_own("train", plan.seed), plan)
    own = sample(own, min(len(own), int(count * lesson.own)), plan.seed)
    entailed = whole(read_entailment(data / ENTAILMENT, plan.seed), plan)
    entailed = sample(entailed, min(len(entailed), int(count * ENTAILED)), plan.seed)
    others = sample(whole(made["train"], plan), count - len(own) - len(entailed), plan.seed)
    pairs = own + entailed + others
    dev = sample(made["dev"], FITTED, plan.seed)
    own_dev = whole(_own("dev", plan.seed), plan)
    watched = whole(dev, plan)[:WATCHED] + sample(own_dev, min(len(own_dev), WATCHED), plan.seed)
    watched = [replace(one, label=float(one.label == TRUE)) for one in watched]
    stages = PairTrainer(folder, plan, pairs, watched).run(progress)
    base = Path(plan.base) if plan.rank or plan.adapter else None
    curve = fit_in(folder / MODEL, dev, plan.seed, _chosen_on(data, hand, plan.seed), base)
    return {
        "pairs": len(pairs),
        "written for it": len(own),
        "stages": [asdict(stage) for stage in stages],
        "curve": asdict(curve),
        "auc of claims alone": shortcut(pairs, dev),
    }


def _own(split: Split, seed: int) -> list[Labelled]:
    """The pairs of a split that were written for it."""
    return written_pairs(written(split), seed) + quoted_pairs(quoted(split), seed)


def _enough(material: Material, seed: int, count: int) -> list[Labelled]:
    """So many pairs: all that a seed makes of the material, and as many more seeds as it takes, until one adds none."""
    found: dict[Labelled, None] = {}
    for n in itertools.count(seed):
        before = len(found)
        found |= dict.fromkeys(make(material, n))
        if len(found) >= count or len(found) == before:
            return list(found)
    return list(found)


def whole(pairs: Sequence[Labelled], plan: Plan) -> list[Labelled]:
    """The pairs that can be read whole: what is cut off may be the very sentence that is claimed.

    Raises:
        ModelError: the base has no tokenizer.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(plan.base, local_files_only=True)
    except (OSError, ValueError) as error:
        raise ModelError(f"{plan.base} holds no encoder that can be trained ({error}); give another.") from error
    tokenizer.model_max_length = sys.maxsize  # counting longer texts is meant, and no reason to warn
    found = tokenizer([one.first for one in pairs], [one.second for one in pairs])["input_ids"] if pairs else []
    return [one for one, tokens in zip(pairs, found, strict=True) if len(tokens) <= plan.length]


def hold_out(folder: Path, data: Path, seed: int) -> Path:
    """Write the near misses of the test articles into the folder, as `evaluate support` reads them.

    Raises:
        DataError: the data can't be used, or the folder not be written to.
    """
    rows = near_misses(read(data, "test"), seed)
    with disk_errors_as(DataError, f"{folder} can't be written to"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MISSES).write_text(jsonl(rows), encoding="utf-8")
    return folder / MISSES


def fit_in(
    model: Path, dev: Sequence[Labelled], seed: int, sets: Mapping[str, Sequence[Pair]], base: Path | None = None
) -> Curve:
    """Fit the curve of the model in a folder on development pairs and its threshold on `sets`; write both beside it.

    With a `base`, the folder holds what is added to this encoder.
    """
    Curve(1.0, 0.0, 0.5, "nothing yet", 0).save(model / CURVE)
    judge = Support(model, base)
    found = judge.probabilities([_claim(one) for one in dev], Event())
    inside = np.clip(found, 1e-9, 1 - 1e-9)
    fit([one.label for one in dev], np.log(inside / (1 - inside)), seed).save(model / CURVE)
    curve = choose(Support(model, base), Curve.load(model / CURVE), sets)
    curve.save(model / CURVE)
    return curve


def choose(judge: Support, curve: Curve, sets: Mapping[str, Sequence[Pair]]) -> Curve:
    """The curve with the threshold that has the best balanced accuracy over the sets, each of which counts the same.

    What code vetoes is unsupported at any threshold.
    """
    judged = []
    for pairs in sets.values():
        verdicts = judge.judge([Claim(one.claim, (one.passage,), one.question) for one in pairs], Event())
        found = np.array([0.0 if one.veto else one.probability for one in verdicts])
        judged.append((np.array([one.supported for one in pairs]), found))
    threshold = _best(judged)
    about = " and ".join(f"{len(pairs):,} {name}" for name, pairs in sets.items())
    return replace(
        curve,
        threshold=threshold,
        partly=min(curve.partly, threshold / 2),
        chosen_on=f"curve: {curve.chosen_on}; threshold: {about}",
    )


def _chosen_on(data: Path, hand: Path | None, seed: int) -> dict[str, list[Pair]]:
    rows = near_misses(read(data, "dev"), seed)
    sets = {"questions of the development articles": [Pair.model_validate(row) for row in rows]}
    own = [
        Pair(claim=claim, question=asked, title=one.title, evidence=one.text, label=NAMES[label])
        for one in written("dev")
        for label, asked, claim, _ in one.claims
    ]
    sets["claims that were written for it"] = own
    if (spans := data / SPANS).exists():
        sets["claims with words that their evidence lacks"] = read_spans(spans)
    return sets | ({"pairs labelled by hand": read_pairs(hand, "dev")} if hand else {})


def _claim(pair: Labelled) -> Claim:
    """A pair as the judge reads it in use."""
    title, _, text = pair.second.partition(": ")
    return Claim(pair.first, (Passage("", title, text) if text else Passage("", "", title),))


def fit(labels: Sequence[float], logits: Sequence[float], seed: int) -> Curve:
    """Platt's curve, and the thresholds with the best balanced accuracy: of true pairs, and of those not false."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - takes a second to import

    x, y = np.asarray(logits, dtype=np.float64), np.asarray(labels)
    found = LogisticRegression(C=1e4).fit(x[:, None], y == TRUE)
    plain = Curve(float(found.coef_[0, 0]), float(found.intercept_[0]), 0.5, "", len(x))
    probabilities = np.array([plain.probability(logit) for logit in x])
    threshold, partly = _best([(y == TRUE, probabilities)]), _best([(y > FALSE, probabilities)])
    about = (
        f"{len(x):,} development pairs of the recipe, of other articles and questions than were trained on, seed {seed}"
    )
    return Curve(plain.slope, plain.intercept, threshold, about, len(x), partly=min(partly, threshold))


def _best(sets: Sequence[tuple[Any, Any]]) -> float:
    """The threshold with the best mean balanced accuracy on sets of labels and probabilities; the middle of equals."""
    steps = np.unique(np.concatenate([np.quantile(found, np.linspace(0, 1, _STEPS)) for _, found in sets]))
    worth = [np.mean([_balanced(labels, found >= at) for labels, found in sets]) for at in steps]
    return float(np.median(steps[np.isclose(worth, max(worth))]))


def _balanced(labels: Any, said: Any) -> float:
    return float((np.mean(said[labels]) + np.mean(~said[~labels])) / 2)


def shortcut(pairs: Sequence[Labelled], dev: Sequence[Labelled]) -> float:
    """The AUC on the development pairs of the words of claims alone: what can be told without any evidence."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    model = LogisticRegression(max_iter=1000).fit(
        words.fit_transform([one.first for one in pairs]), [one.label == TRUE for one in pairs]
    )
    said = model.predict_proba(words.transform([one.first for one in dev]))[:, 1]
    return float(roc_auc_score([one.label == TRUE for one in dev], said))


def kept(folder: Path, seed: int, make: Callable[[], Mapping[str, Sequence[Labelled]]]) -> dict[str, list[Labelled]]:
    """The pairs that `make` makes, "train" and "dev", made once and kept in the folder, since that takes minutes.

    Raises:
        DataError: they can't be written, are broken, or were made with another seed.
    """
    path = folder / PAIRS
    if not path.exists():
        made = {name: [asdict(one) for one in pairs] for name, pairs in make().items()}
        with disk_errors_as(DataError, f"{folder} can't be written to"):
            folder.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".partial")
            partial.write_text(json.dumps({"seed": seed, **made}))
            partial.replace(path)
    try:
        found = json.loads(path.read_text())
        if found["seed"] != seed:
            raise DataError(f"{path} was made with the seed {found['seed']}, not {seed}; choose another folder.")
        return {name: [Labelled(**one) for one in found[name]] for name in ("train", "dev")}
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is broken; remove it to have the pairs made again.") from error
