"""`bench convert`: what it takes to convert a GGUF file for OpenVINO, which is done once."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated

import psutil
import typer

from assistant.commands.option_groups import SettingsOptions
from assistant.llm.catalogue import Catalogue
from assistant.llm.engines.openvino_model import converted
from assistant.settings import Settings
from benchmarks.figures import Figures

_GB = 1e9


def convert(
    model: Annotated[str, typer.Option(help="A name of the catalogue, or the path of a GGUF file.")] = "default",
    *,
    figures: Figures,
    settings_options: SettingsOptions,
) -> None:
    """Convert a model into a folder that is deleted again: seconds, disk, and the most memory held meanwhile."""
    settings = settings_options.load_settings()
    path = Catalogue.load().resolve(model, settings)
    with TemporaryDirectory() as folder:
        costs = cost(path, settings.model_copy(update={"data_dir": Path(folder)}))
    figures.tell("convert", costs, {"conversion": {model: costs}})


def cost(path: Path, settings: Settings) -> dict[str, float]:
    """Sizes and memory in GB (10^9 bytes), and seconds, of a conversion into the data folder of the settings.

    `memory_gb` is the most that the converting processes held, looked at five times a second, without pages of files,
    which the system can drop at any time; `with_files_gb` is the most with these.

    Raises:
        ModelError: the file can't be converted.
    """
    samples = [(0, 0)]
    start = perf_counter()
    folder = converted(path, settings, lambda _done, _total: samples.append(_held_memory()))
    seconds = perf_counter() - start
    without_files, with_files = (max(column) / _GB for column in zip(*samples, strict=True))
    size = sum(file.stat().st_size for file in folder.iterdir()) / _GB
    return {
        "file_gb": path.stat().st_size / _GB,
        "converted_gb": size,
        "seconds": seconds,
        "memory_gb": without_files,
        "with_files_gb": with_files,
    }


def _held_memory() -> tuple[int, int]:
    """Bytes that the processes of this one hold, without and with pages of files; only Linux tells them apart."""
    without_files = with_files = 0
    for child in psutil.Process().children(recursive=True):
        try:
            memory = child.memory_info()
        except psutil.NoSuchProcess:
            continue
        without_files += memory.rss - getattr(memory, "shared", 0)
        with_files += memory.rss
    return without_files, with_files
