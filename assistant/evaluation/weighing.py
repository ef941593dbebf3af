"""What weighing answers by relevance gains, and what reranking does (RE-RAG, sections 4.3, 5.1 and table 6).

Every question's candidates are answered from once, each alone, and estimated once; all methods are computed from that.
One row, its lists in BM25's order:

    {"id": "nqo0001", "passages": ["nq00001", ...], "scores": [2.31, ...], "answers": ["May 18, 2018", ...],
     "logs": [-0.4, ...], "unknown": [false, ...], "own": "2018", "gold_at": [0], "gold": ["May 18, 2018"]}

`scores` are s_j, calibrated if the estimator is; `logs` the log-probability of each answer; `own` the model's answer
without passages; `gold_at` the places of passages that hold the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp
from pathlib import Path
from threading import Event
from typing import Any

from assistant.errors import DataError, UtteranceError
from assistant.evaluation.thresholds import THRESHOLDS, check_odds
from assistant.experiment.datasets import Question, fingerprint, read_questions, sample
from assistant.experiment.measures import exact_match, mean, paired_difference
from assistant.experiment.runs import Row, Run
from assistant.judges.relevance.weights import weights
from assistant.judges.uncertainty import WORD
from assistant.prompting.budget import fit
from assistant.protocols import Estimator, Parts, Progress
from assistant.strategies.post_fusion import replies
from assistant.strategies.shared.reading import FACTOID_ROOM
from assistant.text.sentences import normalise
from assistant.types import (
    Choices,
    Options,
    Relevance,
    Turn,
)

BASE, FULL = "post_fusion", "re_rag"


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is asked: `depth` BM25 candidates of each question, the best `k` of which are answered from.

    `uncertainty` is how "unknown" is told, with its threshold where it has one. `thresholds` are those of the set's
    confidence that are tried.
    """

    corpus: Path
    questions: Path
    depth: int = 10
    k: int = 5
    limit: int | None = None
    seed: int = 0
    skip: int = 0
    uncertainty: str = WORD
    thresholds: tuple[float, ...] = THRESHOLDS


def prepare(experiment: Experiment) -> list[Question]:
    """The questions, those with answers and gold passages.

    Raises:
        DataError: a broken file, no such question, fewer candidates than are answered from, or a threshold that is
            not between 0 and 1.
    """
    check_odds(*experiment.thresholds)
    if experiment.k > experiment.depth:
        raise DataError(f"k is {experiment.k}, but only {experiment.depth} passages are asked; raise the depth.")
    sampled = sample(read_questions(experiment.questions), experiment.limit, experiment.seed, experiment.skip)
    chosen = [one for one in sampled if one.answers and one.gold]
    if not chosen:
        raise DataError(f"No question of {experiment.questions} has answers and gold passages; give another file.")
    return chosen


def open_run(folder: Path, experiment: Experiment, model: str, estimator: Estimator) -> Run[str]:
    """The folder of this experiment; more questions may be added later, and k may change.

    Raises:
        DataError: the folder holds a run on other data, or with another model, estimator, depth or way to tell
            "unknown".
    """
    asked = {
        "corpus": fingerprint(experiment.corpus),
        "questions": fingerprint(experiment.questions),
        "depth": experiment.depth,
        "model": model,
        "estimator": f"{estimator.name} {estimator.calibration}".strip(),
        "uncertainty": experiment.uncertainty,
    }
    return Run(folder, asked, lambda row: str(row["id"]))


def measure(
    experiment: Experiment,
    questions: Sequence[Question],
    run: Run[str],
    parts: Parts,
    estimator: Estimator,
    progress: Progress,
) -> None:
    """Answer and estimate what the run's rows lack."""
    jobs = [(one.id, lambda one=one: _row(one, experiment.depth, parts, estimator)) for one in questions]
    run.fill(jobs, len(jobs), progress)


