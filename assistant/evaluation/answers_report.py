"""What the rows of an answers run say: a summary with intervals, tables in Markdown, and plots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from assistant.evaluation.scores import Setting
from assistant.experiment.grid import grid, measured
from assistant.experiment.task import Summary

# --- Markdown ----------------------------------------------------------------------------------------------------


def markdown(summary: Summary, pictures: Iterable[Path], command: str) -> str:
    """The whole report; `command` is how to repeat it."""
    run = summary["run"]
    about = (
        f"{summary['questions']} questions over {summary['passages']:,} passages, found by `{run['loop']}` or the loop"
        f" that a name begins with, answered by `{run['model']}`, seed {run['seed']}. Intervals are 95 % bootstrap"
        " intervals over questions. Gold is the share of questions with a gold passage among the passages that were"
        " shown last."
        " Strategies ran one after another on one loaded model, so with few questions the seconds of later ones are too"
        " low: prompts that the model has just read are not read again."
    )
    parts = ["# Answer strategies", f"    {command}", about, *_remarks(summary), settings_tables(summary["settings"])]
    parts += [f"![{plot.stem.replace('_', ' ')}]({plot.name})" for plot in pictures]
    return "\n\n".join(parts) + "\n"


def settings_tables(blocks: Iterable[Summary]) -> str:
    """All tables of each setting, under its name."""
    parts: list[str] = []
    for block in blocks:
        parts += [f"## {_title(block)}", table(block["strategies"]), _recall_table(block), _unknown_table(block)]
        if block["differences"]:
            parts += [f"Paired differences to {block['base']}:", table(block["differences"], signed=True)]
    return "\n\n".join(part for part in parts if part)


def _title(block: Summary) -> str:
    return str(Setting(block["k"], block["placement"], block["samples"], block["shots"]))


def _remarks(summary: Summary) -> list[str]:
    remarks = [f"Left out: {why} ({count})." for why, count in summary["left_out"].items()]
    if summary["weak_gold"]:
        remarks.append("The gold passages are weak (found by the answer's string), so this is no benchmark score.")
    for block in summary["settings"]:
        for name, measures in block["strategies"].items():
            remarks += [
                f"{name} at {_title(block)}: {count} answers {what}, counted as wrong."
                for what, count in (("were empty", measures["empty"]), ("failed", measures["failed"]))
                if count
            ]
    return remarks


_SHARES = {"EM %": "em", "F1 %": "f1", "Unk %": "unknown", "NM %": "nm", "gold %": "gold_found"}
_COSTS = {"prompt tokens": "prompt_tokens", "completion tokens": "completion_tokens", "seconds": "seconds"}
_UNKNOWN = {'"unknown": precision %': "unknown_precision", "recall %": "unknown_recall", "F1 %": "unknown_f1"}


def table(rows: Mapping[str, Summary], *, signed: bool = False) -> str:
    """Strategies, or differences between them, a line each, with the ends of their intervals in brackets."""
    form = "+.1f" if signed else ".1f"
    cells = []
    for name, of in rows.items():
        shares = {key: measured(of[key], form, 100) for key in _SHARES.values()}
        if not of.get("pooled", True):
            shares["nm"] = "-"  # no vote was held, so none could be lost
        cells.append([name, *shares.values(), *(measured(of[key], form) for key in _COSTS.values())])
    return grid(["strategy", *_SHARES, *_COSTS], cells)


def _recall_table(block: Summary) -> str:
    recalls = {name: measures["recall"] for name, measures in block["strategies"].items() if measures["recall"]}
    most = max(map(len, recalls.values()), default=0)
    cells = [
        [name, *(measured(one, ".1f", 100) for one in of), *[""] * (most - len(of))] for name, of in recalls.items()
    ]
    heads = ["documents that hold an answer, %", *(f"iteration {n}" for n in range(1, most + 1))]
    return grid(heads, cells) if cells else ""


def _unknown_table(block: Summary) -> str:
    told = {name: of for name, of in block["strategies"].items() if "unknown_f1" in of}
    cells = [[name, *(measured(of[key], ".1f", 100) for key in _UNKNOWN.values())] for name, of in told.items()]
    return grid(["strategy", *_UNKNOWN], cells) if cells else ""


# --- plots -------------------------------------------------------------------------------------------------------


def plots(summary: Summary, folder: Path) -> list[Path]:
    """Draw the plots into the folder."""
    strategies = summary["strategies"]
    tokens = {
        name: [(of["prompt_tokens"]["value"] + of["completion_tokens"]["value"], of)] for name, of in strategies.items()
    }
    drawn = [
        _draw(folder / "em_and_unknown.png", partial(_bars, strategies=strategies)),
        _draw(
            folder / "em_against_tokens.png", partial(_em, points=tokens, what="tokens read and written per question")
        ),
    ]
    for key, what in (("k", "passages shown"), ("samples", "samples p"), ("shots", "demonstrations shown")):
        blocks = _varying(summary["settings"], key)
        points = {name: [(block[key], block["strategies"][name]) for block in blocks] for name in strategies}
        if len(blocks) > 1:
            drawn.append(_draw(folder / f"em_against_{key}.png", partial(_em, points=points, what=what)))
    return drawn


def _varying(blocks: Sequence[Summary], key: str) -> list[Summary]:
    """The blocks that differ from the first in nothing but `key`, ascending."""
    others = {"k", "placement", "samples", "shots"} - {key}
    alike = [block for block in blocks if all(block[other] == blocks[0][other] for other in others)]
    return sorted(alike, key=lambda block: int(block[key]))


def _draw(path: Path, paint: Callable[[Axes], None]) -> Path:
    figure = Figure(figsize=(7, 4), layout="constrained")
    paint(figure.subplots())
    figure.savefig(path, dpi=120)
    return path


def _bars(axes: Axes, strategies: Mapping[str, Summary]) -> None:
    for offset, (key, label) in ((-0.2, ("em", "EM")), (0.2, ("unknown", "unknown"))):
        places = [n + offset for n in range(len(strategies))]
        values = [100 * measures[key]["value"] for measures in strategies.values()]
        axes.bar(places, values, 0.38, yerr=_errors(strategies.values(), key), capsize=3, label=label)
    axes.set_xticks(range(len(strategies)), list(strategies))
    axes.set_ylabel("% of questions")
    axes.set_ylim(0, 100)
    axes.legend()


def _em(axes: Axes, points: Mapping[str, Sequence[tuple[float, Summary]]], what: str) -> None:
    for name, of in points.items():
        values, errors = [100 * measures["em"]["value"] for _, measures in of], _errors([one for _, one in of], "em")
        axes.errorbar([x for x, _ in of], values, yerr=errors, marker="o", capsize=3, label=name)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel(what)
    axes.set_ylabel("EM %")
    axes.legend()


def _errors(measures: Iterable[Summary], key: str) -> list[list[float]]:
    found = [one[key] for one in measures]
    below = [100 * (one["value"] - one["low"]) for one in found]
    return [below, [100 * (one["high"] - one["value"]) for one in found]]
