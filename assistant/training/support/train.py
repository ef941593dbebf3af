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
from assistant.experiment.datasets import equal_parts, sample
from assistant.experiment.runs import jsonl
from assistant.judges.pair_model import CURVE, Curve
from assistant.judges.support.trained import Support
from assistant.protocols import Progress
from assistant.training.loop import MODEL
from assistant.training.support.entailment import FOLDER as ENTAILMENT
from assistant.training.support.entailment import read_entailment
from assistant.training.support.pairs import (
    FALSE,
    TRUE,
    Material,
    Split,
    fingerprints,
    make_pairs,
    near_misses,
    read_material,
)
from assistant.training.support.quoted import PATHS as QUOTED_PATHS
from assistant.training.support.quoted import pairs as quoted_pairs
from assistant.training.support.quoted import read_quoted
from assistant.training.support.spans import read_spans
from assistant.training.support.written import PAIR_LABELS, REPLY_KIND, read_written
from assistant.training.support.written import PATHS as WRITTEN_PATHS
from assistant.training.support.written import pairs as written_pairs
from assistant.training.trainer import LabelledPair, PairTrainer, Plan
from assistant.types import Claim, Passage

PAIRS, NEAR_MISSES = "pairs.json", "near_misses.jsonl"
SPANS = Path("wice", "non_supported_tokens_train.jsonl.gz")
# Development pairs that stages of the training are compared by, at most so many of the recipe and so many of those that
# were written for it, and pairs of the recipe that the curve is fitted on.
MAX_STAGE_PAIRS, CURVE_PAIRS = 500, 2000
# Pairs of each set, at most, that the threshold is chosen on: long evidence takes a second a pair.
MAX_THRESHOLD_PAIRS = 300
_QUANTILES = 200
# The share of all pairs that those of entailment sets are at most.
MAX_ENTAILMENT_SHARE = 0.15


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is learned: so many pairs in all, of which those written for it are a share of `own_share` at most.

    Each of these is learned `repeats` times; all others once. Each file of claims and each of quoted sentences has an
    equal part in that share, as far as there are so many.
    """

    count: int
    own_share: float = 1 / 3
    repeats: int = 3


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

    def make_splits() -> dict[str, list[LabelledPair]]:
        train_pairs = _enough_pairs(read_material(data, "train"), plan.seed, lesson.count)
        return {"train": train_pairs, "dev": make_pairs(read_material(data, "dev"), plan.seed + 1)}

    count = lesson.count
    claim = {"seed": plan.seed, "material": fingerprints(data), "count": count}
    saved_pairs = load_or_make_pairs(folder, claim, make_splits)
    own_sets = [lesson.repeats * untruncated_pairs(own_pairs, plan) for own_pairs in _own_pair_sets("train", plan.seed)]
    own_pairs = equal_parts(own_sets, int(count * lesson.own_share), plan.seed)
    entailment_pairs = untruncated_pairs(read_entailment(data / ENTAILMENT, plan.seed), plan)
    entailment_pairs = sample(
        entailment_pairs, min(len(entailment_pairs), int(count * MAX_ENTAILMENT_SHARE)), plan.seed
    )
    recipe_pairs = sample(
        untruncated_pairs(saved_pairs["train"], plan), count - len(own_pairs) - len(entailment_pairs), plan.seed
    )
    pairs = own_pairs + entailment_pairs + recipe_pairs
    dev_pairs = sample(saved_pairs["dev"], CURVE_PAIRS, plan.seed)
    own_dev_sets = [untruncated_pairs(own_pairs, plan) for own_pairs in _own_pair_sets("dev", plan.seed)]
    watched_pairs = untruncated_pairs(dev_pairs, plan)[:MAX_STAGE_PAIRS] + equal_parts(
        own_dev_sets, MAX_STAGE_PAIRS, plan.seed
    )
    watched_pairs = [replace(pair, label=float(pair.label == TRUE)) for pair in watched_pairs]
    stages = PairTrainer(folder, plan, pairs, watched_pairs).run(progress)
    base = Path(plan.base) if plan.rank or plan.adapter else None
    curve = fit_and_save_curve(folder / MODEL, dev_pairs, plan.seed, _threshold_sets(data, hand, plan.seed), base)
    return {
        "pairs": len(pairs),
        "written for it": len(own_pairs),
        "stages": [asdict(stage) for stage in stages],
        "curve": asdict(curve),
        "auc of claims alone": claim_only_auc(pairs, dev_pairs),
    }


def _own_pair_sets(split: Split, seed: int) -> list[list[LabelledPair]]:
    """The pairs of a split that were written for it: those of each file of claims and of each of quoted sentences."""
    claims = (written_pairs(read_written(split, [path]), seed) for path in WRITTEN_PATHS)
    quoted = (quoted_pairs(read_quoted(split, [path]), seed) for path in QUOTED_PATHS)
    return [*claims, *quoted]


def _enough_pairs(material: Material, seed: int, count: int) -> list[LabelledPair]:
    """So many pairs: all that a seed makes of the material, and as many more seeds as it takes, until one adds none."""
    pairs: dict[LabelledPair, None] = {}
    for pairs_seed in itertools.count(seed):
        count_before = len(pairs)
        pairs |= dict.fromkeys(make_pairs(material, pairs_seed))
        if len(pairs) >= count or len(pairs) == count_before:
            return list(pairs)
    return list(pairs)


def untruncated_pairs(pairs: Sequence[LabelledPair], plan: Plan) -> list[LabelledPair]:
    """The pairs that can be read whole: what is cut off may be the very sentence that is claimed.

    Raises:
        ModelError: the base has no tokenizer.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(plan.base, local_files_only=True)
    except (OSError, ValueError) as error:
        raise ModelError(f"{plan.base} holds no encoder that can be trained ({error}); give another.") from error
    tokenizer.model_max_length = sys.maxsize  # counting longer texts is meant, and no reason to warn
    token_ids = tokenizer([pair.first for pair in pairs], [pair.second for pair in pairs])["input_ids"] if pairs else []
    return [pair for pair, tokens in zip(pairs, token_ids, strict=True) if len(tokens) <= plan.length]


