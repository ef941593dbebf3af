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
from assistant.experiment.measures import counted, means, ratio
from assistant.experiment.runs import Row
from assistant.experiment.task import Summary
from assistant.ikat.runs import words
from assistant.ikat.topics import Topics
from assistant.protocols import SupportJudge
from assistant.types import Claim, Passage

FACTS_RANKED, FACTS_USED = (nDCG @ 3,), (SetP, SetR, SetF)
PASSAGES = (nDCG @ 3, nDCG @ 5, R @ 10, R @ 100, RR)


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
    for one in read_models(path, Nugget, "no nugget"):
        by_turn.setdefault(one.turn, []).append(one.text)
    return by_turn


def of_turns(qrels: Qrels) -> dict[str, Mapping[str, int]]:
    """Judgements by turn, also where their file names the collection before it ("2023_test/9-1_3")."""
    return {turn.rpartition("/")[2]: judged for turn, judged in qrels.items()}


def measure(
    topics: Topics, played: Mapping[str, Row], labels: Labels, judge: SupportJudge, seed: int
) -> tuple[Summary, list[Row]]:
    """The measures with their 95 % intervals over the turns that were played and have labels, and a row a turn.

    Raises:
        DataError: the run has none of these topics' turns.
    """
    turns = [turn for turn in topics.turns if turn in played]
    if not turns:
        raise DataError(f"The run has no turn of {topics.file}; give the topics that it was played with.")
    rows = {turn: _row(topics.turns[turn][1].response, played[turn]) for turn in turns}
    facts = {turn: played[turn]["facts"] for turn in turns if labels.facts.get(turn)}
    ranked = {turn: [one["id"] for one in of_turn] for turn, of_turn in facts.items()}
    used = {turn: [one["id"] for one in of_turn if one["used"]] for turn, of_turn in facts.items()}
    passages = {turn: played[turn]["ranking"] for turn in turns if labels.passages.get(turn)}
    measured_by_kind = {
        "facts": scores(ranked, labels.facts, FACTS_RANKED).join(scores(used, labels.facts, FACTS_USED)),
        "passages": scores(passages, labels.passages, PASSAGES),
    }
    for kind, measured in measured_by_kind.items():
        for turn, values in measured.add_prefix(f"{kind}, ").to_dict("index").items():
            rows[turn] |= values
    held = {turn: _held(played[turn], labels.nuggets[turn], judge) for turn in turns if labels.nuggets.get(turn)}
    for turn, of_turn in held.items():
        rows[turn] |= {"nuggets": len(of_turn), "nuggets held": sum(of_turn)}
    listed = list(rows.values())
    whole = [topic for topic in topics.topics if all(turn.id in played for turn in topic.turns)]
    return {
        "turns": len(turns),
        "topics, whole": len(whole),
        "with a citation": counted([row["cited"] for row in listed]),
        "said to be unknown": counted([row["unknown"] for row in listed]),
        "like the canonical response": means(
            {name: [row[name] for row in listed] for name in ("ROUGE-1 recall", "ROUGE-1 F1")}, seed
        ),
        **{
            name: {"turns": len(measured), **means(measured, seed)}
            for name, measured in measured_by_kind.items()
            if len(measured)
        },
        **({"nugget recall": _recall(list(held.values()), seed)} if held else {}),
        **{f"{name}, median": float(median(row[name] for row in listed)) for name in ("words", "seconds")},
    }, listed


def _row(canonical: str, played: Row) -> Row:
    alike = rouge1(played["response"], canonical)
    return {
        "id": played["id"],
        "cited": bool(played["cited"]),
        "unknown": played["unknown"],
        "words": words(played["response"]),
        "ROUGE-1 recall": alike["recall"],
        "ROUGE-1 F1": alike["f1"],
        "seconds": played["seconds"],
    }


def _held(played: Row, nuggets: Sequence[str], judge: SupportJudge) -> list[bool]:
    """Whether the response says each nugget, by the judge that also decides what a passage says."""
    response = (Passage("response", "", played["response"]),)
    verdicts = judge.judge([Claim(one, response, played["question"]) for one in nuggets], Event())
    return [verdict.state == "supported" for verdict in verdicts]


def _recall(held: Sequence[Sequence[bool]], seed: int) -> dict[str, float]:
    return {**ratio(map(sum, held), map(len, held), seed), "n": sum(map(len, held))}
