"""Measures the ranking of facts against people's labels, on the topics of TREC iKAT.

Topics are those that `assistant.ikat.topics` reads; qrels name a turn `<number>_<turn_id>` and a fact by its number.
Each turn is given the canonical history. The ranking is measured by nDCG@3, the set of used facts by precision, recall
and F1 (the track's measure since 2024), both as means over turns, and beside a baseline, turn by turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ir_measures import RR, P, R, SetF, SetP, SetR, nDCG
from pandas import DataFrame

from assistant.errors import DataError
from assistant.evaluation.ranking import scores
from assistant.experiment.datasets import read_qrels
from assistant.experiment.measures import differences, means
from assistant.experiment.options import Sample
from assistant.ikat import topics
from assistant.protocols import Embedder
from assistant.settings import FactSettings
from assistant.types import Exchange, Fact, RankedFact
from ptkb.rank import rank, ranked_by

Qrels = dict[str, dict[str, int]]
RANKING_MEASURES = (nDCG @ 3, P @ 3, R @ 3, RR)
SET_MEASURES = (SetP, SetR, SetF)


@dataclass(frozen=True, slots=True)
class PtkbTurn:
    """An utterance with its canonical history and the user's facts; `relevant` are those that the topic file names."""

    id: str
    utterance: str
    history: tuple[Exchange, ...]
    facts: tuple[Fact, ...]
    relevant: tuple[str, ...]


def read_topics(path: Path) -> list[PtkbTurn]:
    """Every turn of every topic, with the utterances and canonical responses before it.

    Raises:
        DataError: the file can't be read, or a topic or turn lacks something; the message names both.
    """
    return [turn for topic in topics.read_topics(path).topics for turn in _topic_turns(topic)]


def labelled_turns(turns: Sequence[PtkbTurn], qrels: Path | None) -> tuple[list[PtkbTurn], Qrels]:
    """The turns that have labels, with them: from the qrels, or else from the topics themselves.

    Raises:
        DataError: the qrels name a turn or a fact that the topics don't have.
    """
    if qrels is None:
        labels: Qrels = {turn.id: dict.fromkeys(turn.relevant, 1) for turn in turns if turn.relevant}
    else:
        labels = read_qrels(qrels)
        _check(qrels.name, labels, {turn.id: {fact.id for fact in turn.facts} for turn in turns})
    return [turn for turn in turns if turn.id in labels], labels


def measure(
    turns: Sequence[PtkbTurn],
    qrels: Qrels,
    embedder: Embedder,
    knobs: FactSettings,
    seed: int,
    seen_ids: Collection[str] = (),
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The measures with their 95 % bootstrap intervals over turns, and a row for each turn.

    "baseline" has those of `rank_by_history`, "difference" what the ranking is better by, turn by turn. Where some
    turns are among `seen_ids`, because settings were chosen on their labels, "unseen" has the same of the others alone.
    """
    ranked = {
        turn.id: rank(
            turn.facts,
            turn.utterance,
            turn.history,
            embedder,
            knobs.threshold,
            knobs.max_facts,
            knobs.max_chars_to_tell_all,
        )
        for turn in turns
    }
    baseline = {turn.id: rank_by_history(turn, embedder, knobs) for turn in turns}
    ours, theirs = _measured(qrels, ranked), _measured(qrels, baseline)
    summary = {
        "threshold": knobs.threshold,
        "max_facts": knobs.max_facts,
        **_summary([t.id for t in turns], ours, theirs, seed),
    }
    unseen = [turn.id for turn in turns if turn.id not in seen_ids]
    if unseen and len(unseen) < len(turns):
        summary["unseen"] = _summary(unseen, ours, theirs, seed)
    return summary, [
        {
            "id": turn.id,
            "utterance": turn.utterance,
            "facts": [asdict(fact) for fact in ranked[turn.id]],
            **ours.loc[turn.id],
            "baseline": dict(theirs.loc[turn.id]),
        }
        for turn in turns
    ]


def rank_by_history(turn: PtkbTurn, embedder: Embedder, knobs: FactSettings) -> tuple[RankedFact, ...]:
    """The baseline: the mean of a fact's cosines to the utterance and to the whole history as one text.

    A first utterance has no history, and counts alone. The newest exchange comes first, since an embedder reads the
    beginning of a long text only.
    """
    history_text = " ".join(
        text for exchange in reversed(turn.history) for text in (exchange.utterance, exchange.reply) if text
    )
    fact_vectors = embedder.encode([fact.text for fact in turn.facts])
    text_vectors = embedder.encode([turn.utterance, history_text] if history_text else [turn.utterance])
    return ranked_by((fact_vectors @ text_vectors.T).mean(axis=1), turn.facts, knobs.threshold, knobs.max_facts)


def sample_turns(turns: Sequence[PtkbTurn], sample: Sample) -> list[PtkbTurn]:
    """A sample of the turns, in the topics' order.

    Raises:
        DataError: there are none.
    """
    if not turns:
        raise DataError("No turn of the topics has a label; give the qrels that belong to them.")
    sampled_ids = {turn.id for turn in sample.draw(turns)}
    return [turn for turn in turns if turn.id in sampled_ids]


def _topic_turns(topic: topics.Topic) -> Iterator[PtkbTurn]:
    history: tuple[Exchange, ...] = ()
    for turn in topic.turns:
        yield PtkbTurn(turn.id, turn.utterance, history, topic.facts, turn.relevant)
        history = (*history, Exchange(turn.utterance, turn.utterance, turn.response))


def _check(file: str, qrels: Qrels, fact_ids_by_turn: Mapping[str, set[str]]) -> None:
    for turn, labels in qrels.items():
        if turn not in fact_ids_by_turn:
            raise DataError(
                f"{file} judges the turn '{turn}', which the topics lack; give the topics that belong to it."
            )
        unknown = set(labels) - fact_ids_by_turn[turn]
        if unknown:
            raise DataError(f"{file} judges fact '{min(unknown)}' in turn '{turn}', whose ptkb lacks it; mend it.")


def _measured(qrels: Qrels, ranked: Mapping[str, Sequence[RankedFact]]) -> DataFrame:
    """Every measure by turn: of the ranking, and of the set that is used; nothing given counts as 0."""
    ranked_ids = {turn: [fact.id for fact in facts] for turn, facts in ranked.items()}
    used_ids = {turn: [fact.id for fact in facts if fact.used] for turn, facts in ranked.items()}
    return scores(ranked_ids, qrels, RANKING_MEASURES).join(scores(used_ids, qrels, SET_MEASURES))


def _summary(turns: Sequence[str], ours: DataFrame, theirs: DataFrame, seed: int) -> dict[str, Any]:
    mine, baseline = ours.loc[turns], theirs.loc[turns]
    return {
        "turns": len(turns),
        "measures": means(mine, seed),
        "baseline": means(baseline, seed),
        "difference": differences(mine, baseline, seed),
    }
