"""Measures the rewriting of follow-ups against people's rewrites, and what it does to retrieval.

Dialogues come as CANARD's (`{dialog_id, turns: [{n, question, rewrite, history_answer}]}`) or as iKAT's topics
(`{collection, number, turns: [{qid, utterance, resolved_utterance, response}]}`), a dialogue a line. The history given
is the canonical one. One row: `{"id", "utterance", "ours", "human"}`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import Any

from ir_measures import RR, Success, nDCG
from sacrebleu.metrics.bleu import BLEU

from assistant.errors import DataError
from assistant.evaluation.ranking import Qrels, scores
from assistant.experiment.datasets import fingerprint, records, sample
from assistant.experiment.gather import side_by_side
from assistant.experiment.measures import exact_match, mean, paired_difference
from assistant.experiment.runs import Row, Run
from assistant.protocols import Parts, Progress, Retriever
from assistant.retrieve.search import sought
from assistant.steps import rewrite
from assistant.text.sentences import words
from assistant.types import Exchange, Turn

VARIANTS = ("utterance", "ours", "searched", "human")
COMPARED = ("utterance", "ours")
RETRIEVAL = (nDCG @ 10, nDCG @ 3, Success @ 1, RR)
# What a field may hold beside text: the number of a dialogue or a turn; null where nobody rewrote or replied.
_NUMBER, _OPTIONAL = (str, int), (str, type(None))


@dataclass(frozen=True, slots=True)
class FollowUp:
    """An utterance that needs its history, and how a person rewrote it."""

    id: str
    utterance: str
    history: tuple[Exchange, ...]
    human: str


def read_follow_ups(path: Path) -> list[FollowUp]:
    """Every utterance of every dialogue but the first, which has nothing to be rewritten from.

    Raises:
        DataError: a line is broken or has none of the two forms; or there is no follow-up at all.
    """
    found = [one for place, record in records(path) for one in _dialogue(place, record)]
    if not found:
        raise DataError(f"{path} holds no follow-ups; give dialogues of at least two turns.")
    return found


def open_run(folder: Path, dialogues: Path, model: str) -> Run[str]:
    """The folder of a run over these dialogues.

    Raises:
        DataError: the folder holds a run over others, or with another model.
    """
    return Run(folder, {"dialogues": fingerprint(dialogues), "model": model}, lambda row: str(row["id"]))


def measure(follow_ups: Sequence[FollowUp], run: Run[str], parts: Parts, progress: Progress, jobs: int = 1) -> None:
    """Rewrite what the run's rows lack, `jobs` follow-ups at a time."""
    parts = side_by_side(parts, jobs)
    rows = [(one.id, lambda one=one: _rewritten(one, parts)) for one in follow_ups]
    run.fill(rows, len(rows), progress, jobs)


def summarise(follow_ups: Sequence[FollowUp], run: Run[str], seed: int) -> dict[str, Any]:
    """ROUGE-1, BLEU and exact match against the human rewrites: of the raw utterance and of our rewrite."""
    rows = [run.rows[one.id] for one in follow_ups]
    return {
        "follow_ups": len(rows),
        "rewritten": sum(row["ours"] != row["utterance"] for row in rows),
        "against_human": {variant: _likeness(rows, variant, seed) for variant in COMPARED},
    }


def retrieval(
    follow_ups: Sequence[FollowUp], run: Run[str], retriever: Retriever, qrels: Qrels, seed: int
) -> dict[str, Any]:
    """What raw utterance, our rewrite and the human one find when searched for; all follow-ups must be judged.

    `searched` is what a turn searches for, the utterance together with our rewrite. Also `gain`, how much better that
    is than the utterance, and `gap_closed`, the share of the way from there to the human rewrite; both of nDCG@10.
    """
    judged = [one.id for one in follow_ups]
    found = {
        variant: scores({one: _search(retriever, _text(run.rows[one], variant)) for one in judged}, qrels, RETRIEVAL)
        for variant in VARIANTS
    }
    means = {
        variant: {name: asdict(mean(values, seed)) for name, values in by_measure.items()}
        for variant, by_measure in found.items()
    }
    raw, _, ours, human = (means[variant]["nDCG@10"]["value"] for variant in VARIANTS)
    gain = paired_difference(found["searched"]["nDCG@10"], found["utterance"]["nDCG@10"], seed)
    return {
        "judged": len(judged),
        "variants": means,
        "gain": asdict(gain),
        "gap_closed": (ours - raw) / (human - raw) if human != raw else None,
    }


