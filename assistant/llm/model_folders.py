"""What models in folders are called."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

_WEIGHTS = (".safetensors", ".bin")
_PIECE = 1 << 20  # bytes; weights may be larger than the memory
# Beside the folder of a model that was fetched, there is what its files were found to be.
NOTE = ".checked.json"


def name_of(folder: Path, *also: str) -> str:
    """The folder's name; of one that was not fetched with what tells its weights, and files that are called `also`.

    Many folders are called the same, and what is in one changes with training. What was made with a model, such as
    vectors and calibrations, must not be taken for another's.
    """
    if folder.with_name(folder.name + NOTE).exists():
        return folder.name
    digest = sha256()
    for file in sorted(folder.rglob("*")):
        if file.suffix in _WEIGHTS or file.name in also:
            with file.open("rb") as content:
                while piece := content.read(_PIECE):
                    digest.update(piece)
    return f"{folder.name}-{digest.hexdigest()[:8]}"
