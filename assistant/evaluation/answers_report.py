"""What the rows of an answers run say: a summary with intervals, tables in Markdown, and plots."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from assistant.evaluation.answers import Experiment, Key, Material, Setting
from assistant.evaluation.scores import Summary, of_run, summaries
from assistant.experiment.grid import grid
from assistant.experiment.runs import Run


def summarise(experiment: Experiment, material: Material, run: Run[Key]) -> Summary:
    """The measures of each strategy: at the first setting under `strategies`, at all of them under `settings`.

    A measure is `{"value", "low", "high"}` with the ends of its 95 % bootstrap interval over questions; `differences`
    are paired, strategy minus `base`. `recall` is, for each iteration of a loop that writes documents, the share of
    documents that hold an answer. Shares are between 0 and 1.
    """
    blocks = summaries(of_run(experiment, material, run), experiment.seed)
    return {
        "strategies": blocks[0]["strategies"],
        "differences": blocks[0]["differences"],
        "settings": blocks,
        "questions": len(material.questions),
        "weak_gold": any(question.weak for question in material.questions),
        "left_out": material.left_out,
        "passages": material.corpus.size,
        "run": json.loads((run.folder / "run.json").read_text(encoding="utf-8")),
    }


def write(summary: Summary, run: Run[Key], command: str) -> Path:
    """Write summary.json, the plots and report.md into the run's folder; `command` is how to repeat it."""
    run.write("summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    plots = _plots(summary, run.folder)
    return run.write("report.md", _markdown(summary, plots, command))


# --- Markdown ----------------------------------------------------------------------------------------------------


def _markdown(summary: Summary, plots: Iterable[Path], command: str) -> str:
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
    parts += [f"![{plot.stem.replace('_', ' ')}]({plot.name})" for plot in plots]
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


_COLUMNS = (
    ("EM %", "em", 100),
    ("F1 %", "f1", 100),
    ("Unk %", "unknown", 100),
    ("NM %", "nm", 100),
    ("gold %", "gold_found", 100),
    ("prompt tokens", "prompt_tokens", 1),
    ("completion tokens", "completion_tokens", 1),
    ("seconds", "seconds", 1),
)


def table(rows: Mapping[str, Summary], *, signed: bool = False) -> str:
    """Strategies, or differences between them, a line each, with the ends of their intervals in brackets."""
    cells = [
        [name, *(_entry(key, measures, scale, signed=signed) for _, key, scale in _COLUMNS)]
        for name, measures in rows.items()
    ]
    return grid(["strategy", *(head for head, _, _ in _COLUMNS)], cells)


def _entry(key: str, measures: Summary, scale: int, *, signed: bool) -> str:
    if key == "nm" and not signed and not measures["pooled"]:
        return "-"  # no vote was held, so none could be lost
    return _cell(measures[key], scale, signed=signed)


def _recall_table(block: Summary) -> str:
    recalls = {name: measures["recall"] for name, measures in block["strategies"].items() if measures["recall"]}
    most = max(map(len, recalls.values()), default=0)
    cells = [[name, *(_cell(of[n], 100) if n < len(of) else "" for n in range(most))] for name, of in recalls.items()]
    heads = ["documents that hold an answer, %", *(f"iteration {n}" for n in range(1, most + 1))]
    return grid(heads, cells) if cells else ""


def _unknown_table(block: Summary) -> str:
    names = ("unknown_precision", "unknown_recall", "unknown_f1")
    cells = [
        [name, *(_cell(measures[key], 100) for key in names)]
        for name, measures in block["strategies"].items()
        if names[0] in measures
    ]
    heads = ["strategy", '"unknown": precision %', "recall %", "F1 %"]
    return grid(heads, cells) if cells else ""


def _cell(measure: Mapping[str, float], scale: int, *, signed: bool = False) -> str:
    form = "{:+.1f}" if signed else "{:.1f}"
    value, low, high = (form.format(scale * measure[end]) for end in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


# --- tables of the other measurements ----------------------------------------------------------------------------


def ranking_table(summary: Summary) -> str:
    """Loops, a line each, then what they differ by from the first."""
    tables = [_measures_table("loop", summary["loops"])]
    if summary["differences"]:
        tables += [f"Paired differences to {summary['base']}:", _measures_table("loop", summary["differences"], "+.3f")]
    return "\n\n".join(tables)


def rewriting_table(summary: Summary) -> str:
    """Raw utterance and our rewrite against the human rewrite, and what each finds."""
    likeness = {
        variant: {name: {"value": found} if name == "BLEU" else found for name, found in measures.items()}
        for variant, measures in summary["against_human"].items()
    }
    tables = [_measures_table("against the human rewrite", likeness)]
    if "retrieval" in summary:
        tables.append(_measures_table("searched for", summary["retrieval"]["variants"]))
    return "\n\n".join(tables)


def groundedness_table(summary: Summary) -> str:
    """The shares of sentences and citations, and how the check agrees with a person where one has read some."""
    tables = [_measures_table("", {"": summary["measures"]})]
    if "agreement" in summary:
        of = summary["agreement"]
        heads = list(next(iter(of.values())))
        rows = [[what, *(_count(found[name]) for name in heads)] for what, found in of.items()]
        tables.append(grid(["against a person's reading", *heads], rows))
    return "\n\n".join(tables)


def _count(found: float | None) -> str:
    return "" if found is None else f"{found:.2f}" if isinstance(found, float) else str(found)


def doubts_table(ways: Mapping[str, Summary]) -> str:
    """Ways to tell that an answer is not known, a line each, with their best thresholds."""
    heads = ["way", "AUC", "threshold (F1)", "F1", "unknown", "threshold (J)", "J", "unknown", "right of the others"]
    rows = []
    for way, found in ways.items():
        f1, j = found["best_f1"], found["best_j"]
        numbers = (f1["threshold"], f1["f1"], f1["unknown"], j["threshold"], j["j"], j["unknown"], j["right_of_known"])
        rows.append([way, _number(found["auc"]), *(f"{number:.3f}" for number in numbers)])
    return grid(heads, rows)


def _measures_table(head: str, rows: Mapping[str, Mapping[str, Summary]], form: str = ".3f") -> str:
    names = list(next(iter(rows.values())))
    lines = [[row, *(_number(measures[name], form) for name in names)] for row, measures in rows.items()]
    return grid([head, *names], lines)


def _number(measure: Mapping[str, float], form: str = ".3f") -> str:
    value = format(measure["value"], form)
    return f"{value} [{measure['low']:{form}}, {measure['high']:{form}}]" if "low" in measure else value


# --- plots -------------------------------------------------------------------------------------------------------


def _plots(summary: Summary, folder: Path) -> list[Path]:
    plots = [
        _draw(folder / "em_and_unknown.png", lambda axes: _bars(axes, summary["strategies"])),
        _draw(folder / "em_against_tokens.png", lambda axes: _tokens(axes, summary["strategies"])),
    ]
    for key, what in (("k", "passages shown"), ("samples", "samples p"), ("shots", "demonstrations shown")):
        blocks = _varying(summary["settings"], key)
        if len(blocks) > 1:
            plots.append(_draw(folder / f"em_against_{key}.png", partial(_lines, blocks=blocks, key=key, what=what)))
    return plots


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


def _tokens(axes: Axes, strategies: Mapping[str, Summary]) -> None:
    for name, measures in strategies.items():
        tokens = measures["prompt_tokens"]["value"] + measures["completion_tokens"]["value"]
        value = 100 * measures["em"]["value"]
        axes.errorbar(tokens, value, yerr=_errors([measures], "em"), fmt="o", capsize=3, label=name)
    axes.legend()
    axes.set_xlabel("tokens read and written per question")
    axes.set_ylabel("EM %")


def _lines(axes: Axes, blocks: Sequence[Summary], key: str, what: str) -> None:
    for name in blocks[0]["strategies"]:
        of = [block["strategies"][name] for block in blocks]
        values = [100 * measures["em"]["value"] for measures in of]
        axes.errorbar(
            [block[key] for block in blocks], values, yerr=_errors(of, "em"), marker="o", capsize=3, label=name
        )
    axes.set_xticks([block[key] for block in blocks])
    axes.set_xlabel(what)
    axes.set_ylabel("EM %")
    axes.legend()


def _errors(measures: Iterable[Summary], key: str) -> list[list[float]]:
    found = [one[key] for one in measures]
    below = [100 * (one["value"] - one["low"]) for one in found]
    return [below, [100 * (one["high"] - one["value"]) for one in found]]
