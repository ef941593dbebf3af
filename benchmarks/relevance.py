"""`bench relevance`: the seconds that scoring passages takes, on this machine as it is."""

from __future__ import annotations

import platform
from statistics import median
from threading import Event
from time import perf_counter, process_time
from typing import Annotated

import typer

from assistant.commands.common import load_llm
from assistant.commands.experiment import ModelMeasurementOptions, print_summary
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

    settings = options.load_settings()
    sampled_questions = sample(read_questions(questions), runs + 1, 0)
    pool = sample(load_corpus(corpus), passages * (runs + 1), 0)
    if len(sampled_questions) <= runs or len(pool) < passages * (runs + 1):
        raise DataError(f"{runs + 1} questions with {passages} passages each are needed; give larger files.")
    with bar("Estimator") as progress:
        scorer = load(estimator, lambda: load_llm(settings, progress), settings, progress)

    def seconds(question: str, scored_passages: list[Passage]) -> tuple[float, float]:
        start, cpu_start = perf_counter(), process_time()
        scorer.estimate(question, scored_passages, Event())
        return perf_counter() - start, process_time() - cpu_start

    batches = [pool[n * passages : (n + 1) * passages] for n in range(runs + 1)]
    _, *timings = [seconds(question.text, batch) for question, batch in zip(sampled_questions, batches, strict=True)]
    times, cpu = [clock for clock, _ in timings], median(cpu_seconds for _, cpu_seconds in timings)
    words = median(len(passage.text.split()) for passage in pool)
    figures = {
        "estimator": scorer.name, "machine": platform.processor() or platform.machine(), "passages": passages,
        "words": words, "runs": runs, "median": median(times), "fastest": min(times), "slowest": max(times), "cpu": cpu,
    }  # fmt: skip
    print_summary(figures, options.as_json)