def summarise(experiment: Experiment, questions: Sequence[Question], run: Run[str]) -> dict[str, Any]:
    """EM of all methods, against post-fusion, and what abstaining and the mixed strategy do.

    A threshold is never chosen on the questions that it is measured on: each half takes that of the other.
    """
    rows, seed = [run.rows[one.id] for one in questions], experiment.seed
    hits = {name: [_em(row, _answer(row, name, experiment.k)) for row in rows] for name in METHODS}
    return {
        "questions": len(rows),
        "k": experiment.k,
        "depth": experiment.depth,
        "methods": {name: asdict(mean(found, seed)) for name, found in hits.items()},
        "differences": {
            name: asdict(paired_difference(found, hits[BASE], seed)) for name, found in hits.items() if name != BASE
        },
        "under_threshold": _under_threshold(rows, hits[FULL], experiment),
    }


# --- rows --------------------------------------------------------------------------------------------------------


def _row(question: Question, depth: int, parts: Parts, estimator: Estimator) -> Row:
    passages = tuple(parts.retriever.search(question.text, depth))
    choices = Choices(BASE, k=depth, form="factoid")
    turn = Turn(question.text, question=question.text, passages=passages, choices=choices)
    try:
        found = _found(turn, parts, estimator)
    except UtteranceError as refusal:
        # a question too long for the model must not end the run each time it is resumed; it counts as wrong
        found = {**_nothing(len(passages)), "error": str(refusal)}
    return {
        "id": question.id,
        "question": question.text,
        "passages": [passage.id for passage in passages],
        **found,
        "gold_at": [n for n, passage in enumerate(passages) if passage.id in question.gold],
        "gold": list(question.answers),
    }


def _found(turn: Turn, parts: Parts, estimator: Estimator) -> Row:
    answered = replies(turn, parts, Event())
    return {
        "scores": [round(one.score, 6) for one in estimator.estimate(turn.question, turn.passages, Event())],
        "answers": [candidate.text for candidate, _ in answered],
        "logs": [round(sum(asked.completion.logprobs), 6) for _, asked in answered],
        "unknown": [candidate.unknown for candidate, _ in answered],
        "own": _own(turn.question, parts),
    }


def _nothing(passages: int) -> Row:
    zeros = [0.0] * passages
    return {"scores": zeros, "answers": [""] * passages, "logs": zeros, "unknown": [True] * passages, "own": ""}


def _own(question: str, parts: Parts) -> str:
    messages, _ = fit("factoid/closed_book", parts.llm, FACTOID_ROOM, question=question)
    [completion] = parts.llm.complete([messages], Options(max_tokens=FACTOID_ROOM), Event())
    return completion.text.strip()


# --- methods -----------------------------------------------------------------------------------------------------

# Of each method: whether passages are reranked, and how an answer is weighed.
METHODS: Mapping[str, tuple[bool, str]] = {
    BASE: (False, "votes"),
    "likelihood only": (False, "likelihood"),
    "rerank only": (True, "votes"),
    "score only": (False, "softmax"),
    FULL: (True, "softmax"),
    "without normalisation": (True, "confidence"),
}


def _places(row: Row, k: int, *, reranked: bool) -> list[int]:
    places = range(len(row["passages"]))
    return (sorted(places, key=lambda n: -row["scores"][n]) if reranked else list(places))[:k]


def _answer(row: Row, method: str, k: int) -> str:
    """The answer of most weight, "" where all are unknown; ties go to the passage that ranks higher."""
    reranked, weighed = METHODS[method]
    places = _places(row, k, reranked=reranked)
    worth = _worth(row, places, weighed)
    totals: dict[str, float] = {}
    texts: dict[str, str] = {}
    for n, one in zip(places, worth, strict=True):
        if not row["unknown"][n]:
            key = normalise(row["answers"][n])
            totals[key] = totals.get(key, 0.0) + one
            texts.setdefault(key, row["answers"][n])
    return texts[max(totals, key=lambda key: totals[key])] if totals else ""


