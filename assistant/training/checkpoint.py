"""The checkpoint from which a killed training goes on: one file, written in one step, that names its training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from assistant.errors import DataError, disk_errors_as

NAME = "checkpoint.pt"


def save(folder: Path, claim: dict[str, Any], state: dict[str, Any]) -> None:
    """Write `state` into the folder. `claim` is what a training that goes on has to share."""
    partial = folder / f"{NAME}.partial"
    torch.save({"plan": claim, **state}, partial)
    partial.replace(folder / NAME)


def load(folder: Path, claim: dict[str, Any], device: torch.device) -> dict[str, Any] | None:
    """What `save` wrote last, None for a new training; makes the folder.

    Raises:
        DataError: the folder can't be written to, or holds something broken or a training with another claim.
    """
    with disk_errors_as(DataError, f"{folder} can't be written to"):
        folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    if not path.exists():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # unpickling what is broken ends in any error
        raise DataError(f"{path} can't be read ({error}); remove it to train from the start.") from error
    if state["plan"] != claim:
        raise DataError(f"{folder} holds a training by another plan or on other questions; choose another.")
    return state
