"""What `bench retrieval` measured: tables in Markdown, growth curves, and what DPR's Wikipedia would need by them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from assistant.experiment.report import grid
from assistant.experiment.runs import Row, Run

WIKIPEDIA = 21_015_324
GROWING = {
    "index_seconds": "seconds to index",
    "disk_mib": "MiB on disk",
    "memory_mib": "MiB of memory, searching",
    "p50": "ms a search, median",
}
# One for each encoder, round and round.
_STYLES = ("o-", "s--", "^:")


def write(rows: Sequence[Row], run: Run[str], command: str) -> Path:
    """Write results.json, the plots and report.md into the run's folder; `command` is how to repeat it."""
    run.write("results.json", json.dumps(rows, indent=1) + "\n")
    _draw(run.folder / "growth.png", (2, 2), [_curve(rows, key, label) for key, label in GROWING.items()])
    compared = list(_indexes(rows))
    if compared:
        _draw(run.folder / "approximate.png", (1, 2), [_trade(compared, k) for k in (10, 100)])
    plots = "\n\n".join(f"![{plot.stem}]({plot.name})" for plot in sorted(run.folder.glob("*.png")))
    return run.write("report.md", f"# Retrieval\n\n    {command}\n\n{tables(rows)}\n\n{plots}\n")


def tables(rows: Sequence[Row]) -> str:
    """All that was measured, in Markdown."""
    found = [
        ("Retrievers", _retrievers(rows)),
        ("BM25 beside Anserini's searcher", _beside(rows)),
        ("Encoding", _encoding(rows)),
        ("Approximate beside exact", _approximate(rows)),
        (f"{WIKIPEDIA:,} passages, if it went on in a straight line", _needs(rows)),
    ]
    return "\n\n".join(f"## {title}\n\n{table}" for title, table in found if table)


