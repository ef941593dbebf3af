"""Trains the reader of the suitability judge: a cross-encoder that reads fact and text together.

It learns from pairs of three recipes, things as tables and passages name them, as a model's replies do, and sentences
that offer nothing, and from pairs that were written one by one: of a fact and a text (`written.jsonl`), and of a fact,
a question and what is told in reply to it (`asked.jsonl`). Some of those without a question are lent one. A sixth of
the written facts, with all their pairs, is kept apart: stages of the training are compared by it. How tags and reader
are weighed, and the threshold, are chosen on it and on other development pairs, each set counting the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import numpy as np

from assistant.evaluation.suitability import Pair
from assistant.judges.suitability.judge import BLEND, Blend, Both, has_few_words
from assistant.judges.suitability.knowledge import Knowledge
from assistant.judges.suitability.reader import Reader, as_reply
from assistant.judges.suitability.tags import ByTags
from assistant.protocols import Embedder, Progress
from assistant.training.suitability.pairs import make_pairs
from assistant.training.suitability.questions import lend_questions
from assistant.training.suitability.replies import make_replies
from assistant.training.suitability.tables import load_tables
from assistant.training.suitability.tellings import make_tellings
from assistant.training.suitability.written import ASKED_PATH, WrittenPair, read_written
from assistant.training.trainer import LabelledPair, PairTrainer, Plan

# The share of pairs without a clash that may count as one, near misses many of them; and shares of the reader.
MAX_FALSE_ALARMS = 0.06
AUC_TOLERANCE = 0.002  # of the mean AUC, a tenth of what its intervals span
READER_SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
UNFITTED_BLEND = Blend(0.5, 0.5, 0.5, "nothing yet")


@dataclass(frozen=True, slots=True)
class Lesson:
    """How many pairs of each recipe are learned, and how often each written one, without a question and with one."""

    tables: int = 12_000
    replies: int = 9_000
    tellings: int = 9_000
    repeats: int = 3
    asked_repeats: int = 3

    def pairs(self, embedder: Embedder, seed: int) -> list[LabelledPair]:
        """All of them, in an order drawn by the seed; where questions are learned, some are lent one."""
        random = Random(seed)  # noqa: S311 - training data, not a secret
        tables, asked_pairs = load_tables("train", seed), read_written("train", ASKED_PATH)
        recipe_pairs = [
            *make_pairs(tables, self.tables, seed),
            *make_replies(tables, self.replies, seed),
            *make_tellings(tables, self.tellings, seed),
        ]
        plain_pairs = [WrittenPair(pair.fact, pair.text, pair.clash, pair.recipe) for pair in recipe_pairs] + [
            *read_written("train") * self.repeats
        ]
        lent_pairs = lend_questions(plain_pairs, asked_pairs, embedder, random) if self.asked_repeats else plain_pairs
        pairs = [_labelled(pair) for pair in (*lent_pairs, *asked_pairs * self.asked_repeats)]
        random.shuffle(pairs)
        return pairs


def train(folder: Path, plan: Plan, lesson: Lesson, embedder: Embedder, progress: Progress) -> dict[str, Any]:
    """Train in the folder; how many pairs were learned from, and what each stage came to.

    The embedder finds questions to lend to pairs without one.

    Raises:
        DataError: the folder holds a training by another plan.
        ModelError: the base can't be loaded.
    """
    pairs = lesson.pairs(embedder, plan.seed)
    dev_pairs = [_labelled(pair) for pair in (*read_written("dev"), *read_written("dev", ASKED_PATH))]
    stages = PairTrainer(folder, plan, pairs, dev_pairs).run(progress)
    return {"pairs": len(pairs), "stages": [asdict(stage) for stage in stages]}


def weigh(
    folder: Path,
    base: Path | None,
    knowledge: Knowledge,
    embedder: Embedder,
    more: Mapping[str, Sequence[Pair]],
    things: Sequence[Pair] = (),
    *,
    asked: bool = True,
) -> Blend:
    """Weigh the reader in a folder with the tags, and write the blend beside it.

    `base` is the encoder that the folder's reader is added to, if it is; `more` are other development pairs by their
    names, and `things` such pairs whose texts name things. `asked` says whether the reader has learned questions.

    Raises:
        ModelError: the reader can't be loaded, or the tags belong to another embedder.
    """
    judge = Both(ByTags(knowledge, embedder), Reader(folder, base), replace(UNFITTED_BLEND, questions=asked))
    dev_sets: dict[str, Sequence[WrittenPair | Pair]] = {"that were written and kept apart": read_written("dev")}
    if asked:
        dev_sets["that were written with a question and kept apart"] = read_written("dev", ASKED_PATH)
    blend = fit_blend(judge, {**dev_sets, **more}, things)
    blend.save(folder / BLEND)
    return blend


def _labelled(pair: WrittenPair) -> LabelledPair:
    return LabelledPair(pair.fact, as_reply(pair.text, pair.question), float(pair.clash))


def fit_blend(judge: Both, sets: Mapping[str, Sequence[WrittenPair | Pair]], things: Sequence[Pair] = ()) -> Blend:
    """The weights that rank best, and the threshold with few enough false alarms, each by the mean over the sets.

    Texts of few words are weighed by what ranks the `things` best; without any that clash, or others, as all texts are.
    """
    judged_sets = {name: _evidence_and_clashes(judge, pairs) for name, pairs in sets.items()}
    reader_share = _best_share(list(judged_sets.values()))
    short_things = [pair for pair in things if has_few_words(pair.text)]
    names_share = (
        _best_share([_evidence_and_clashes(judge, short_things)])
        if len({pair.clash for pair in short_things}) == 2
        else reader_share
    )
    blend = Blend(reader_share, names_share, 0.5, "", questions=judge.blend.questions)

    def blended_of(pairs: Sequence[WrittenPair | Pair], evidence: Any) -> Any:
        return np.array([blend(pair.text, row) for pair, row in zip(pairs, evidence, strict=True)])

    blended_sets = [(blended_of(sets[name], evidence), clash) for name, (evidence, clash) in judged_sets.items()]
    threshold = _strict_threshold(blended_sets)
    recall = float(np.mean([np.mean(probabilities[clash] >= threshold) for probabilities, clash in blended_sets]))
    set_sizes = ", ".join(f"{len(pairs)} pairs {name}" for name, pairs in sets.items())
    recall_note = (
        f"{set_sizes}: of the clashes {recall:.0%} are found where {MAX_FALSE_ALARMS:.0%} of the others count as one"
    )
    chosen_on = f"{recall_note}; of few words: {len(short_things)} things" if short_things else recall_note
    return replace(blend, threshold=threshold, chosen_on=chosen_on)


def _evidence_and_clashes(judge: Both, pairs: Sequence[WrittenPair | Pair]) -> tuple[Any, Any]:
    """What tags and reader give to each pair, a row each, and which pairs clash."""
    positions_by_question: dict[tuple[str, str], list[int]] = {}
    for n, pair in enumerate(pairs):
        positions_by_question.setdefault((pair.fact, pair.question), []).append(n)
    rows = np.zeros((len(pairs), 2))
    for (fact, question), positions in positions_by_question.items():
        evidence = judge.evidence([fact], [pairs[n].text for n in positions], Event(), question)
        rows[positions] = [evidence[0, column] for column in range(len(positions))]
    return rows, np.array([bool(pair.clash) for pair in pairs])


def _best_share(judged_sets: Sequence[tuple[Any, Any]]) -> float:
    """The lowest share of the reader among those that rank best, or nearly so: what tags know depends on no wording."""
    aucs = {
        share: _mean_auc([(_probabilities(evidence, share), clash) for evidence, clash in judged_sets])
        for share in READER_SHARES
    }
    return next(share for share in READER_SHARES if aucs[share] >= max(aucs.values()) - AUC_TOLERANCE)


def _probabilities(evidence: Any, share: float) -> Any:
    tags, reader = evidence.T
    return 1 / (1 + np.exp(-((1 - share) * tags + share * reader)))


def _mean_auc(sets: Sequence[tuple[Any, Any]]) -> float:
    """The mean AUC."""
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415 - takes a second to import

    return float(np.mean([roc_auc_score(clash, probabilities) for probabilities, clash in sets]))


def _strict_threshold(sets: Sequence[tuple[Any, Any]]) -> float:
    """The lowest threshold with few enough false alarms."""
    thresholds = np.unique(np.concatenate([probabilities for probabilities, _ in sets]))
    strict_thresholds = [
        threshold
        for threshold in thresholds
        if np.mean([np.mean(probabilities[~clash] >= threshold) for probabilities, clash in sets]) <= MAX_FALSE_ALARMS
    ]
    return float(min(strict_thresholds, default=1.0))