def _worth(row: Row, places: Sequence[int], weighed: str) -> list[float]:
    if weighed == "votes":
        return [1.0] * len(places)
    likelihoods = [exp(min(row["logs"][n], 0.0)) for n in places]
    if weighed == "likelihood":
        return likelihoods
    scores = [row["scores"][n] for n in places]
    shares = weights(scores) if weighed == "softmax" else [Relevance.of_score(score).confidence for score in scores]
    return [share * likelihood for share, likelihood in zip(shares, likelihoods, strict=True)]


def _em(row: Row, answer: str) -> float:
    return exact_match(answer, row["gold"])


# --- thresholds --------------------------------------------------------------------------------------------------


def _under_threshold(rows: Sequence[Row], hits: Sequence[float], experiment: Experiment) -> dict[str, Any]:
    """What saying "unanswerable" under the threshold does, and answering from the model's own knowledge instead."""
    sure = [max((Relevance.of_score(score).confidence for score in row["scores"]), default=0.0) for row in rows]
    held = [not set(row["gold_at"]).isdisjoint(_places(row, experiment.k, reranked=True)) for row in rows]
    own = [_em(row, row["own"]) for row in rows]
    halves = [(sure[half::2] or sure, held[half::2] or held) for half in (0, 1)]
    chosen = [_best(*halves[1 - half], experiment.thresholds) for half in (0, 1)]
    below = [one < chosen[n % 2] for n, one in enumerate(sure)]
    mixed = [mine if low else hit for mine, low, hit in zip(own, below, hits, strict=True)]
    pairs = list(zip(hits, mixed, strict=True))
    return {
        "threshold_of_halves": chosen,
        "abstained": sum(below) / len(rows),
        "answerable": _share(hits, held, wanted=True),
        "answerable_abstaining": _share([h * (not low) for h, low in zip(hits, below, strict=True)], held, wanted=True),
        "unanswerable": _share(hits, held, wanted=False),
        "unanswerable_abstaining": _share([float(low) for low in below], held, wanted=False),
        "closed_book": asdict(mean(own, experiment.seed)),
        "mixed": asdict(mean(mixed, experiment.seed)),
        "mixed_gain": sum(after > before for before, after in pairs),
        "mixed_loss": sum(after < before for before, after in pairs),
    }


def _best(sure: Sequence[float], held: Sequence[bool], thresholds: Sequence[float]) -> float:
    """The threshold of highest F1 of "unanswerable", the first of equals."""

    def f1(threshold: float) -> float:
        said = [one < threshold for one in sure]
        hits = sum(low and not there for low, there in zip(said, held, strict=True))
        return 2 * hits / max(sum(said) + held.count(False), 1)

    return max(thresholds, key=f1)


def _share(values: Sequence[float], held: Sequence[bool], *, wanted: bool) -> dict[str, float]:
    """The mean over the sets that hold a gold passage, or over those that don't, and how many there are."""
    chosen = [value for value, there in zip(values, held, strict=True) if there is wanted]
    return {"sets": len(chosen), "right": sum(chosen) / max(len(chosen), 1)}


def table(summary: Mapping[str, Any]) -> str:
    """The summary in Markdown."""
    lines = [
        "| method | EM | 95 % interval | against post-fusion | 95 % interval |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, found in summary["methods"].items():
        against = summary["differences"].get(name)
        more = f"{against['value']:+.3f} | {against['low']:+.3f} to {against['high']:+.3f}" if against else "|"
        lines.append(f"| {name} | {found['value']:.3f} | {found['low']:.3f} to {found['high']:.3f} | {more} |")
    low = summary["under_threshold"]
    lines += [
        "",
        "| sets | number | right | right where abstaining |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {name} | {low[name]['sets']} | {low[name]['right']:.3f} | {low[f'{name}_abstaining']['right']:.3f} |"
            for name in ("answerable", "unanswerable")
        ),
        "",
        f"Mixed: EM {low['mixed']['value']:.3f} (closed book alone {low['closed_book']['value']:.3f}); "
        f"{low['mixed_gain']} gained, {low['mixed_loss']} lost.",
    ]
    return "\n".join(lines)
