"""`bench relevance`: the seconds that scoring passages takes, on this machine as it is."""

from __future__ import annotations

import platform
from statistics import median
from threading import Event
from time import perf_counter, process_time
from typing import Annotated

import typer

from assistant.commands.common import load_llm
from assistant.commands.experiment import ModelMeasurementOptions, show
from assistant.commands.progress_bars import bar
from assistant.errors import DataError
from assistant.experiment.datasets import read_questions, sample
from assistant.experiment.options import Corpus, Questions
from assistant.library.corpus import load_corpus
from assistant.types import Passage


def relevance(
    *,
    corpus: Corpus,
    questions: Questions,
    estimator: Annotated[str, typer.Option(help="'llm', 'shipped', a folder, or a hub id.")] = "shipped",
    passages: Annotated[int, typer.Option(min=1, help="Passages scored for each question.")] = 25,
    runs: Annotated[int, typer.Option(min=1, help="Questions; the first is not counted.")] = 12,
    options: ModelMeasurementOptions,
) -> None:
    """Time a relevance estimator on real passages, drawn from the corpus: by the clock, and what the CPUs worked."""
    from assistant.judges.relevance.load import load  # noqa: PLC0415 - torch

    knobs = options.load_settings()
    asked = sample(read_questions(questions), runs + 1, 0)
    pool = sample(load_corpus(corpus), passages * (runs + 1), 0)
    if len(asked) <= runs or len(pool) < passages * (runs + 1):
        raise DataError(f"{runs + 1} questions with {passages} passages each are needed; give larger files.")
    with bar("Estimator") as progress:
        scorer = load(estimator, lambda: load_llm(knobs, progress), knobs, progress)

    def seconds(question: str, shown: list[Passage]) -> tuple[float, float]:
        begun, worked = perf_counter(), process_time()
        scorer.estimate(question, shown, Event())
        return perf_counter() - begun, process_time() - worked

    batches = [pool[n * passages : (n + 1) * passages] for n in range(runs + 1)]
    _, *both = [seconds(question.text, shown) for question, shown in zip(asked, batches, strict=True)]
    timed, cpu = [clock for clock, _ in both], median(worked for _, worked in both)
    words = median(len(passage.text.split()) for passage in pool)
    found = {
        "estimator": scorer.name, "machine": platform.processor() or platform.machine(), "passages": passages,
        "words": words, "runs": runs, "median": median(timed), "fastest": min(timed), "slowest": max(timed), "cpu": cpu,
    }  # fmt: skip
    show(found, options.as_json)
