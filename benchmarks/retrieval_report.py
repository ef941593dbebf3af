"""The report of `bench retrieval`: tables, growth curves, and what DPR's Wikipedia would need by them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import cycle, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from assistant.experiment.report import markdown
from assistant.experiment.runs import Row, Run
from assistant.experiment.task import Summary

WIKIPEDIA = 21_015_324
GROWING = {
    "index_seconds": "seconds to index",
    "disk_mib": "MiB on disk",
    "memory_mib": "MiB of memory, searching",
    "p50": "ms a search, median",
}
# One for each encoder, round and round.
_STYLES = ("o-", "s--", "^:")


def write(rows: Sequence[Row], run: Run[str], command: str) -> None:
    """Write results.json, the plots and report.md into the run's folder; `command` is how to repeat it."""
    run.write("results.json", json.dumps(rows, indent=1) + "\n")
    _draw(run.folder / "growth.png", (2, 2), [_curve(rows, key, label) for key, label in GROWING.items()])
    indexes = _indexes(rows)
    if indexes:
        _draw(run.folder / "approximate.png", (1, 2), [_trade(indexes, k) for k in (10, 100)])
    plots = "\n\n".join(f"![{plot.stem}]({plot.name})" for plot in sorted(run.folder.glob("*.png")))
    run.write("report.md", f"# Retrieval\n\n    {command}\n\n{markdown(tables(rows))}\n\n{plots}\n")


def tables(rows: Sequence[Row]) -> Summary:
    """All that was measured, and what so many passages as Wikipedia has would need if it went on in a straight line.

    That is told of a retriever that was measured at three sizes at least, with what each million of passages adds.
    """
    return {
        "retrievers": {row["key"]: _figures(row) for row in _measured(rows)},
        "BM25 beside Anserini's searcher": {row["key"]: _figures(row) for row in rows if "ratios" in row},
        "encoding": {row["key"]: _figures(row) for row in rows if "per_second" in row},
        "approximate beside exact": _indexes(rows),
        f"{WIKIPEDIA:,} passages (a million more)": {
            name: {heading: _extrapolated(retriever_rows, key) for key, heading in GROWING.items()}
            for name, retriever_rows in _by_name(rows).items()
            if len(retriever_rows) >= 3
        },
    }


def growth(sizes: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """The straight line through the points by least squares, which neither falls nor starts below 0: (start, slope).

    What grows more slowly than its passages, such as BM25's time, is overestimated far beyond the last point.
    """
    x, y = np.asarray(sizes, float), np.asarray(values, float)
    slope, start = np.polyfit(x, y, 1)
    if slope < 0:
        return float(y.mean()), 0.0
    return (float(start), float(slope)) if start >= 0 else (0.0, float(x @ y / (x @ x)))


def _figures(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "key"}


def _extrapolated(rows: Sequence[Row], key: str) -> str:
    values = [row[key] for row in rows]
    if None in values:
        return "-"
    start, slope = growth([row["passages"] for row in rows], values)
    return f"{start + slope * WIKIPEDIA:,.0f} ({slope * 1e6:,.1f})"


def _measured(rows: Sequence[Row]) -> list[Row]:
    return sorted((row for row in rows if "retriever" in row), key=lambda row: row["passages"])


def _by_name(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each retriever with each encoder, ascending by size."""
    rows_by_name: dict[str, list[Row]] = {}
    for row in _measured(rows):
        rows_by_name.setdefault(
            f"{row['retriever']} ({row['encoder']})" if row["encoder"] else row["retriever"], []
        ).append(row)
    return rows_by_name


def _indexes(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [index for row in rows for index in row.get("indexes", ())]


def _draw(path: Path, shape: tuple[int, int], paints: Sequence[Callable[[Axes], None]]) -> None:
    figure = Figure(figsize=(5 * shape[1], 3.6 * shape[0]), layout="constrained")
    for paint, axes in zip(paints, figure.subplots(*shape).flat, strict=True):
        paint(axes)
    figure.savefig(path, dpi=110)


def _curve(rows: Sequence[Row], key: str, label: str) -> Callable[[Axes], None]:
    def paint(axes: Axes) -> None:
        for name, retriever_rows in _by_name(rows).items():
            if None not in [row[key] for row in retriever_rows]:
                axes.loglog(
                    [row["passages"] for row in retriever_rows],
                    [max(row[key], 0.1) for row in retriever_rows],
                    "o-",
                    label=name,
                )
        axes.set_xlabel("passages")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=6)

    return paint


def _trade(indexes: Sequence[dict[str, Any]], k: int) -> Callable[[Axes], None]:
    """Recall against time at the most vectors of each encoder: a colour for each index, a style for each encoder."""

    def paint(axes: Axes) -> None:
        for encoder, style in zip(dict.fromkeys(row["encoder"] for row in indexes), cycle(_STYLES), strict=False):
            max_vectors = max(row["vectors"] for row in indexes if row["encoder"] == encoder)
            shown_rows = [row for row in indexes if (row["encoder"], row["vectors"]) == (encoder, max_vectors)]
            for n, (index, trials) in enumerate(groupby(shown_rows, key=itemgetter("index"))):
                points = [(trial["p50"], trial[f"recall_{k}"]) for trial in trials]
                axes.semilogx(
                    *zip(*points, strict=True), style, color=f"C{n}", label=f"{index} ({encoder}, {max_vectors:,})"
                )
        axes.set_xlabel("ms a search, median, one thread")
        axes.set_ylabel(f"recall@{k} of the exact index")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=6)

    return paint
