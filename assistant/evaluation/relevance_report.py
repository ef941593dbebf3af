"""What the measures of a relevance estimator say: tables in Markdown, and the reliability diagram."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from assistant.experiment.grid import INTERVAL, grid
from assistant.experiment.grid import table as tabled

DIAGRAM = "reliability.png"
_REACHED = {
    "measure": "{name}", "BM25": "{bm25:.3f}", "reranked": "{reranked:.3f}", "95 % interval": "{ends}",
    "as in a turn": "{turn:.3f}",
}  # fmt: skip
_THRESHOLDS = {
    "threshold": "{threshold:.3f}", "precision": "{precision:.3f}", "recall": "{recall:.3f}", "F1": "{f1:.3f}",
    "answerable under it": "{given_up:.3f}",
}  # fmt: skip
_LEFT_OUT = {
    "share": "{share:g}", "left out": "{passages:.1%}", "gold left out": "{gold:.1%}",
    "questions that lose all gold": "{lost:.1%}",
}  # fmt: skip
_RELIABILITY = {
    "confidence": "{low:.1f}-{high:.1f}", "passages": "{count}", "mean confidence": "{confidence:.3f}",
    "relevant": "{relevant:.3f}",
}  # fmt: skip


def table(summary: Mapping[str, Any]) -> str:
    """The measures in Markdown: reranking, the unanswerable by threshold, the reliability table."""
    ends = {name: INTERVAL.format(low=low, high=high) for name, (low, high) in summary["intervals"].items()}
    reached = [
        {"name": name, "bm25": before, "reranked": summary[name], "ends": ends[name], "turn": summary["turn"][name]}
        for name, before in summary["bm25"].items()
    ]
    kinds = ("unanswerable_precision", "unanswerable_recall", "unanswerable_f1")
    withheld = (
        "With the gold taken from sets that are {share:.0%} of all: precision {precision:.3f}, recall {recall:.3f},"
        " F1 {f1:.3f}."
    )
    tables = [
        tabled(reached, _REACHED) if reached else "",
        grid(["measure", "value", "95 % interval"], [[name, f"{summary[name]:.3f}", ends[name]] for name in kinds]),
        tabled(summary["thresholds"], _THRESHOLDS),
        withheld.format(**summary["gold_withheld"]) if summary["gold_withheld"] else "",
        "Passages left out that have less than a share of the likeliest one's confidence, of those that a turn shows:",
        tabled(summary["left_out_under"], _LEFT_OUT),
        "Expected calibration error: {ece:.3f} of passages, {set_ece:.3f} of sets.".format(**summary),
        tabled(summary["reliability"], _RELIABILITY),
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
