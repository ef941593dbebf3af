"""Converts a GGUF file once into a folder, which is found there at every later start."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from filelock import FileLock

from assistant.settings import Settings

_END = 1 << 20


def converted_once(path: Path, kind: str, settings: Settings, make: Callable[[Path], None]) -> Path:
    """The folder of kind `kind` that `make` fills from the GGUF file `path`, filled now if it is not there yet.

    `make` creates the folder that it is given, which becomes the result in one step: a folder that is there is whole.
    Of several processes one makes it and the others wait.
    """
    folder = settings.models_dir / f"{path.stem}-{path.stat().st_size}-{_digest_of_end(path)}-{kind}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if not folder.exists():
            partial = folder.with_name(f"{folder.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            try:
                make(partial)
                partial.replace(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return folder


def _digest_of_end(path: Path) -> str:
    # A file ends with weights; to read all of a gigabyte would take seconds at each start.
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _END))
        return sha256(file.read()).hexdigest()[:12]
