"""Plots: answers by strategy, and how far an estimator's confidence can be believed."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from pandas import DataFrame, Series

from assistant.experiment.task import Summary

_VARIED = {"k": "passages shown", "samples": "samples p", "shots": "demonstrations shown"}


def answers(summary: Summary, folder: Path) -> list[Path]:
    """EM and "unknown" by strategy, and EM against tokens and whatever was varied, drawn into the folder."""
    points = DataFrame([
        {**block, "strategy": name, "tokens": scores["prompt_tokens"]["value"] + scores["completion_tokens"]["value"],
         **{f"{key}_{end}": 100 * scores[key][end] for key in ("em", "unknown") for end in ("value", "low", "high")}}
        for block in summary["settings"] for name, scores in block["strategies"].items()
    ])  # fmt: skip
    settings = ["placement", *_VARIED]
    main_points = points[(points[settings] == points.iloc[0][settings]).all(axis=1)]
    figure, axes = _figure((7, 4))
    for offset, key in ((-0.2, "em"), (0.2, "unknown")):
        positions = [n + offset for n in range(len(main_points))]
        axes.bar(positions, main_points[f"{key}_value"], 0.38, yerr=_errors(main_points, key), capsize=3, label=key)
    axes.set_xticks(range(len(main_points)), list(main_points["strategy"]))
    axes.set(ylabel="% of questions", ylim=(0, 100))
    paths = [_saved(figure, axes, folder / "em_and_unknown.png")]
    paths.append(_em_against(main_points, "tokens", "tokens read and written per question", folder))
    for key, label in _VARIED.items():
        other_keys = [setting for setting in settings if setting != key]
        matching_points = points[(points[other_keys] == points.iloc[0][other_keys]).all(axis=1)].sort_values(key)
        if matching_points[key].nunique() > 1:
            paths.append(_em_against(matching_points, key, label, folder))
    return paths


def _em_against(points: DataFrame, key: str, label: str, folder: Path) -> Path:
    figure, axes = _figure((7, 4))
    for name, rows in points.groupby("strategy", sort=False):
        axes.errorbar(rows[key], rows["em_value"], yerr=_errors(rows, "em"), marker="o", capsize=3, label=name)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel=label, ylabel="EM %")
    return _saved(figure, axes, folder / f"em_against_{key}.png")


def _errors(points: DataFrame, key: str) -> list[Series]:
    value = points[f"{key}_value"]
    return [value - points[f"{key}_low"], points[f"{key}_high"] - value]


def _figure(size: tuple[float, float]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots()


def _saved(figure: Figure, axes: Axes, path: Path) -> Path:
    axes.legend()
    figure.savefig(path, dpi=120)
    return path


def reliability(summary: Summary, folder: Path) -> Path:
    """The reliability diagram: each bin's share of relevant passages over its mean confidence, by size."""
    bins = DataFrame(summary["reliability"])
    figure, axes = _figure((5, 5))
    axes.plot([0, 1], [0, 1], linestyle="--", color="grey", label="as sure as right")
    axes.plot(bins["confidence"], bins["relevant"], color="tab:blue")
    axes.scatter(
        bins["confidence"], bins["relevant"], s=20 + 180 * bins["count"] / bins["count"].max(), color="tab:blue"
    )
    axes.set(xlabel="confidence", ylabel="relevant", title=f"{summary['estimator']}, ECE {summary['ece']:.3f}")
    return _saved(figure, axes, folder / "reliability.png")