def rouge1(written: str, human: str) -> dict[str, float]:
    """Recall and F1 of lower-case words, each counted as often as it occurs in both (ROUGE-1, Lin 2004, section 2)."""
    ours, theirs = Counter(words(written.lower())), Counter(words(human.lower()))
    same, total = (ours & theirs).total(), ours.total() + theirs.total()
    return {"recall": same / max(theirs.total(), 1), "f1": 2 * same / max(total, 1)}


def choose(
    follow_ups: Sequence[FollowUp], limit: int | None, seed: int, judged: Qrels | None, skip: int = 0
) -> list[FollowUp]:
    """A seeded sample of those that a person rewrote; where there are judgements, of the judged follow-ups only.

    Raises:
        DataError: there are none.
    """
    usable = [one for one in follow_ups if one.human and (judged is None or one.id in judged)]
    if not usable:
        raise DataError("No follow-up has both a human rewrite and a judgement; give files that belong together.")
    return sample(usable, limit, seed, skip)


def _rewritten(one: FollowUp, parts: Parts) -> Row:
    *_, turn = rewrite.run(Turn(one.utterance, one.history), parts, Event())
    return {"id": one.id, "utterance": one.utterance, "ours": turn.question, "human": one.human}


def _likeness(rows: Sequence[Row], variant: str, seed: int) -> dict[str, Any]:
    rouges = [rouge1(row[variant], row["human"]) for row in rows]
    bleu = BLEU().corpus_score([row[variant] for row in rows], [[row["human"] for row in rows]])
    return {
        "ROUGE-1 recall": asdict(mean([rouge["recall"] for rouge in rouges], seed)),
        "ROUGE-1 F1": asdict(mean([rouge["f1"] for rouge in rouges], seed)),
        "BLEU": bleu.score,
        "EM": asdict(mean([exact_match(row[variant], [row["human"]]) for row in rows], seed)),
    }


def _text(row: Row, variant: str) -> str:
    if variant != "searched":
        return str(row[variant])
    return sought(Turn(row["utterance"], question=row["ours"], rewritten=row["ours"] != row["utterance"]))


def _search(retriever: Retriever, query: str) -> list[str]:
    return [passage.id for passage in retriever.search(query, 100)]


def _dialogue(place: str, record: Mapping[str, Any]) -> Iterator[FollowUp]:
    read = _canard if "dialog_id" in record else _ikat
    listed = record.get("turns")
    if not isinstance(listed, list) or not all(isinstance(turn, dict) for turn in listed):
        raise _neither(place, "turns")
    turns = [read(place, record, turn) for turn in listed]
    history = tuple(Exchange(utterance, human or utterance, reply) for _, utterance, human, reply in turns)
    for n, (identity, utterance, human, _) in enumerate(turns):
        if n:
            yield FollowUp(identity, utterance, history[:n], human)


def _canard(place: str, dialogue: Mapping[str, Any], turn: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return (
        f"{_field(place, dialogue, 'dialog_id', _NUMBER)}/{_field(place, turn, 'n', _NUMBER)}",
        _field(place, turn, "question"),
        _field(place, turn, "rewrite", _OPTIONAL),
        _field(place, turn, "history_answer", _OPTIONAL),
    )


def _ikat(place: str, topic: Mapping[str, Any], turn: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return (
        f"{_field(place, topic, 'collection', _NUMBER)}/{_field(place, turn, 'qid', _NUMBER)}",
        _field(place, turn, "utterance"),
        _field(place, turn, "resolved_utterance", _OPTIONAL),
        _field(place, turn, "response", _OPTIONAL),
    )


def _field(place: str, record: Mapping[str, Any], key: str, kinds: tuple[type, ...] = (str,)) -> str:
    """A field as text; "" where it is null."""
    if key not in record or not isinstance(record[key], kinds):
        raise _neither(place, key)
    return "" if record[key] is None else str(record[key])


def _neither(place: str, key: str) -> DataError:
    return DataError(
        f"{place}, is neither a dialogue of CANARD nor a topic of iKAT: '{key}' is missing or holds something else;"
        " mend or remove the line."
    )
