"""Measures the rewriting of follow-ups against people's rewrites, and what it does to retrieval.

Dialogues come as CANARD's (`{dialog_id, turns: [{n, question, rewrite, history_answer}]}`) or as iKAT's topics
(`{collection, number, turns: [{qid, utterance, resolved_utterance, response}]}`), a dialogue a line. The history given
is the canonical one. One row: `{"id", "utterance", "ours", "human"}`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from ir_measures import RR, Success, nDCG
from pydantic import AliasChoices, BaseModel, Field, ValidationError
from sacrebleu.metrics.bleu import BLEU

from assistant.errors import DataError
from assistant.evaluation.ranking import Qrels, scores
from assistant.experiment.datasets import records
from assistant.experiment.measures import differences, exact_match, means
from assistant.experiment.options import Sample
from assistant.experiment.runs import Row
from assistant.experiment.task import Rows, Summary, Task
from assistant.protocols import Parts, Retriever
from assistant.retrieve.search import search_text
from assistant.steps import rewrite
from assistant.text.sentences import words
from assistant.types import Exchange, Turn

VARIANTS = ("utterance", "ours", "searched", "human")
COMPARED_VARIANTS = ("utterance", "ours")
RETRIEVAL_MEASURES = (nDCG @ 10, nDCG @ 3, Success @ 1, RR)


def _either(canard: str, ikat: str) -> Any:
    return Field(validation_alias=AliasChoices(canard, ikat))


class _Turn(BaseModel):
    """A rewrite or reply is null where there is none."""

    id: str | int = _either("n", "qid")
    utterance: str = _either("question", "utterance")
    human: str | None = _either("rewrite", "resolved_utterance")
    reply: str | None = _either("history_answer", "response")


class _Dialogue(BaseModel):
    id: str | int = _either("dialog_id", "collection")
    turns: list[_Turn]


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
    follow_ups = [follow_up for location, record in records(path) for follow_up in _dialogue(location, record)]
    if not follow_ups:
        raise DataError(f"{path} holds no follow-ups; give dialogues of at least two turns.")
    return follow_ups


@dataclass(frozen=True)
class Rewriting(Task[FollowUp, Parts]):
    """The `items`, of the file `dialogues`, rewritten; where there are judgements, all rewrites are searched for."""

    title = "Rewrites"
    claim_fields = ("dialogues", "model")
    dialogues: Path
    items: Mapping[str, FollowUp]
    model: str
    seed: int = 0
    retriever: Retriever | None = None
    qrels: Qrels | None = None
    left_out: int = 0

    def row(self, item: FollowUp, parts: Parts) -> Row:
        """See `Task`."""
        *_, turn = rewrite.run(Turn(item.utterance, item.history), parts, Event())
        return {"id": item.id, "utterance": item.utterance, "ours": turn.question, "human": item.human}

    def summarise(self, rows: Rows) -> Summary:
        """ROUGE-1, BLEU and exact match against the human rewrites: of the raw utterance and of our rewrite."""
        item_rows = [rows[follow_up_id] for follow_up_id in self.items]
        retrieval = self._retrieval(rows, self.retriever, self.qrels) if self.retriever and self.qrels else None
        return {
            "follow_ups": len(item_rows),
            "rewritten": sum(row["ours"] != row["utterance"] for row in item_rows),
            "against_human": {variant: _likeness(item_rows, variant, self.seed) for variant in COMPARED_VARIANTS},
            **({"left_out": {"follow-ups that nobody rewrote": self.left_out}} if self.left_out else {}),
            **({"retrieval": retrieval} if retrieval else {}),
        }

    def _retrieval(self, rows: Rows, retriever: Retriever, qrels: Qrels) -> Summary:
        """What raw utterance, our rewrite and the human one find when searched for; all follow-ups must be judged.

        `searched` is what a turn searches for, the utterance together with our rewrite. Also `gain`, how much better
        that is than the utterance, and `gap_closed`, the share of the way from there to the human rewrite; both of
        nDCG@10.
        """
        by_variant = {}
        for variant in VARIANTS:
            rankings = {name: _found_ids(rows[name], variant, retriever) for name in self.items}
            by_variant[variant] = scores(rankings, qrels, RETRIEVAL_MEASURES)
        measured = {variant: means(by_measure, self.seed) for variant, by_measure in by_variant.items()}
        raw, _, ours, human = (measured[variant]["nDCG@10"]["value"] for variant in VARIANTS)
        gain = differences(by_variant["searched"], by_variant["utterance"], self.seed)["nDCG@10"]
        gap_closed = (ours - raw) / (human - raw) if human != raw else None
        return {"judged": len(self.items), "variants": measured, "gain": gain, "gap_closed": gap_closed}


def rouge1(written: str, human: str) -> dict[str, float]:
    """Recall and F1 of lower-case words, each counted as often as it occurs in both (ROUGE-1, Lin 2004, section 2)."""
    ours, theirs = Counter(words(written.lower())), Counter(words(human.lower()))
    same, total = (ours & theirs).total(), ours.total() + theirs.total()
    return {"recall": same / max(theirs.total(), 1), "f1": 2 * same / max(total, 1)}


def sample_follow_ups(follow_ups: Sequence[FollowUp], sample: Sample, judged: Qrels | None) -> dict[str, FollowUp]:
    """A sample, by id, of those that a person rewrote; where there are judgements, of judged ones only.

    Raises:
        DataError: there are none.
    """
    usable = [follow_up for follow_up in follow_ups if follow_up.human and (judged is None or follow_up.id in judged)]
    if not usable:
        raise DataError("No follow-up has both a human rewrite and a judgement; give files that belong together.")
    return {follow_up.id: follow_up for follow_up in sample.draw(usable)}


def _likeness(rows: Sequence[Row], variant: str, seed: int) -> Summary:
    texts, human_texts = [row[variant] for row in rows], [row["human"] for row in rows]
    rouges = list(map(rouge1, texts, human_texts))
    likeness = {
        "ROUGE-1 recall": [rouge["recall"] for rouge in rouges],
        "ROUGE-1 F1": [rouge["f1"] for rouge in rouges],
        "EM": [exact_match(text, [human_text]) for text, human_text in zip(texts, human_texts, strict=True)],
    }
    *rouge, em = means(likeness, seed).items()
    return dict([*rouge, ("BLEU", BLEU().corpus_score(texts, [human_texts]).score), em])


def _found_ids(row: Row, variant: str, retriever: Retriever) -> list[str]:
    turn = Turn(row["utterance"], question=row["ours"], rewritten=row["ours"] != row["utterance"])
    query = search_text(turn) if variant == "searched" else row[variant]
    return [passage.id for passage in retriever.search(query, 100)]


def _dialogue(location: str, record: Mapping[str, Any]) -> Iterator[FollowUp]:
    try:
        dialogue = _Dialogue.model_validate(record, strict=True)
    except ValidationError as error:
        key = [part for part in error.errors()[0]["loc"] if isinstance(part, str) and part not in {"str", "int"}][-1]
        raise DataError(
            f"{location}, is neither a dialogue of CANARD nor a topic of iKAT: '{key}' is missing or holds something"
            " else; mend or remove the line."
        ) from error
    history: tuple[Exchange, ...] = ()
    for turn in dialogue.turns:
        if history:
            yield FollowUp(f"{dialogue.id}/{turn.id}", turn.utterance, history, turn.human or "")
        history = (*history, Exchange(turn.utterance, turn.human or turn.utterance, turn.reply or ""))
