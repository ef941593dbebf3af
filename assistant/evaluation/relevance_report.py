"""What the measures of a relevance estimator say: tables in Markdown, and the reliability diagram."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from assistant.experiment.grid import grid

DIAGRAM = "reliability.png"


def table(summary: Mapping[str, Any]) -> str:
    """The measures in Markdown: reranking, the unanswerable by threshold, the reliability table."""
    reached = [
        [
            name,
            *(f"{found[name]:.3f}" for found in (summary["bm25"], summary)),
            _interval(summary, name),
            f"{summary['turn'][name]:.3f}",
        ]
        for name in summary["bm25"]
    ]
    kinds = ("unanswerable_precision", "unanswerable_recall", "unanswerable_f1")
    said = [[name, f"{summary[name]:.3f}", _interval(summary, name)] for name in kinds]
    swept = [[f"{row[name]:.3f}" for name in row] for row in summary["thresholds"]]
    bins = [
        [f"{row['low']:.1f}-{row['high']:.1f}", str(row["count"]), f"{row['confidence']:.3f}", f"{row['relevant']:.3f}"]
        for row in summary["reliability"]
    ]
    under = [
        [f"{row['share']:g}", *(f"{row[name]:.1%}" for name in ("passages", "gold", "lost"))]
        for row in summary["left_out_under"]
    ]
    without = summary["gold_withheld"]
    withheld = (
        "With the gold taken from sets that are {share:.0%} of all: precision {precision:.3f}, recall {recall:.3f},"
        " F1 {f1:.3f}."
    )
    tables = [
        grid(["measure", "BM25", "reranked", "95 % interval", "as in a turn"], reached) if reached else "",
        grid(["measure", "value", "95 % interval"], said),
        grid(["threshold", "precision", "recall", "F1", "answerable under it"], swept),
        withheld.format(**without) if without else "",
        "Passages left out that have less than a share of the likeliest one's confidence, of those that a turn shows:",
        grid(["share", "left out", "gold left out", "questions that lose all gold"], under),
        f"Expected calibration error: {summary['ece']:.3f} of passages, {summary['set_ece']:.3f} of sets.",
        grid(["confidence", "passages", "mean confidence", "relevant"], bins),
    ]
    return "\n\n".join(filter(None, tables))


def draw(summary: Mapping[str, Any], folder: Path) -> Path:
    """The reliability diagram: each bin's share of relevant passages over its mean confidence, by size."""
    bins = summary["reliability"]
    most = max(row["count"] for row in bins)
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], linestyle="--", color="grey", label="as sure as right")
    axes.plot([row["confidence"] for row in bins], [row["relevant"] for row in bins], color="tab:blue")
    sizes = [20 + 180 * row["count"] / most for row in bins]
    axes.scatter([row["confidence"] for row in bins], [row["relevant"] for row in bins], s=sizes, color="tab:blue")
    axes.set(xlabel="confidence", ylabel="relevant", title=f"{summary['estimator']}, ECE {summary['ece']:.3f}")
    axes.legend()
    figure.savefig(folder / DIAGRAM, dpi=120)
    return folder / DIAGRAM


def _interval(summary: Mapping[str, Any], name: str) -> str:
    low, high = summary["intervals"][name]
    return f"{low:.3f} to {high:.3f}"
