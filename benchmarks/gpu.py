"""`bench gpu`: the quantised model of a GPU, all that there is to measure of it, in one command (docs/gpu.md)."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, get_args

import typer

from assistant.commands.common import create_results_folder, error_console, report_write_errors
from assistant.commands.option_groups import SettingsOptions
from assistant.commands.progress_bars import bar_of_bytes
from assistant.errors import ModelError
from assistant.llm.catalogue import Catalogue
from assistant.llm.load import GPU_DEFAULT, NO_CUDA
from assistant.llm.processor import description, sees_gpu
from assistant.settings import Quantisation
from benchmarks.llm import command_of, measure_in_process, print_costs

_PACKAGES = ("torch", "transformers", "accelerate", "bitsandbytes")
_BACKEND = "transformers"


@dataclass(frozen=True)
class Machine:
    """What it was measured on. `memory_gib` is that of each GPU."""

    device: str
    memory_gib: tuple[float, ...]
    cuda: str | None
    packages: dict[str, str]


def gpu(
    into: Annotated[Path, typer.Option("--out", help="A folder for gpu.json and turn.json.")],
    model: Annotated[str, typer.Option(help="A name of the catalogue, a hub id or a folder.")] = GPU_DEFAULT,
    quantisations: Annotated[str, typer.Option(help="Quantisations to measure, with commas between them.")] = ",".join(
        get_args(Quantisation)
    ),
    limit: Annotated[int, typer.Option(min=0, help="How many of the twelve questions of `bench turn` to ask.")] = 12,
    on_cpu: Annotated[
        bool, typer.Option("--on-cpu", help="Measure without a GPU all the same, to try this command.")
    ] = False,
    *,
    options: SettingsOptions,
) -> None:
    """Measure the model of a GPU: loading, memory, speed, batches and people at once by quantisation, and whole turns.

    Each is measured in a process of its own. What fails, say for want of memory, is reported, and the rest goes on.
    """
    chosen_quantisations = [_checked_quantisation(name.strip()) for name in quantisations.split(",")]
    problem = missing()
    if problem and not on_cpu:
        raise ModelError(problem)
    settings = options.load_settings()
    create_results_folder(into)
    with bar_of_bytes(f"Fetching {model}") as progress:
        Catalogue.load().resolve(model, settings, progress)
    costs, failed = [], {}
    for quantisation in chosen_quantisations:
        try:
            costs.append(measure_in_process(model, _BACKEND, quantisation, options))
        except ModelError as error:
            failed[quantisation] = str(error)
            error_console.print(str(error), style="yellow", markup=False)
        report = {"machine": asdict(_machine()), "costs": costs, "failed": failed}
        with report_write_errors(into):
            (into / "gpu.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    if costs:
        print_costs(costs)
    failure = _time_turns(model, limit, into, options) if limit else ""
    if failed or failure:
        raise ModelError(f"Not all could be measured: {'; '.join([*failed, *filter(None, [failure])])}; see above why.")


def missing() -> str:
    """What a quantised model on a GPU lacks on this machine, in a sentence; "" if nothing."""
    if not sees_gpu():
        import torch  # noqa: PLC0415 - takes seconds to import

        if shutil.which("nvidia-smi") and torch.version.cuda is None:
            return NO_CUDA
        return "There is no GPU that torch can use; run this where `nvidia-smi` lists one, or try it with --on-cpu."
    packages = [name for name in _PACKAGES if not find_spec(name)]
    return f"{', '.join(packages)} can't be found; run `pip install -r requirements.txt`." if packages else ""


def _checked_quantisation(quantisation: str) -> Quantisation:
    for choice in get_args(Quantisation):
        if quantisation == choice:
            return choice  # type: ignore[no-any-return]
    raise ModelError(f"There is no quantisation '{quantisation}'; give some of {', '.join(get_args(Quantisation))}.")


def _machine() -> Machine:
    import torch  # noqa: PLC0415

    cards = range(torch.cuda.device_count())
    memory = tuple(torch.cuda.get_device_properties(card).total_memory / (1 << 30) for card in cards)
    return Machine(description(_BACKEND), memory, torch.version.cuda, {name: _version(name) for name in _PACKAGES})


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _time_turns(model: str, limit: int, folder: Path, options: SettingsOptions) -> str:
    """Time whole turns with the quantisation that the settings name, twice; what went wrong, or ""."""
    turn_options = {"--model": model, "--backend": _BACKEND, "--limit": limit, "--out": folder}
    completed = subprocess.run(command_of("turn", turn_options, options), check=False)
    return "whole turns" if completed.returncode else ""
