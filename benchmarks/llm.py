"""`bench llm`: what one model on one backend costs on this machine: loading, memory, reading, writing, batches."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event
from time import perf_counter
from typing import Annotated, Any, get_args

import typer

from assistant.commands.common import create_results_folder, error_console, output_console, report_write_errors
from assistant.commands.exit_status import at_end
from assistant.commands.experiment import print_summary
from assistant.commands.option_groups import SettingsOptions
from assistant.errors import ModelError
from assistant.llm.catalogue import Catalogue
from assistant.llm.load import load
from assistant.llm.processor import description
from assistant.protocols import LLM, silent
from assistant.settings import Backend, Quantisation, Settings
from assistant.types import Message, Messages, Options
from benchmarks.peak import held_bytes

_GIB = 1 << 30
_WORDS = "Bread is made of flour, water, salt and time, and a baker knows which of them to hurry. "
PROMPT_WORDS, WRITTEN, BATCH_WRITTEN, REPEATS = 400, 64, 32, 3
BATCHES = (1, 4, 16, 32)
_PEOPLE = (1, 4)
_READERS = (1, 8)
# so low that the replies are those of greedy decoding, or nearly
_SAMPLING = 0.01
# Tokens of a turn, by which engines are compared: read, written in chat, written for a short answer; and batch size.
_READ, _CHAT, _SHORT, _SIDE_BY_SIDE = 600, 75, 8, 16


@dataclass(frozen=True)
class Cost:
    """Medians. Speeds in tokens a second; `batches` maps prompts side by side to tokens written a second in all.

    `users` maps people who ask at the same time to (tokens written a second in all, seconds until the last of them has
    a first word), `sampling_users` the same for sampled replies, which transformers writes one after the other, as it
    writes all of them where llm.continuous_batching is off, and `reading_users` where each comes with a text of their
    own, as a turn comes with its passages; they wait for each other where llm.slots is lower. `bandwidth_share` is the
    part of the memory's copying speed that is spent on reading the weights, which every token takes once.
    """

    model: str
    backend: str
    quantisation: str
    device: str
    load_seconds: float
    memory_gib: float
    read: float
    written: float
    read_again_seconds: float
    batches: dict[int, float]
    users: dict[int, tuple[float, float]]
    sampling_users: dict[int, tuple[float, float]]
    reading_users: dict[int, tuple[float, float]]
    bandwidth_share: float


def llm(
    model: Annotated[
        str, typer.Option(help="A name of the catalogue, a path, or (transformers) a hub id.")
    ] = "default",
    backend: Annotated[Backend, typer.Option(help="What runs it.")] = "llama.cpp",
    quantisation: Annotated[Quantisation, typer.Option(help="Of transformers' weights.")] = "none",
    every: Annotated[
        bool, typer.Option("--all", help="Measure every engine, one after the other, and name the fastest.")
    ] = False,
    into: Annotated[Path | None, typer.Option("--out", help="A folder for llm.jsonl.")] = None,
    *,
    settings_options: SettingsOptions,
) -> None:
    """Measure loading, memory, reading and writing of one model, on one engine or on all of them."""
    settings = settings_options.load_settings()
    create_results_folder(into)
    if every:
        # a server is somebody else's machine, and is asked only where one is set
        engines = [engine for engine in get_args(Backend) if engine != "server" or settings.llm.server]
        costs = [measure_in_process(model, engine, quantisation, settings_options) for engine in engines]
    else:
        costs = [asdict(measure(model, backend, quantisation, settings))]
    print_costs(costs)
    if every:
        output_console.print(fastest(costs))
    if into:
        with report_write_errors(into), (into / "llm.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(cost) + "\n" for cost in costs)


def print_costs(costs: Sequence[Mapping[str, Any]]) -> None:
    """The costs side by side, a line for each engine."""
    print_summary({"engine": {f"{cost['backend']}, {cost['quantisation']}": cost for cost in costs}}, as_json=False)


def fastest(costs: Sequence[Mapping[str, Any]]) -> str:
    """Which engine takes the least time for a reply in chat, and for short answers to many questions.

    Chat reads some 600 tokens and writes some 75 for one person; an evaluation reads as many and writes 8, for 16
    questions side by side.
    """
    chat = min(costs, key=lambda cost: _READ / cost["read"] + _CHAT / cost["written"])
    evaluation = min(costs, key=lambda cost: _READ / cost["read"] + _SHORT / cost["batches"][_SIDE_BY_SIDE])
    return f"Fastest here: {chat['backend']} for chat, {evaluation['backend']} for evaluation."


def measure_in_process(
    model: str, backend: str, quantisation: str, settings_options: SettingsOptions
) -> dict[str, Any]:
    """The costs of one engine, measured in a process of its own, so that no other engine's memory counts.

    Raises:
        ModelError: they could not be measured; the message ends with what that process said.
    """
    with TemporaryDirectory() as folder:
        options = {"--model": model, "--backend": backend, "--quantisation": quantisation, "--out": folder}
        error_console.print(f"Measuring {backend} ...", style="dim")
        command = command_of("llm", options, settings_options)
        completed = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if completed.returncode:
            raise ModelError(f"{backend} could not be measured: {completed.stderr.strip()[-500:]}")
        cost = json.loads((Path(folder) / "llm.jsonl").read_text(encoding="utf-8"))
    return {**cost, "batches": {int(size): speed for size, speed in cost["batches"].items()}}


def command_of(benchmark: str, options: Mapping[str, object], settings_options: SettingsOptions) -> list[str]:
    """The command line of a benchmark that runs in a process of its own, with the same settings."""
    values = {**options, "--settings": settings_options.settings_file, "--data-dir": settings_options.data_dir}
    words = [str(word) for option in values.items() if option[1] for word in option]
    return [sys.executable, "-m", "assistant", "bench", benchmark, *words]


def measure(model: str, backend: Backend, quantisation: Quantisation, settings: Settings) -> Cost:
    """Load the model and time it; memory is that of this process (CPU) and of the GPUs, counted from before loading.

    Raises:
        ModelError: the model can't be fetched or loaded.
    """
    path = Catalogue.load().resolve(model, settings)
    llm_settings = settings.llm.model_copy(update={"model": model, "backend": backend, "quantisation": quantisation})
    settings = settings.model_copy(update={"llm": llm_settings})
    memory_before = held_bytes()
    start = perf_counter()
    loaded_model = load(settings, silent)
    at_end(loaded_model.close)
    load_seconds = perf_counter() - start
    weights = getattr(loaded_model, "weight_bytes", 0) or path.stat().st_size
    read_seconds = [_seconds(loaded_model, _prompt(n), 1) for n in range(REPEATS)]
    reread_seconds = [_seconds(loaded_model, _prompt(REPEATS - 1), 1) for _ in range(REPEATS)]
    written_per_second = median(_writing_speed(loaded_model, _prompt(REPEATS - 1)) for _ in range(REPEATS))
    return Cost(
        model=loaded_model.name,
        backend=backend,
        quantisation=quantisation if backend == "transformers" else "in the file",
        device=description(backend),
        load_seconds=load_seconds,
        memory_gib=(held_bytes() - memory_before + _gpu_bytes()) / _GIB,
        read=loaded_model.count(_prompt(0)) / median(read_seconds),
        written=written_per_second,
        read_again_seconds=median(reread_seconds),
        batches={size: _batch_speed(loaded_model, size) for size in BATCHES},
        users={people: _several(loaded_model, people, _story) for people in _PEOPLE},
        sampling_users={people: _several(loaded_model, people, _story, _SAMPLING) for people in _PEOPLE},
        reading_users={people: _several(loaded_model, people, _text) for people in _READERS},
        bandwidth_share=written_per_second * weights / _copy_speed(backend),
    )


def _prompt(seed: int) -> Messages:
    # What differs stands first, so that no prompt finds another's beginning in a cache.
    return (Message("user", f"Text {seed}. " + _WORDS * (PROMPT_WORDS // 16) + "Tell a story about it."),)


def _seconds(model: LLM, prompt: Messages, tokens: int) -> float:
    start = perf_counter()
    for _ in model.stream(prompt, Options(tokens), Event()):
        pass
    return perf_counter() - start


def _writing_speed(model: LLM, prompt: Messages) -> float:
    """Tokens a second after the first piece of the reply."""
    first, *_, last = [
        (completion.completion_tokens, perf_counter())
        for completion in model.stream(prompt, Options(WRITTEN), Event())
        if not completion.read
    ]
    return (last[0] - first[0]) / (last[1] - first[1])


def _batch_speed(model: LLM, size: int) -> float:
    prompts: list[Messages] = [(Message("user", f"Tell a long story about the number {n}."),) for n in range(size)]
    start = perf_counter()
    completions = model.complete(prompts, Options(BATCH_WRITTEN), Event())
    return sum(completion.completion_tokens for completion in completions) / (perf_counter() - start)


def _story(person: int) -> Messages:
    return (Message("user", f"Person {person} would like to hear a long story about bread."),)


def _text(person: int) -> Messages:
    # told apart from the texts that were read before
    return _prompt(100 + person)


def _several(
    model: LLM, people: int, prompt: Callable[[int], Messages], temperature: float = 0.0
) -> tuple[float, float]:
    """Each asks for something of their own in a thread of their own, all at once."""
    start = perf_counter()

    def ask(n: int) -> tuple[int, float]:
        first, tokens = 0.0, 0
        for completion in model.stream(prompt(n), Options(BATCH_WRITTEN, temperature), Event()):
            if completion.read:
                continue
            first, tokens = first or perf_counter() - start, completion.completion_tokens
        return tokens, first

    with ThreadPoolExecutor(people) as pool:
        replies = list(pool.map(ask, range(people)))
    return sum(tokens for tokens, _ in replies) / (perf_counter() - start), max(first for _, first in replies)


def _gpu_bytes() -> int:
    return int(_with_torch(lambda torch: torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0))


def _copy_speed(backend: Backend) -> float:
    """Bytes that are read a second when a large block is copied (as many are written, which is counted too)."""

    def copy(torch: Any) -> float:
        gpu = backend == "transformers" and torch.cuda.is_available()
        block = torch.ones(1 << 28, dtype=torch.uint8, device="cuda" if gpu else "cpu")
        target, times = torch.empty_like(block), []
        for _ in range(5):
            start = perf_counter()
            target.copy_(block)
            if gpu:
                torch.cuda.synchronize()
            times.append(perf_counter() - start)
        return float(2 * block.numel() / min(times))

    return float(_with_torch(copy))


def _with_torch(ask: Callable[[Any], Any]) -> Any:
    import torch  # noqa: PLC0415 - takes seconds to import

    return ask(torch)