def write_near_misses(folder: Path, data: Path, seed: int) -> Path:
    """Write the near misses of the test articles into the folder, as `evaluate support` reads them.

    Raises:
        DataError: the data can't be used, or the folder not be written to.
    """
    rows = near_misses(read_material(data, "test"), seed)
    with disk_errors_as(DataError, f"{folder} can't be written to"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NEAR_MISSES).write_text(jsonl(rows), encoding="utf-8")
    return folder / NEAR_MISSES


def fit_and_save_curve(
    model: Path, dev: Sequence[LabelledPair], seed: int, sets: Mapping[str, Sequence[Pair]], base: Path | None = None
) -> Curve:
    """Fit the curve of the model in a folder on development pairs and its threshold on `sets`; write both beside it.

    With a `base`, the folder holds what is added to this encoder.
    """
    Curve(1.0, 0.0, 0.5, "nothing yet", 0).save(model / CURVE)
    judge = Support(model, base)
    probabilities = judge.probabilities([_as_claim(pair) for pair in dev], Event())
    clipped = np.clip(probabilities, 1e-9, 1 - 1e-9)
    fit_curve([pair.label for pair in dev], np.log(clipped / (1 - clipped)), seed).save(model / CURVE)
    curve = choose_threshold(Support(model, base), Curve.load(model / CURVE), sets)
    curve.save(model / CURVE)
    return curve


def choose_threshold(judge: Support, curve: Curve, sets: Mapping[str, Sequence[Pair]]) -> Curve:
    """The curve with the threshold that has the best balanced accuracy over the sets, each of which counts the same.

    What code vetoes is unsupported at any threshold.
    """
    judged_sets = []
    for pairs in sets.values():
        verdicts = judge.judge([Claim(pair.claim, (pair.passage,), pair.question) for pair in pairs], Event())
        probabilities = np.array([0.0 if verdict.veto else verdict.probability for verdict in verdicts])
        judged_sets.append((np.array([pair.supported for pair in pairs]), probabilities))
    threshold = _best_threshold(judged_sets)
    description = " and ".join(f"{len(pairs):,} {name}" for name, pairs in sets.items())
    return replace(
        curve,
        threshold=threshold,
        partly=min(curve.partly, threshold / 2),
        chosen_on=f"curve: {curve.chosen_on}; threshold: {description}",
    )


def _threshold_sets(data: Path, hand: Path | None, seed: int) -> dict[str, list[Pair]]:
    rows = near_misses(read_material(data, "dev"), seed)
    sets = {"questions of the development articles": [Pair.model_validate(row) for row in rows]}
    sets["claims that were written for it"] = _claims_as_pairs(lambda kind: kind != REPLY_KIND)
    sets["sentences that the default model replied"] = _claims_as_pairs(lambda kind: kind == REPLY_KIND)
    if (spans_path := data / SPANS).exists():
        sets["claims with words that their evidence lacks"] = read_spans(spans_path)
    sets |= {"pairs labelled by hand": read_pairs(hand, "dev")} if hand else {}
    return {name: sample(pairs, min(len(pairs), MAX_THRESHOLD_PAIRS), seed) for name, pairs in sets.items()}


