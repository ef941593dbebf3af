"""`bench retrieval`: what searching costs as a library grows, and what is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from assistant.commands.bars import bar
from assistant.commands.common import DataDir, SettingsFile, settings_of
from assistant.commands.experiment import Corpus, Out, Questions, Seed, command_line, tell
from assistant.errors import DataError
from assistant.experiment.datasets import fingerprint
from assistant.protocols import silent

SIZES = (10_000, 40_000, 200_000)


def retrieval(  # noqa: PLR0913 - the experiment's knobs
    *,
    corpus: Corpus,
    questions: Questions,
    into: Out,
    more: Annotated[
        list[Path] | None,
        typer.Option(help="More passages, for larger sizes: a .jsonl[.gz] file; may be repeated.", show_default=False),
    ] = None,
    words: Annotated[int, typer.Option(min=5, help="What those are cut to.")] = 40,
    size: Annotated[
        list[int] | None,
        typer.Option(min=100, help="Passages to search; may be repeated.", show_default="10000, 40000, 200000"),
    ] = None,
    encoded: Annotated[
        int, typer.Option(min=0, help="Passages to encode at most; beyond, only averaged word pieces are measured.")
    ] = 10_000,
    limit: Annotated[int, typer.Option(min=2, help="Questions to ask.")] = 300,
    runs: Annotated[int, typer.Option(min=1, help="Times that all are asked; the medians count.")] = 3,
    seed: Seed = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Measure BM25 (beside plain Lucene), dense (exact and approximate) and hybrid search at several sizes.

    Indexes and vectors are kept in the data folder, under bench; a run that was broken off goes on.
    """
    from assistant.experiment.runs import Run  # noqa: PLC0415
    from benchmarks import retrieval as measured  # noqa: PLC0415
    from benchmarks import retrieval_report as report  # noqa: PLC0415 - matplotlib

    knobs = settings_of(settings, data_dir)
    material = measured.prepare(corpus, questions, more or (), words, limit, seed)
    sizes = sorted(set(size or SIZES))
    if sizes[-1] > len(material.passages):
        raise DataError(
            f"There are {len(material.passages):,} passages, too few for --size {sizes[-1]}; "
            "give more with --more, or cut them shorter with --words."
        )
    data = [fingerprint(path)[:16] for path in (corpus, questions, *(more or ()))]
    asked = {"data": data, "sizes": sizes, "encoded": encoded, "words": words, "limit": limit, "runs": runs,
             "seed": seed, "encoder": knobs.retrieve.encoder or knobs.embedder.model}  # fmt: skip
    run = Run(into, asked, lambda row: str(row["key"]))
    plan = measured.Plan.of(material, sizes, encoded, runs, knobs)
    with bar("Vectors") as progress:
        tasks = list(plan.tasks(progress))
        first = [task for task in tasks if task[0].startswith("encode")]
        run.fill(first, len(first), silent)
    with bar("Measures") as progress:
        run.fill(tasks, len(tasks), progress)
    rows = list(run.rows.values())
    where = report.write(rows, run, command_line())
    tell({"rows": rows} if as_json else {}, json.dumps(rows) if as_json else report.tables(rows), where.parent, as_json)
