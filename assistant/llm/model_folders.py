"""Models in folders: their names, which include a hash of the weights, and what kind they are."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

_WEIGHTS = (".safetensors", ".bin")
_BLOCK = 1 << 20  # bytes; weights may be larger than the memory
# Beside the folder of a model that was fetched, there is what its files were found to be.
NOTE = ".checked.json"


def name_of(folder: Path, *other_files: str) -> str:
    """The folder's name; if its model was not fetched, with a hash of its weights and of `other_files`.

    Many folders have the same name, and training changes their content. Vectors and calibrations that were made with
    one model must not be taken for another's.
    """
    if folder.with_name(folder.name + NOTE).exists():
        return folder.name
    digest = sha256()
    for file in sorted(folder.rglob("*")):
        if file.suffix in _WEIGHTS or file.name in other_files:
            with file.open("rb") as stream:
                while block := stream.read(_BLOCK):
                    digest.update(block)
    return f"{folder.name}-{digest.hexdigest()[:8]}"


def is_encoder_decoder(folder: Path) -> bool:
    """Whether the folder's configuration names an encoder-decoder, such as a T5."""
    try:
        return bool(json.loads((folder / "config.json").read_text(encoding="utf-8")).get("is_encoder_decoder"))
    except (OSError, ValueError):
        return False
