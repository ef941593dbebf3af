"""Measures whether answers follow from their passages, by asking the language model, yes or no.

A turn reads the passages nearest to a sentence, by the judge that its settings name. Here all that the turn found may
support a sentence: so support that the turn overlooked is found, and citations are not checked by the judge that gave
them. One row, where "asked" holds the support in [0, 1] by passage:

    {"id": "q1", "question": "...", "answer": "... [1]", "unknown": false, "seconds": 9.1,
     "claims": [{"text": "...", "cited": ["p7"], "asked": {"p7": 0.93}}],
     "passages": {"p7": {"title": "...", "text": "..."}}, "digests": {"p7": "..."}}
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from pandas import DataFrame
from sklearn.metrics import cohen_kappa_score

from assistant.errors import DataError
from assistant.experiment.datasets import Question, Record, fingerprint, sample
from assistant.experiment.measures import mean, ratio
from assistant.experiment.runs import Row, Run, jsonl
from assistant.experiment.task import Rows, Summary, Task, claim_of_fields
from assistant.grounding.claims import is_claim
from assistant.ikat.play import finish_turn, without_small_talk
from assistant.judges.support.llm import ByLLM
from assistant.protocols import Parts, SupportJudge
from assistant.types import Choices, Claim, Passage, Turn

# "This passage is about ...", "The text explains ...", "According to the article, ...": talk about the text itself.
_META = re.compile(
    r"\b(?:this|the|that|these|above|following|given|provided) (?:\w+ )?(?:passages?|texts?|articles?|paragraphs?|"
    r"summar(?:y|ies)|documents?|excerpts?|authors?)\b|\bhere (?:is|are) (?:a|the) (?:\w+ )?(?:summary|sentences?)\b",
    re.IGNORECASE,
)


_SHARES = (
    ("supported", "supported", "claims"),
    ("citation precision", "right", "citations"),
    ("citation recall", "supported and cited", "supported"),
)


class Label(Record):
    """A sentence as a person read it; `supporting` are the passages that say it, of those cited or else shown."""

    id: str
    sentence: str
    supporting: frozenset[str]
    no_such = "no label of {id, sentence, supporting: [passage id]}"
    what, give = "labels", "a line for each sentence that was read"


@dataclass(frozen=True)
class Groundedness(Task[Question, Parts]):
    """The `items`, of the file `questions`, asked of what is `searched`; `digest` says how passages are cut down.

    `labels` are a person's, to be agreed with; `label_sample_size` sentences are written for a person to label.
    """

    questions: Path
    items: Mapping[str, Question]
    choices: Choices
    digest: str
    threshold: float
    model: str
    seed: int = 0
    labels: Sequence[Label] = ()
    label_sample_size: int = 0

    def claim(self) -> Row:
        """See `Task`."""
        decided = claim_of_fields(self, "questions", "model", "digest", "threshold")
        choice_fields = claim_of_fields(self.choices, "loop", "loops", "strategy", "k", "retriever")
        corpus = Path(self.choices.library)  # or the name of a library
        searched = fingerprint(corpus) if corpus.is_file() else self.choices.library
        return {**decided, **choice_fields, "searched": searched}

    def row(self, item: Question, parts: Parts) -> Row:
        """See `Task`.

        Raises:
            DataError: the question could not be answered; the next run goes on with it.
        """
        turn = Turn(item.text, choices=self.choices, id=item.id)
        turn = finish_turn(turn, without_small_talk(parts), f"Question {item.id}")
        return {
            "id": item.id,
            "question": item.text,
            "answer": turn.answer.text if turn.answer else "",
            "unknown": turn.answer is None or turn.answer.unknown or turn.answer.origin == "model",
            "seconds": round(turn.seconds, 3),
            "claims": _checked(turn, parts, self.threshold),
            "passages": {passage.id: {"title": passage.full_title, "text": passage.text} for passage in turn.passages},
            "digests": {digest.passage_id: digest.text for digest in turn.digests},
        }

    def summarise(self, rows: Rows) -> Summary:
        """The measures with 95 % bootstrap intervals over questions.

        answered: questions that got an answer; all else is counted over these.
        supported: sentences that a passage supports, of those that claim something.
        citation precision: citations whose passage supports the sentence.
        citation recall: supported sentences that cite a passage.
        meta talk: summaries of passages that talk about the passage; only where passages are summarised.
        """
        item_rows = [rows[question_id] for question_id in self.items]
        counts = DataFrame([_counts(row, self.threshold) for row in item_rows if not row["unknown"]])
        if counts.empty:
            raise DataError(
                "None of the questions was answered, so there is nothing to measure; ask what the library holds."
            )
        measures = {
            "answered": mean([float(not row["unknown"]) for row in item_rows], self.seed),
            **{name: ratio(counts[part], counts[total], self.seed) for name, part, total in _SHARES},
        }
        if self.digest not in {"relevant", "extractive"}:
            digests = [[is_meta_talk(text) for text in row["digests"].values()] for row in item_rows]
            measures["meta talk"] = ratio(map(sum, digests), map(len, digests), self.seed)
        return {
            "questions": len(item_rows),
            **{name: int(counts[name].sum()) for name in ("claims", "citations")},
            "threshold": self.threshold,
            "measures": measures,
            "seconds": sum(row["seconds"] for row in item_rows) / len(item_rows),
            **({"agreement": agreement(self.labels, rows, self.threshold)} if self.labels else {}),
        }

    def details(self, summary: Summary, run: Run[str]) -> str:  # noqa: ARG002 - the signature is Task's
        """Writes reading.jsonl, where it is wanted."""
        if self.label_sample_size:
            sentences = sentences_to_label(run.rows[question_id] for question_id in self.items)
            run.write("reading.jsonl", jsonl(sample(sentences, self.label_sample_size, self.seed)))
        return ""


def is_meta_talk(text: str) -> bool:
    """Whether a summary talks about the text that it sums up, instead of the matter (GRG, section 2.2.5)."""
    return _META.search(text) is not None


def sentences_to_label(rows: Iterable[Row]) -> list[Row]:
    """All sentences with the passages that they were shown, for a person to label; without the check's verdicts."""
    return [
        {
            "id": claim["id"],
            "question": row["question"],
            "sentence": claim["text"],
            "cited": claim["cited"],
            "passages": [{"id": passage_id, **passage} for passage_id, passage in row["passages"].items()],
            "supporting": None,
        }
        for row in rows
        for claim in _claims(row)
    ]