def growth(sizes: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """The straight line through the points by least squares, which neither falls nor starts below 0: (start, slope).

    What grows more slowly than its passages, such as BM25's time, is overestimated far beyond the last point.
    """
    x, y = np.asarray(sizes, float), np.asarray(values, float)
    slope, start = np.polyfit(x, y, 1)
    if slope < 0:
        return float(y.mean()), 0.0
    return (float(start), float(slope)) if start >= 0 else (0.0, float(x @ y / (x @ x)))


def _retrievers(rows: Sequence[Row]) -> str:
    heads = "retriever|encoder|passages|index s|building MiB|disk MiB|memory MiB|p50 ms|p95 ms|gold in 10|gold in 100"
    keys = ("index_seconds", "building_mib", "disk_mib", "memory_mib")
    lines = [
        [
            row["retriever"], row["encoder"] or "-", f"{row['passages']:,}", *map(_whole, (row[key] for key in keys)),
            f"{row['p50']:.1f}", f"{row['p95']:.1f}", f"{row['found']:.1%}", f"{row['found_deep']:.1%}",
        ]
        for row in _measured(rows)
    ]  # fmt: skip
    return _grid(heads, lines)


def _beside(rows: Sequence[Row]) -> str:
    heads = "passages|k|ours ms|with texts|ids and scores|batch in Java|ours / with texts|by CPU time|each run"
    lines = [
        [
            f"{row['passages']:,}", str(row["k"]), *(f"{row[key]:.2f}" for key in ("ours", "texts", "hits", "java")),
            f"{row['ratio']:.2f}", f"{row['cpu_ratio']:.2f}", ", ".join(f"{ratio:.2f}" for ratio in row["ratios"]),
        ]
        for row in rows
        if row["key"].startswith("beside")
    ]  # fmt: skip
    return _grid(heads, lines)


def _encoding(rows: Sequence[Row]) -> str:
    lines = [
        [
            row["encoder"],
            f"{row['passages']:,}",
            f"{row['per_second']:,.1f}" if row["per_second"] else "kept from before",
        ]
        for row in rows
        if row["key"].startswith("encode")
    ]
    return _grid("encoder|passages|passages a second", lines)


def _approximate(rows: Sequence[Row]) -> str:
    heads = "encoder|vectors|index|search|build s|disk MiB|p50 ms|p95 ms|recall@10|recall@100"
    lines = [
        [
            one["encoder"], f"{one['vectors']:,}", one["index"], one["search"], f"{one['build_seconds']:.0f}",
            f"{one['disk_mib']:.0f}", f"{one['p50']:.2f}", f"{one['p95']:.2f}", f"{one['recall_10']:.3f}",
            f"{one['recall_100']:.3f}",
        ]
        for one in _indexes(rows)
    ]  # fmt: skip
    return _grid(heads, lines)


def _needs(rows: Sequence[Row]) -> str:
    """Where a retriever was measured at three sizes at least; with what each million of passages adds."""
    lines = []
    for name, of in _by_name(rows).items():
        if len(of) >= 3:
            lines.append([name, *(_far(of, key) for key in GROWING)])
    return _grid("retriever|" + "|".join(f"{heading} (a million more)" for heading in GROWING.values()), lines)


def _far(rows: Sequence[Row], key: str) -> str:
    values = [row[key] for row in rows]
    if None in values:
        return "-"
    start, slope = growth([row["passages"] for row in rows], values)
    return f"{start + slope * WIKIPEDIA:,.0f} ({slope * 1e6:,.1f})"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _measured(rows: Sequence[Row]) -> list[Row]:
    return sorted((row for row in rows if "retriever" in row), key=lambda row: row["passages"])


def _by_name(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each retriever with each encoder, ascending by size."""
    named: dict[str, list[Row]] = {}
    for row in _measured(rows):
        named.setdefault(f"{row['retriever']} ({row['encoder']})" if row["encoder"] else row["retriever"], []).append(
            row
        )
    return named


def _indexes(rows: Sequence[Row]) -> Iterable[dict[str, Any]]:
    return (one for row in rows for one in row.get("indexes", ()))


def _grid(heads: str, rows: Sequence[Sequence[str]]) -> str:
    return grid(heads.split("|"), rows) if rows else ""


def _draw(path: Path, shape: tuple[int, int], paints: Sequence[Callable[[Axes], None]]) -> None:
    figure = Figure(figsize=(5 * shape[1], 3.6 * shape[0]), layout="constrained")
    for paint, axes in zip(paints, figure.subplots(*shape).flat, strict=True):
        paint(axes)
    figure.savefig(path, dpi=110)


def _curve(rows: Sequence[Row], key: str, label: str) -> Callable[[Axes], None]:
    def paint(axes: Axes) -> None:
        for name, of in _by_name(rows).items():
            if None not in [row[key] for row in of]:
                axes.loglog([row["passages"] for row in of], [max(row[key], 0.1) for row in of], "o-", label=name)
        axes.set_xlabel("passages")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=6)

    return paint


def _trade(compared: Sequence[dict[str, Any]], k: int) -> Callable[[Axes], None]:
    """Recall against time at the most vectors of each encoder: a colour for each index, a style for each encoder."""

    def paint(axes: Axes) -> None:
        for encoder, style in zip(dict.fromkeys(one["encoder"] for one in compared), cycle(_STYLES), strict=False):
            most = max(one["vectors"] for one in compared if one["encoder"] == encoder)
            shown = [one for one in compared if (one["encoder"], one["vectors"]) == (encoder, most)]
            for n, (index, trials) in enumerate(groupby(shown, key=itemgetter("index"))):
                points = [(trial["p50"], trial[f"recall_{k}"]) for trial in trials]
                axes.semilogx(*zip(*points, strict=True), style, color=f"C{n}", label=f"{index} ({encoder}, {most:,})")
        axes.set_xlabel("ms a search, median, one thread")
        axes.set_ylabel(f"recall@{k} of the exact index")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=6)

    return paint
