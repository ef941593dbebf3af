"""A GGUF model converted for OpenVINO: made once, in a process of its own, checked at every start.

The folder holds `openvino_model.xml` and `.bin`, the tokenizer and detokenizer in the same form, and `made.json`: what
the GGUF header says of the model, and the size of each file, by which one that was cut short is found.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil
from pydantic import TypeAdapter, ValidationError

from assistant.errors import ModelError
from assistant.llm import gguf
from assistant.llm.engines import openvino_rows
from assistant.llm.gguf_conversion import converted_once
from assistant.protocols import Progress
from assistant.settings import Settings

MODEL = "openvino_model.xml"
_NOTES_FILE = "made.json"
_PACKAGE = "openvino-genai"
_GIB = 1 << 30
# Measured on a Q4_K_M file of 1.1 GB: what the library makes of it is 1.15 times as large, with scales by rows 1.08
# times; and the most memory that is held meanwhile, beside pages of files that can be dropped at any time, is 1.5 GiB
# more than that.
_GROWTH, _SCALED_SIZE = 1.15, 1.08
_EXTRA_MEMORY = 1.5 * _GIB
_POLL = 0.2
# Which way of converting this is: models that were made otherwise are made again.
_CONVERSION = "rows"
_ROWS_FILE = "openvino_rows.xml"
# What runs in the process of its own: the library writes the converted model beside the file that it is given.
_CONVERT_SCRIPT = (
    "import sys, openvino_genai\n"
    "openvino_genai.LLMPipeline(sys.argv[1], 'CPU', enable_save_ov_model=True)\n"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ConversionNotes:
    """The notes on a converted model: its longest context, the tokens that end a reply, and its files' sizes.

    `cache_bytes` is what one token takes in a 16-bit key-value cache.
    """

    context: int
    cache_bytes: int
    ends: tuple[int, ...]
    files: dict[str, int] = field(default_factory=dict)


_ADAPTER: TypeAdapter[ConversionNotes] = TypeAdapter(ConversionNotes)


def converted(path: Path, settings: Settings, progress: Progress) -> Path:
    """The folder of the converted model, made on first use (16 s for 1.1 GB); a damaged one is made again.

    Raises:
        ModelError: the package is missing, the file is no chat model in GGUF, or memory or disk are too small for
            the conversion.
    """
    kind = f"openvino-{_package_version()}-{_CONVERSION}"
    try:
        for _ in range(2):
            folder = converted_once(path, kind, settings, lambda new_folder: _make(path, new_folder, progress))
            if _is_whole(folder):
                return folder
            shutil.rmtree(folder)
    except OSError as error:
        raise ModelError(f"{path} can't be converted for OpenVINO ({error.strerror}); free some disk space.") from error
    raise ModelError(f"{folder} is damaged whenever it is made; check the disk, or set llm.backend to llama.cpp.")


def read_notes(folder: Path) -> ConversionNotes:
    """The notes on a converted model, read from its folder.

    Raises:
        ModelError: the folder holds no converted model.
    """
    try:
        return _ADAPTER.validate_json((folder / _NOTES_FILE).read_bytes())
    except (OSError, ValidationError) as error:
        raise ModelError(f"{folder} holds no model converted for OpenVINO; delete it and start again.") from error


def _package_version() -> str:
    try:
        return version(_PACKAGE)
    except PackageNotFoundError as error:
        raise ModelError(
            f"OpenVINO is not installed; `pip install {_PACKAGE}`, or set llm.backend to llama.cpp."
        ) from error


def _is_whole(folder: Path) -> bool:
    try:
        files = read_notes(folder).files
    except ModelError:
        return False
    return all((folder / name).exists() and (folder / name).stat().st_size == size for name, size in files.items())


def _make(path: Path, folder: Path, progress: Progress) -> None:
    notes = _header_notes(path)
    folder.mkdir()
    _check_room(path, folder)
    link = folder / path.name
    try:
        link.symlink_to(path.resolve())
    except OSError:  # Windows wants a privilege for links
        shutil.copy2(path, link)
    _run(path, folder, ["-c", _CONVERT_SCRIPT, str(link)], progress)
    link.unlink()
    _run(path, folder, ["-m", openvino_rows.__name__, str(folder / MODEL), str(folder / _ROWS_FILE)], progress)
    for suffix in (".xml", ".bin"):
        (folder / _ROWS_FILE).with_suffix(suffix).replace((folder / MODEL).with_suffix(suffix))
    files = {file.name: file.stat().st_size for file in sorted(folder.iterdir())}
    record = {**asdict(notes), "files": files}
    (folder / _NOTES_FILE).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    progress(_output_bytes(path), _output_bytes(path))


def _header_notes(path: Path) -> ConversionNotes:
    header = gguf.header(path)
    if "tokenizer.chat_template" not in header:
        raise ModelError(f"{path} has no chat template, so it is no chat model; choose an instruct model.")
    ends = [header[key] for key in ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id") if key in header]
    max_context = int(header.get(f"{header.get('general.architecture')}.context_length", 0))
    return ConversionNotes(max_context, gguf.kv_bytes(header), tuple(int(end) for end in ends))


def _check_room(path: Path, folder: Path) -> None:
    needed = path.stat().st_size * _GROWTH + _EXTRA_MEMORY
    free = psutil.virtual_memory().available
    if needed > free:
        raise ModelError(
            f"To convert {path.name} takes {needed / _GIB:.1f} GiB of free memory and {free / _GIB:.1f} GiB are free;"
            " close other programs, or set llm.backend to llama.cpp."
        )
    needed_disk, free_disk = _output_bytes(path), shutil.disk_usage(folder).free
    if needed_disk > free_disk:
        raise ModelError(
            f"To convert {path.name} takes {needed_disk / _GIB:.1f} GiB on the disk of {folder.parent} and"
            f" {free_disk / _GIB:.1f} GiB are free; make room, or set llm.backend to llama.cpp."
        )


def _output_bytes(path: Path) -> int:
    """Bytes that are written on the way: the model as the library converts it, and then with scales by rows."""
    return int(path.stat().st_size * (_GROWTH + _SCALED_SIZE))


def _run(path: Path, folder: Path, arguments: list[str], progress: Progress) -> None:
    """Run Python in a process of its own, whose memory is freed when it ends, reporting how much is written."""
    total, python_path = _output_bytes(path), os.pathsep.join(filter(None, sys.path))  # it finds what this one finds
    with (folder / "log").open("w+b") as log:
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": python_path}
        )
        try:
            while process.poll() is None:
                progress(min(_written_bytes(folder), total), total)
                time.sleep(_POLL)
        finally:
            process.kill()
            process.wait()
        if process.returncode or not (folder / MODEL).exists():
            log.seek(0)
            raise ModelError(_failure_message(path, log.read().decode("utf-8", "replace")))
    (folder / "log").unlink()


def _written_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("openvino_*"))


def _failure_message(path: Path, log: str) -> str:
    reason = (log.strip().splitlines() or ["the process was ended, perhaps for want of memory"])[-1][:200]
    return (
        f"{path.name} can't be converted for OpenVINO ({reason}); see that disk and memory have room, or set"
        " llm.backend to llama.cpp."
    )
