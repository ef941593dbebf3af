"""`evaluate ptkb` and `evaluate memory`: the ranking of facts, and what is offered for remembering."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from assistant.commands.bars import bar
from assistant.commands.common import DataDir, SettingsFile, settings_of, writing
from assistant.commands.experiment import AsJson, Limit, embedder_of, show
from assistant.errors import DataError
from assistant.experiment.grid import INTERVAL, table

Seed = Annotated[int, typer.Option(help="Decides the sample and the intervals.")]
Out = Annotated[Path | None, typer.Option("--out", help="A folder for rows and results.", show_default=False)]
# As papers call the measures of a set.
_NAMES = {"SetP": "P", "SetR": "R", "SetF": "F1"}
_MEASURED = {"measure": "{name}", "value": "{value:.3f}", "95 % interval": INTERVAL}
_COMPARED = {
    "baseline": "{baseline[value]:.3f}",
    "difference, paired": "{difference[value]:+.3f} ({difference[low]:+.3f} to {difference[high]:+.3f})",
}


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
    embedder = embedder_of(knobs)
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
    embedder = embedder_of(settings_of(settings, data_dir))
    with bar("Dialogues") as progress:
        summary, rows = measured.measure(sample(everyone, limit, seed), everyone, embedder, seed, progress)
    _finish({"embedder": embedder.name, **summary}, rows, into, as_json)


def _refuse_run(into: Path | None) -> None:
    """The rows of these measures are written anew each time; those of a run may have taken hours."""
    if into and (into / "run.json").exists():
        raise DataError(f"{into} holds a run, whose rows would be lost; choose another folder for --out.")


def _finish(summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], into: Path | None, as_json: bool) -> None:
    if into:
        with writing(into):
            into.mkdir(parents=True, exist_ok=True)
            (into / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            (into / "rows.jsonl").write_text("".join(lines), encoding="utf-8")
    tables = _table(summary)
    if unseen := summary.get("unseen"):
        tables += f"\n\nTurns without a label that settings were chosen on:\n\n{_table(unseen)}"
    show(summary, tables, as_json)


def _table(summary: Mapping[str, Any]) -> str:
    compared = [key for key in ("baseline", "difference") if key in summary]
    rows = [
        {"name": _NAMES.get(name, name), **found, **{key: summary[key][name] for key in compared}}
        for name, found in summary["measures"].items()
    ]
    told = ", ".join(f"{name} {value}" for name, value in summary.items() if not isinstance(value, dict))
    return f"{table(rows, {**_MEASURED, **(_COMPARED if compared else {})})}\n\n{told}"