def agreement(labels: Sequence[Label], rows: Rows, threshold: float) -> Summary:
    """How far the check agrees with a person: on whether a sentence has support, and on each citation.

    Raises:
        DataError: a label is of a sentence that the run does not have.
    """
    claims = {claim["id"]: claim for row in rows.values() for claim in _claims(row)}
    sentences, citations = list[tuple[bool, bool]](), list[tuple[bool, bool]]()
    for label in labels:
        claim = claims.get(label.id)
        if claim is None or claim["text"] != label.sentence:
            raise DataError(
                f"The label '{label.id}' is of a sentence that this run does not have; label this run's own."
            )
        sentences.append((_is_supported(claim, threshold), bool(label.supporting)))
        citations += [
            (claim["asked"][passage_id] >= threshold, passage_id in label.supporting) for passage_id in claim["cited"]
        ]
    return {"sentences": _compared(sentences), "citations": _compared(citations)}


def _compared(pairs: Sequence[tuple[bool, bool]]) -> Summary:
    """How often the check's verdict (first of each pair) is the person's label (second)."""
    counts, (judged, labelled) = Counter(pairs), zip(*pairs, strict=True) if pairs else ((), ())
    return {
        "read": len(pairs),
        "supported by reading": sum(labelled),
        "supported by the check": sum(judged),
        "agree": counts[True, True] + counts[False, False],
        "supported by the check alone": counts[True, False],
        "supported by reading alone": counts[False, True],
        "kappa": float(cohen_kappa_score(judged, labelled)) if len({*judged, *labelled}) > 1 else None,
    }


def _checked(turn: Turn, parts: Parts, threshold: float) -> list[Row]:
    """The sentences that claim something.

    Each is asked about the passages that it cites, then about the others until one supports it.
    """
    ids_by_number = {citation.n: citation.passage_id for citation in turn.citations}
    claims = [
        {"text": sentence.text, "cited": [ids_by_number[n] for n in sentence.citations], "asked": {}}
        for sentence in turn.sentences
        if is_claim(sentence.text)
    ]
    judge = ByLLM(parts.llm, threshold)
    for passage in turn.passages:
        _ask([claim for claim in claims if passage.id in claim["cited"]], passage, turn, judge)
    for passage in turn.passages:
        open_claims = [claim for claim in claims if not _is_supported(claim, threshold)]
        _ask([claim for claim in open_claims if passage.id not in claim["asked"]], passage, turn, judge)
    return claims


def _ask(claims: Sequence[Row], passage: Passage, turn: Turn, judge: SupportJudge) -> None:
    judge_claims = [Claim(claim["text"], (passage,), turn.question, " ".join(turn.used_facts)) for claim in claims]
    for claim, verdict in zip(claims, judge.judge(judge_claims, Event()), strict=True):
        claim["asked"][passage.id] = round(verdict.probability, 4)


def _is_supported(claim: Mapping[str, Any], threshold: float) -> bool:
    return any(support >= threshold for support in claim["asked"].values())


def _counts(row: Row, threshold: float) -> dict[str, int]:
    claims = row["claims"]
    supported_claims = [claim for claim in claims if _is_supported(claim, threshold)]
    citation_supports = [claim["asked"][passage_id] for claim in claims for passage_id in claim["cited"]]
    return {
        "claims": len(claims),
        "supported": len(supported_claims),
        "supported and cited": sum(bool(claim["cited"]) for claim in supported_claims),
        "citations": len(citation_supports),
        "right": sum(support >= threshold for support in citation_supports),
    }


def _claims(row: Row) -> Iterator[Row]:
    for n, claim in enumerate(row["claims"]):
        yield {"id": f"{row['id']}/{n}", **claim}
