"""`evaluate ptkb` and `evaluate memory`: the ranking of facts, and what is offered for remembering."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress as Bars
from rich.table import Table

from assistant.commands.common import DataDir, SettingsFile, out, settings_of, talk, writing
from assistant.errors import DataError
from assistant.parts import load_embedder
from assistant.protocols import Embedder
from assistant.settings import Settings

Limit = Annotated[int | None, typer.Option(min=1, help="Take a sample of this size.", show_default="all")]
Seed = Annotated[int, typer.Option(help="Decides the sample and the intervals.")]
Out = Annotated[Path | None, typer.Option("--out", help="A folder for rows and results.", show_default=False)]
# As papers call the measures of a set.
_NAMES = {"SetP": "P", "SetR": "R", "SetF": "F1"}
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]


def ptkb(  # noqa: PLR0913 - the experiment's knobs
    *,
    topics: Annotated[Path, typer.Option(help="Topics of TREC iKAT, the JSON file of any year.")],
    qrels: Annotated[
        Path | None,
        typer.Option(help="Judgements: 'turn 0 fact relevance' lines.", show_default="the topics' ptkb_provenance"),
    ] = None,
    seen: Annotated[
        Path | None,
        typer.Option(
            help="Judgements that settings were chosen on: turns without any are measured apart, too.",
            show_default=False,
        ),
    ] = None,
    limit: Limit = None,
    seed: Seed = 0,
    into: Out = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Measure which facts are found relevant, against people's labels, and beside a baseline.

    The baseline is the mean of a fact's cosines to the utterance and to the whole history.
    """
    from assistant.evaluation import ptkb as measured  # noqa: PLC0415

    _refuse_run(into)
    everyone = measured.read_topics(topics)
    labelled, labels = measured.judged(everyone, qrels)
    known = {turn.id for turn in measured.judged(everyone, seen)[0]} if seen else set[str]()
    turns = measured.taken(labelled, limit, seed)
    knobs = settings_of(settings, data_dir)
    embedder = _embedder(knobs)
    summary, rows = measured.measure(turns, labels, embedder, knobs.facts, seed, known)
    _finish({"embedder": embedder.name, **summary}, rows, into, as_json)


def memory(
    *,
    dialogues: Annotated[Path, typer.Option(help="Dialogues with personas, a .jsonl[.gz] file.")],
    limit: Limit = None,
    seed: Seed = 0,
    into: Out = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Measure what is offered for remembering, against the personas of the speakers."""
    from assistant.evaluation import memory as measured  # noqa: PLC0415
    from assistant.experiment.datasets import sample  # noqa: PLC0415

    _refuse_run(into)
    everyone = measured.read_speakers(dialogues)
    embedder = _embedder(settings_of(settings, data_dir))
    with Bars(console=talk, transient=True) as bars:
        task = bars.add_task("Dialogues")
        speakers = sample(everyone, limit, seed)
        summary, rows = measured.measure(
            speakers, everyone, embedder, seed, lambda done, total: bars.update(task, completed=done, total=total)
        )
    _finish({"embedder": embedder.name, **summary}, rows, into, as_json)


def _refuse_run(into: Path | None) -> None:
    """The rows of these measures are written anew each time; those of a run may have taken hours."""
    if into and (into / "run.json").exists():
        raise DataError(f"{into} holds a run, whose rows would be lost; choose another folder for --out.")


def _embedder(knobs: Settings) -> Embedder:
    with Bars(console=talk, transient=True) as bars:
        task = bars.add_task("Embedder", total=None)
        return load_embedder(knobs, lambda done, total: bars.update(task, completed=done, total=total))


def _finish(summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], into: Path | None, as_json: bool) -> None:
    if into:
        _write(into, summary, rows)
    if as_json:
        typer.echo(json.dumps(summary, indent=2))
        return
    _print(summary)
    if unseen := summary.get("unseen"):
        out.print("\nTurns without a label that settings were chosen on:")
        _print(unseen)


def _print(summary: Mapping[str, Any]) -> None:
    table = Table("measure", "value", "95 % interval", box=None)
    compared = "difference" in summary
    if compared:
        table.add_column("baseline")
        table.add_column("difference, paired")
    for name, found in summary["measures"].items():
        cells = [f"{found['value']:.3f}", f"{found['low']:.3f} to {found['high']:.3f}"]
        if compared:
            better = summary["difference"][name]
            cells.append(f"{summary['baseline'][name]['value']:.3f}")
            cells.append(f"{better['value']:+.3f} ({better['low']:+.3f} to {better['high']:+.3f})")
        table.add_row(_NAMES.get(name, name), *cells)
    out.print(table)
    told = ", ".join(f"{name} {value}" for name, value in summary.items() if not isinstance(value, dict))
    out.print(told, style="dim")


def _write(into: Path, summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    with writing(into):
        into.mkdir(parents=True, exist_ok=True)
        (into / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (into / "rows.jsonl").write_text("".join(lines), encoding="utf-8")
