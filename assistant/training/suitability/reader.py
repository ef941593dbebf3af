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
from assistant.training.suitability.pairs import make
from assistant.training.suitability.questions import lend
from assistant.training.suitability.replies import make_replies
from assistant.training.suitability.tables import load
from assistant.training.suitability.tellings import make_tellings
from assistant.training.suitability.written import ASKED, Written, written
from assistant.training.trainer import Labelled, PairTrainer, Plan

# The share of pairs without a clash that may count as one, near misses many of them; and shares of the reader.
FALSE_ALARMS = 0.06
TIE = 0.002  # of the mean AUC, a tenth of what its intervals span
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
NOTHING_YET = Blend(0.5, 0.5, 0.5, "nothing yet")


@dataclass(frozen=True, slots=True)
class Lesson:
    """How many pairs of each recipe are learned, and how often each written one, without a question and with one."""

    tables: int = 12_000
    replies: int = 9_000
    tellings: int = 9_000
    times: int = 3
    asked: int = 3

    def pairs(self, embedder: Embedder, seed: int) -> list[Labelled]:
        """All of them, in an order drawn by the seed; where questions are learned, some are lent one."""
        random = Random(seed)  # noqa: S311 - training data, not a secret
        known, asked = load("train", seed), written("train", ASKED)
        made = [
            *make(known, self.tables, seed),
            *make_replies(known, self.replies, seed),
            *make_tellings(known, self.tellings, seed),
        ]
        plain = [Written(one.fact, one.text, one.clash, one.recipe) for one in made] + [*written("train") * self.times]
        lent = lend(plain, asked, embedder, random) if self.asked else plain
        pairs = [_labelled(one) for one in (*lent, *asked * self.asked)]
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
    apart = [_labelled(one) for one in (*written("dev"), *written("dev", ASKED))]
    stages = PairTrainer(folder, plan, pairs, apart).run(progress)
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
    judge = Both(ByTags(knowledge, embedder), Reader(folder, base), replace(NOTHING_YET, questions=asked))
    apart: dict[str, Sequence[Written | Pair]] = {"that were written and kept apart": written("dev")}
    if asked:
        apart["that were written with a question and kept apart"] = written("dev", ASKED)
    blend = fit(judge, {**apart, **more}, things)
    blend.save(folder / BLEND)
    return blend


def _labelled(pair: Written) -> Labelled:
    return Labelled(pair.fact, as_reply(pair.text, pair.question), float(pair.clash))


def fit(judge: Both, sets: Mapping[str, Sequence[Written | Pair]], things: Sequence[Pair] = ()) -> Blend:
    """The weights that rank best, and the threshold with few enough false alarms, each by the mean over the sets.

    Texts of few words are weighed by what ranks the `things` best; without any that clash, or others, as all texts are.
    """
    judged = {name: _judged(judge, pairs) for name, pairs in sets.items()}
    reader = _best(list(judged.values()))
    few = [one for one in things if has_few_words(one.text)]
    names = _best([_judged(judge, few)]) if len({one.clash for one in few}) == 2 else reader
    blend = Blend(reader, names, 0.5, "", questions=judge.blend.questions)

    def blended_of(pairs: Sequence[Written | Pair], evidence: Any) -> Any:
        return np.array([blend(one.text, found) for one, found in zip(pairs, evidence, strict=True)])

    blended = [(blended_of(sets[name], evidence), clash) for name, (evidence, clash) in judged.items()]
    threshold = _strict(blended)
    recall = float(np.mean([np.mean(likely[clash] >= threshold) for likely, clash in blended]))
    about = ", ".join(f"{len(pairs)} pairs {name}" for name, pairs in sets.items())
    told = f"{about}: of the clashes {recall:.0%} are found where {FALSE_ALARMS:.0%} of the others count as one"
    chosen_on = f"{told}; of few words: {len(few)} things" if few else told
    return replace(blend, threshold=threshold, chosen_on=chosen_on)


def _judged(judge: Both, pairs: Sequence[Written | Pair]) -> tuple[Any, Any]:
    """What tags and reader give to each pair, a row each, and which pairs clash."""
    together: dict[tuple[str, str], list[int]] = {}
    for n, one in enumerate(pairs):
        together.setdefault((one.fact, one.question), []).append(n)
    found = np.zeros((len(pairs), 2))
    for (fact, question), places in together.items():
        evidence = judge.evidence([fact], [pairs[n].text for n in places], Event(), question)
        found[places] = [evidence[0, column] for column in range(len(places))]
    return found, np.array([bool(one.clash) for one in pairs])


def _best(judged: Sequence[tuple[Any, Any]]) -> float:
    """The lowest share of the reader among those that rank best, or as good as: what tags know hangs on no wording."""
    ranked = {share: _ranked([(_likely(found, share), clash) for found, clash in judged]) for share in SHARES}
    return next(share for share in SHARES if ranked[share] >= max(ranked.values()) - TIE)


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
