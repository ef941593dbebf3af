"""Measures in a few seconds how fast a model reads and writes on this machine, and stores the result.

`speeds.json` in the data folder is a list of `MeasuredSpeed` records, one for each model, engine and processor; where
several match, the newest counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from time import perf_counter
from uuid import uuid4

from filelock import FileLock

from assistant.errors import ModelError, disk_errors_as
from assistant.llm.catalogue import Catalogue
from assistant.llm.load import SERVER
from assistant.llm.processor import description
from assistant.protocols import Engine
from assistant.settings import LLMSettings, Settings
from assistant.types import Completion, Message, Messages, Options

_SENTENCE = "Bread is made of flour, water, salt and time, and a baker knows which of them to hurry. "
# How often the sentence is repeated in the prompt to warm up and in the measured one: some 60 and 400 tokens.
_SHORT, _LONG = 3, 20
_REPLY_TOKENS = 32


@dataclass(frozen=True, slots=True)
class MeasuredSpeed:
    """Tokens a second that a model reads and writes. `size` is that of its weights in bytes, 0 where it isn't known.

    `processor` is what the engine computes with here, or the address of a server.
    """

    model: str
    backend: str
    processor: str
    size: int
    read: float
    written: float


def measure_speed(engine: Engine, settings: Settings, stop: Event) -> MeasuredSpeed | None:
    """Measure the engine, which was loaded with these settings, and store the result; None if stopped.

    Raises:
        ModelError: the model wrote too little, or failed; or the data folder can't be written.
    """
    rates = _measured_rates(engine, stop)
    if rates is None:
        return None
    entry = Catalogue.load().listed_entry(engine.name)
    local_path = Path(settings.llm.model).expanduser()
    size = entry.size if entry else local_path.stat().st_size if local_path.is_file() else 0
    speed = MeasuredSpeed(*_engine_key(engine, settings), size, *rates)
    _store(speed, settings)
    return speed


def is_measured(engine: Engine, settings: Settings) -> bool:
    """Whether a speed is stored for this engine, which was loaded with these settings."""
    return speed_of(engine, settings) is not None


def speed_of(engine: Engine, settings: Settings) -> MeasuredSpeed | None:
    """The stored speed of this engine, which was loaded with these settings; None if it was never measured."""
    key = _engine_key(engine, settings)
    return next((speed for speed in reversed(speeds(settings)) if _key(speed) == key), None)


def processor_of(backend: str, llm_settings: LLMSettings) -> str:
    """Where that backend computes: a `MeasuredSpeed`'s `processor`."""
    return llm_settings.server if backend == SERVER else description(backend)


def speeds(settings: Settings) -> tuple[MeasuredSpeed, ...]:
    """All stored speeds, also those of other machines; none if the file can't be read, since it can be made again."""
    try:
        return tuple(MeasuredSpeed(**record) for record in json.loads(_file(settings).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return ()


def _measured_rates(engine: Engine, stop: Event) -> tuple[float, float] | None:
    """Tokens read and written a second, after a first prompt to warm the engine up; None if stopped."""
    list(engine.stream(_prompt(_SHORT), Options(1), stop))
    prompt = _prompt(_LONG)
    tokens, start_time = engine.count(prompt), perf_counter()
    pieces = [(piece, perf_counter()) for piece in _written_pieces(engine, prompt, stop)]
    if stop.is_set():
        return None
    (first_piece, first_time), (last_piece, last_time) = pieces[0], pieces[-1]
    written = last_piece.completion_tokens - first_piece.completion_tokens
    if written < 1:
        raise ModelError(f"{engine.name} wrote too little to be measured; see whether it is a chat model.")
    return tokens / (first_time - start_time), written / (last_time - first_time)


def _written_pieces(engine: Engine, prompt: Messages, stop: Event) -> Iterator[Completion]:
    return (piece for piece in engine.stream(prompt, Options(_REPLY_TOKENS), stop) if not piece.read)


def _prompt(times: int) -> Messages:
    # What differs stands first, so that no prompt finds another's beginning in a cache.
    return (Message("user", f"Text {uuid4().hex[:8]}. " + _SENTENCE * times + "Tell a long story about it."),)


def _store(speed: MeasuredSpeed, settings: Settings) -> None:
    file = _file(settings)
    with disk_errors_as(ModelError, f"{file} can't be written", "free space or set data_dir"):
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(file.with_suffix(".lock")):
            other_speeds = [other for other in speeds(settings) if _key(other) != _key(speed)]
            partial = file.with_suffix(".partial")
            partial.write_text(
                json.dumps([asdict(other) for other in (*other_speeds, speed)], indent=1), encoding="utf-8"
            )
            partial.replace(file)


def _engine_key(engine: Engine, settings: Settings) -> tuple[str, str, str]:
    """The key of a `MeasuredSpeed`: the model, the backend that really runs it, and the processor."""
    entry = Catalogue.load().listed_entry(engine.name)
    return entry.name if entry else engine.name, engine.backend, processor_of(engine.backend, settings.llm)


def _key(speed: MeasuredSpeed) -> tuple[str, str, str]:
    return speed.model, speed.backend, speed.processor


def _file(settings: Settings) -> Path:
    return settings.data_dir / "speeds.json"