def _claims_as_pairs(is_kind: Callable[[str], bool]) -> list[Pair]:
    """The development claims of some kinds, as `evaluate support` reads pairs."""
    return [
        Pair(claim=claim, question=question, title=passage.title, evidence=passage.text, label=PAIR_LABELS[label])
        for passage in read_written("dev")
        for label, question, claim, kind in passage.claims
        if is_kind(kind)
    ]


def _as_claim(pair: LabelledPair) -> Claim:
    """A pair as the judge reads it in use."""
    title, _, text = pair.second.partition(": ")
    return Claim(pair.first, (Passage("", title, text) if text else Passage("", "", title),))


def fit_curve(labels: Sequence[float], logits: Sequence[float], seed: int) -> Curve:
    """Platt's curve, and the thresholds with the best balanced accuracy: of true pairs, and of those not false."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - takes a second to import

    x, y = np.asarray(logits, dtype=np.float64), np.asarray(labels)
    regression = LogisticRegression(C=1e4).fit(x[:, None], y == TRUE)
    platt_curve = Curve(float(regression.coef_[0, 0]), float(regression.intercept_[0]), 0.5, "", len(x))
    probabilities = np.array([platt_curve.probability(logit) for logit in x])
    threshold, partly = _best_threshold([(y == TRUE, probabilities)]), _best_threshold([(y > FALSE, probabilities)])
    description = (
        f"{len(x):,} development pairs of the recipe, of other articles and questions than were trained on, seed {seed}"
    )
    return Curve(
        platt_curve.slope, platt_curve.intercept, threshold, description, len(x), partly=min(partly, threshold)
    )


def _best_threshold(sets: Sequence[tuple[Any, Any]]) -> float:
    """The threshold with the best mean balanced accuracy on sets of labels and probabilities; the middle of equals."""
    thresholds = np.unique(
        np.concatenate([np.quantile(probabilities, np.linspace(0, 1, _QUANTILES)) for _, probabilities in sets])
    )
    accuracies = [
        np.mean([_balanced_accuracy(labels, probabilities >= threshold) for labels, probabilities in sets])
        for threshold in thresholds
    ]
    return float(np.median(thresholds[np.isclose(accuracies, max(accuracies))]))


def _balanced_accuracy(labels: Any, predictions: Any) -> float:
    return float((np.mean(predictions[labels]) + np.mean(~predictions[~labels])) / 2)


def claim_only_auc(pairs: Sequence[LabelledPair], dev: Sequence[LabelledPair]) -> float:
    """The AUC on the development pairs of the words of claims alone: what can be told without any evidence."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    model = LogisticRegression(max_iter=1000).fit(
        vectorizer.fit_transform([pair.first for pair in pairs]), [pair.label == TRUE for pair in pairs]
    )
    probabilities = model.predict_proba(vectorizer.transform([pair.first for pair in dev]))[:, 1]
    return float(roc_auc_score([pair.label == TRUE for pair in dev], probabilities))


def load_or_make_pairs(
    folder: Path, claim: Mapping[str, Any], make_splits: Callable[[], Mapping[str, Sequence[LabelledPair]]]
) -> dict[str, list[LabelledPair]]:
    """The pairs of `make_splits`, "train" and "dev": made once and kept in the folder, since that takes minutes.

    `claim` is all that determines them.

    Raises:
        DataError: they can't be written, are broken, or were made with another claim.
    """
    path = folder / PAIRS
    if not path.exists():
        rows = {name: [asdict(pair) for pair in pairs] for name, pairs in make_splits().items()}
        with disk_errors_as(DataError, f"{folder} can't be written to"):
            folder.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".partial")
            partial.write_text(json.dumps({**claim, **rows}))
            partial.replace(path)
    try:
        stored = json.loads(path.read_text())
        if others := [name for name, value in claim.items() if stored.get(name) != value]:
            raise DataError(f"{path} was made with another {' and '.join(others)}; choose another folder.")
        return {name: [LabelledPair(**row) for row in stored[name]] for name in ("train", "dev")}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is broken; remove it to have the pairs made again.") from error
