"""Measures a run of TREC iKAT (`python -m assistant ikat`) as far as that is possible without its collection.

Facts are measured against people's labels, the ranking against judgements of the passages that were searched, and the
response against the canonical one and, where they are given, against nuggets: statements that a good response makes, as
lines of `{"turn": "9-1_3", "text": "The DASH diet has little salt."}`. One row:

    {"id": "9-1_3", "cited": true, "unknown": false, "words": 61, "ROUGE-1 recall": 0.41, "ROUGE-1 F1": 0.33,
     "facts, SetF": 0.67, "passages, nDCG@5": 1.0, "nuggets": 4, "nuggets held": 3, "seconds": 8.1}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Event

from ir_measures import RR, R, SetF, SetP, SetR, nDCG
from pydantic import BaseModel, ConfigDict, Field

from assistant.errors import DataError
from assistant.evaluation.ranking import Qrels, scores
from assistant.evaluation.rewriting import rouge1
from assistant.experiment.datasets import read_models
from assistant.experiment.measures import means, ratio, share_passed
from assistant.experiment.runs import Row
from assistant.experiment.task import Summary
from assistant.ikat.runs import word_count
from assistant.ikat.topics import Topics
from assistant.protocols import SupportJudge
from assistant.types import Claim, Passage

FACT_RANKING_MEASURES, FACT_SET_MEASURES = (nDCG @ 3,), (SetP, SetR, SetF)
PASSAGE_MEASURES = (nDCG @ 3, nDCG @ 5, R @ 10, R @ 100, RR)


class Nugget(BaseModel):
    """A statement that a good response to a turn makes."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    turn: str = Field(min_length=1)
    text: str = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Labels:
    """What people said of the turns: of facts and of passages, by turn, and the nuggets that a response should hold."""

    facts: Qrels
    passages: Qrels
    nuggets: Mapping[str, Sequence[str]]


def read_nuggets(path: Path) -> dict[str, list[str]]:
    """The nuggets of a .jsonl[.gz] file by turn.

    Raises:
        DataError: a line is none.
    """
    by_turn: dict[str, list[str]] = {}
    for nugget in read_models(path, Nugget, "no nugget"):
        by_turn.setdefault(nugget.turn, []).append(nugget.text)
    return by_turn


def qrels_by_turn(qrels: Qrels) -> dict[str, Mapping[str, int]]:
    """Judgements by turn, also where their file names the collection before it ("2023_test/9-1_3")."""
    return {turn.rpartition("/")[2]: judged for turn, judged in qrels.items()}


def measure(
    topics: Topics, played_rows: Mapping[str, Row], labels: Labels, judge: SupportJudge, seed: int
) -> tuple[Summary, list[Row]]:
    """The measures with their 95 % intervals over the turns that were played and have labels, and a row for each turn.

    Raises:
        DataError: the run has none of these topics' turns.
    """
    turns = [turn for turn in topics.turns if turn in played_rows]
    if not turns:
        raise DataError(f"The run has no turn of {topics.file}; give the topics that it was played with.")
    rows = {turn: _row(topics.turns[turn][1].response, played_rows[turn]) for turn in turns}
    facts = {turn: played_rows[turn]["facts"] for turn in turns if labels.facts.get(turn)}
    ranked_ids = {turn: [fact["id"] for fact in turn_facts] for turn, turn_facts in facts.items()}
    used_ids = {turn: [fact["id"] for fact in turn_facts if fact["used"]] for turn, turn_facts in facts.items()}
    passages = {turn: played_rows[turn]["ranking"] for turn in turns if labels.passages.get(turn)}
    fact_sets = scores(used_ids, labels.facts, FACT_SET_MEASURES)
    measured_by_kind = {
        "facts": scores(ranked_ids, labels.facts, FACT_RANKING_MEASURES).join(fact_sets),
        "passages": scores(passages, labels.passages, PASSAGE_MEASURES),
    }
    for kind, measured in measured_by_kind.items():
        for turn, values in measured.add_prefix(f"{kind}, ").to_dict("index").items():
            rows[turn] |= values
    for turn in (turn for turn in turns if labels.nuggets.get(turn)):
        verdicts = _nugget_verdicts(played_rows[turn], labels.nuggets[turn], judge)
        rows[turn] |= {"nuggets": len(verdicts), "nuggets held": sum(verdicts)}
    row_list = list(rows.values())
    likeness = {name: [row[name] for row in row_list] for name in ("ROUGE-1 recall", "ROUGE-1 F1")}
    measured_kinds = {kind: measured for kind, measured in measured_by_kind.items() if len(measured)}
    nuggets, held = ([row[name] for row in row_list if name in row] for name in ("nuggets", "nuggets held"))
    complete_topics = [topic for topic in topics.topics if all(turn.id in played_rows for turn in topic.turns)]
    return {
        "turns": len(turns),
        "topics, whole": len(complete_topics),
        "with a citation": share_passed([row["cited"] for row in row_list]),
        "said to be unknown": share_passed([row["unknown"] for row in row_list]),
        "like the canonical response": means(likeness, seed),
        **{kind: {"turns": len(measured), **means(measured, seed)} for kind, measured in measured_kinds.items()},
        **({"nugget recall": {**ratio(held, nuggets, seed), "n": sum(nuggets)}} if nuggets else {}),
        **{f"{name}, median": float(median(row[name] for row in row_list)) for name in ("words", "seconds")},
    }, row_list


def _row(canonical: str, played_row: Row) -> Row:
    rouge = rouge1(played_row["response"], canonical)
    return {
        "id": played_row["id"],
        "cited": bool(played_row["cited"]),
        "unknown": played_row["unknown"],
        "words": word_count(played_row["response"]),
        "ROUGE-1 recall": rouge["recall"],
        "ROUGE-1 F1": rouge["f1"],
        "seconds": played_row["seconds"],
    }


def _nugget_verdicts(played_row: Row, nuggets: Sequence[str], judge: SupportJudge) -> list[bool]:
    """Whether the response says each nugget, by the judge that also decides what a passage says."""
    response = (Passage("response", "", played_row["response"]),)
    verdicts = judge.judge([Claim(nugget, response, played_row["question"]) for nugget in nuggets], Event())
    return [verdict.state == "supported" for verdict in verdicts]
