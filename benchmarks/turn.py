"""`bench turn`: how long whole turns take and what for; of several engines in turns, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from threading import Event
from time import perf_counter
from typing import Annotated, Any, get_args

import typer

from assistant import turn as flow
from assistant.commands.common import error_console, load_with_bars
from assistant.commands.experiment import print_summary
from assistant.commands.option_groups import ModelOptions
from assistant.commands.turn_options import TurnOptions
from assistant.errors import ModelError, SequiturError, SettingsError
from assistant.experiment.task import Summary
from assistant.llm.meter import Meter
from assistant.protocols import Parts
from assistant.settings import Backend as Engine
from assistant.settings import Settings
from assistant.types import Choices, Exchange, Fact, Turn, new_id, now
from benchmarks.figures import Figures
from benchmarks.peak import peak_bytes

FACTS = ("I'm vegetarian.", "I'm lactose intolerant.", "I live in Bergen, Norway.", "I run three times a week.")
CAPITAL = Exchange("What is the capital of Sweden?", "What is the capital of Sweden?", "The capital is Stockholm.")
# Real questions: the starter library, personal facts, follow-ups, one that the library does not hold.
QUESTIONS: tuple[tuple[str, tuple[Exchange, ...]], ...] = (
    ("What is a good diet?", ()),
    ("Which languages are spoken in Switzerland?", ()),
    ("How much protein do I need, and where do I get it?", ()),
    ("How long is the coastline of Norway?", ()),
    ("How can I fall asleep faster?", ()),
    ("What does Chile export?", ()),
    ("How many people live there?", (CAPITAL,)),
    ("How should I start saving money?", ()),
    ("What should I eat before a run?", ()),
    ("Who won the football World Cup in 2022?", ()),
    ("What is the climate of Kenya?", ()),
    ("How do I remember what I study?", ()),
)
MEASURES = ("first_source", "first_word", "whole", "share", "prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True)
class Timing:
    """One turn. Times in seconds from the moment the question was sent; `share` is the part spent inside the LLM.

    `first_source` and `first_word` are -1 where there was none.
    """

    question: str
    first_source: float
    first_word: float
    whole: float
    share: float
    prompt_tokens: int
    completion_tokens: int
    steps: dict[str, float]
    tokens: dict[str, dict[str, int]]


def bench(
    parts: Parts, choices: Choices, each: Callable[[Timing], None] = lambda _: None, limit: int = len(QUESTIONS)
) -> list[Timing]:
    """Ask the first `limit` of `QUESTIONS` once, in order; `each` sees every timing as it is taken."""
    timings = []
    for question, history in QUESTIONS[:limit]:
        timings.append(timed(question, history, parts, choices))
        each(timings[-1])
    return timings


def medians(timings: Sequence[Timing]) -> dict[str, float]:
    """The median of each measure, over the turns that have it; -1 where none has."""
    return {name: median([getattr(t, name) for t in timings if getattr(t, name) >= 0] or [-1]) for name in MEASURES}


def peak_memory() -> float:
    """The most memory this process has held, in GB (10^9 bytes)."""
    return peak_bytes() / 1e9


def timed(question: str, history: tuple[Exchange, ...], parts: Parts, choices: Choices) -> Timing:
    """Ask one question, behind what was said before it."""
    meter = Meter(parts.llm)
    facts = tuple(Fact(new_id(), text, now(), now()) for text in FACTS)
    turn = Turn(question, history, facts, choices)
    first_source = first_word = -1.0
    start = perf_counter()
    for turn in flow.run(turn, replace(parts, llm=meter), Event()):
        if first_source < 0 and turn.passages:
            first_source = perf_counter() - start
        if first_word < 0 and turn.answer and turn.answer.text:
            first_word = perf_counter() - start
    duration = perf_counter() - start
    step_tokens: dict[str, Any] = {step: asdict(tokens) for step, tokens in turn.spent.items()}
    tokens = turn.tokens
    return Timing(
        question, first_source, first_word, duration, meter.seconds / duration, tokens.prompt, tokens.completion,
        dict(turn.timings), step_tokens,
    )  # fmt: skip


_NOTHING = 0.01  # seconds
_CONTEXT = get_context("spawn")  # a process with Java in it can't be forked


def turn(
    runs: Annotated[
        int, typer.Option(min=1, help="Times that all questions are asked; the first is the cold one.")
    ] = 2,
    engines: Annotated[
        str,
        typer.Option(
            help="Backends or TOML files of settings to compare, with commas between them; asked in turns.",
        ),
    ] = "",
    limit: Annotated[int, typer.Option(min=1, help="How many of the questions to ask.")] = len(QUESTIONS),
    *,
    figures: Figures,
    options: ModelOptions,
) -> None:
    """Time whole turns over twelve real questions: first source, first word, the model's share, memory.

    With --engines every question is asked of each engine before the next question, so that what else the machine does
    falls on all alike; each engine is in processes of its own, whose memory is measured by itself. A file with settings
    shows what other settings cost; in the figures it has its name without the ending.
    """
    names = [name.strip() for name in engines.split(",") if name.strip()]
    engine_settings = dict(_named(name, options) for name in names)
    if len(engine_settings) < len(names):
        raise SettingsError("Two of --engines have one name; give each once, and files of different names.")
    report = (
        _side_by_side(engine_settings, runs, limit) if engine_settings else _alone(options.load_settings(), runs, limit)
    )
    summaries = {
        name: {"model": engine_report["model"], **_summary(engine_report)} for name, engine_report in report.items()
    }
    print_summary({"engines": summaries}, figures.as_json, {"engines": summaries, **_tables(report)})
    figures.keep("turn", report)


def _named(name: str, options: ModelOptions) -> tuple[str, Settings]:
    if name.endswith(".toml"):
        return Path(name).stem, replace(options, settings_file=Path(name), backend=None).load_settings()
    if name not in get_args(Engine):
        raise SettingsError(
            f"There is no engine {name}; give some of {', '.join(get_args(Engine))}, or TOML files with settings."
        )
    return name, replace(options, backend=name).load_settings()


def _summary(report: dict[str, Any]) -> dict[str, float]:
    cold = report["medians"][0]
    return {
        "first_word": cold["first_word"],
        "whole": cold["whole"],
        "read": cold["prompt_tokens"],
        "written": cold["completion_tokens"],
        "share": cold["share"],
        "memory_gb": report["peak_memory_gb"],
    }


def _report(model: str, memory: float, rounds: list[list[Timing]]) -> dict[str, Any]:
    return {
        "model": model,
        "peak_memory_gb": memory,
        "medians": [medians(timings) for timings in rounds],
        "runs": [[asdict(timing) for timing in timings] for timings in rounds],
    }


def _alone(settings: Settings, runs: int, limit: int) -> dict[str, Any]:
    """The engine that the settings name, in this process."""
    parts, choices = _parts(settings)
    rounds = [bench(parts, choices, _tell, limit) for _ in range(runs)]
    return {settings.llm.backend: _report(parts.llm.name, peak_memory(), rounds)}


def _side_by_side(engine_settings: dict[str, Settings], runs: int, limit: int) -> dict[str, Any]:
    """Several engines, each in a process of its own: a question goes to all of them before the next one is asked."""
    with ExitStack() as stack:
        connections = {name: stack.enter_context(_process(settings)) for name, settings in engine_settings.items()}
        models = {name: _received(connection) for name, connection in connections.items()}
        rounds: dict[str, list[list[Timing]]] = {name: [[] for _ in range(runs)] for name in connections}
        for run in range(runs):
            for n, (question, _) in enumerate(QUESTIONS[:limit]):
                for name, connection in connections.items():
                    connection.send(n)
                    rounds[name][run].append(_received(connection))
                    error_console.print(f"{name:12} {rounds[name][run][-1].whole:5.1f} s  {question}", style="dim")
        for connection in connections.values():
            connection.send(None)
        return {name: _report(models[name], _received(connections[name]), rounds[name]) for name in connections}


@contextmanager
def _process(settings: Settings) -> Iterator[Connection]:
    parent_end, child_end = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=_serve, args=(child_end, settings.model_dump()))
    process.start()
    child_end.close()
    try:
        yield parent_end
    finally:
        parent_end.close()
        process.join()


def _serve(connection: Connection, settings: dict[str, Any]) -> None:
    """Times the question whose number comes, until None does; says its model first and its peak memory last."""
    try:
        parts, choices = _parts(Settings(**settings))
        connection.send(parts.llm.name)
        while (n := connection.recv()) is not None:
            question, history = QUESTIONS[n]
            connection.send(timed(question, history, parts, choices))
        connection.send(peak_memory())
    except SequiturError as error:
        connection.send(error)
    except EOFError:
        pass  # the asking process has ended


def _received(connection: Connection) -> Any:
    try:
        answer = connection.recv()
    except EOFError as error:
        raise ModelError("The engine's process ended in the middle; its own words are above.") from error
    if isinstance(answer, Exception):
        raise answer
    return answer


def _parts(settings: Settings) -> tuple[Parts, Choices]:
    loader = load_with_bars(settings)
    choices = TurnOptions().choices(loader.settings)
    return loader.parts("me", choices), choices


def _tell(timing: Timing) -> None:
    error_console.print(f"{timing.whole:5.1f} s  {timing.question}", style="dim")


def _tables(report: dict[str, Any]) -> Summary:
    """A line a question, and one a step, of each engine and round."""
    tables: Summary = {}
    for name, engine_report in report.items():
        for n, (rows, medians_) in enumerate(zip(engine_report["runs"], engine_report["medians"], strict=True)):
            title = f"{name}, {'warm' if n else 'cold'}"
            rows_by_question = {**{row["question"]: row for row in rows}, "median": medians_}
            tables[title] = {
                question: {key: None if row[key] < 0 else row[key] for key in MEASURES}
                for question, row in rows_by_question.items()
            }
            tables[f"{title}, steps"] = _steps(rows)
    return tables


def _steps(rows: Sequence[dict[str, Any]]) -> Summary:
    """What each step took in the median turn, and in all turns; those that took next to nothing are left out."""
    steps: Summary = {}
    for step in dict.fromkeys(step for row in rows for step in row["steps"]):
        seconds = median([row["steps"].get(step, 0.0) for row in rows])
        tokens = [row["tokens"].get(step, {}) for row in rows]
        read, cached, written = (
            sum(step_tokens.get(kind, 0) for step_tokens in tokens) for kind in ("prompt", "cached", "completion")
        )
        if seconds >= _NOTHING or read:
            steps[step] = {
                "seconds": seconds,
                "tokens of prompts, in all": read,
                "of these had before": cached,
                "written, in all": written,
            }
    return steps
