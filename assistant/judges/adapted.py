"""A cross-encoder that comes as a difference: what was learned for it is added to an encoder that is fetched.

The difference is low-rank matrices for the layers, and a head (Hu et al. 2022, "LoRA"), a fortieth of the whole, in
the files of the library peft, which trains it. It isn't needed to add them up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from assistant.errors import ModelError
from assistant.judges.packed import PLAIN, copy_texts, small
from assistant.llm.catalogue import Catalogue
from assistant.protocols import Progress
from assistant.settings import Settings

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
# The encoder that the differences which come with Sequitur are added to.
BASE = "all-mpnet-base-v2"
_UNDER, _DOWN, _UP = "base_model.model.", ".lora_A.weight", ".lora_B.weight"


def encoder(settings: Settings, progress: Progress) -> Path:
    """The folder of the encoder, fetched if need be.

    Raises:
        ModelError: it can't be had.
    """
    return Catalogue.load().resolve(BASE, settings, progress)


def added(adapter: Path, base: Path) -> Iterator[tuple[str, NDArray[Any]]]:
    """The weights of the cross-encoder one by one, with their names in transformers, in float32.

    Only one of them is in memory at a time, besides what was learned.

    Args:
        adapter: the folder of the difference.
        base: the folder of the encoder.

    Raises:
        ModelError: one of the two can't be read, or they don't belong together.
    """
    try:
        config = json.loads((adapter / CONFIG).read_text(encoding="utf-8"))
        kind = json.loads((base / "config.json").read_text(encoding="utf-8"))["model_type"]
        learned = {name.removeprefix(_UNDER): value for name, value in load_file(adapter / WEIGHTS).items()}
        share = np.float32(config["lora_alpha"] / config["r"])
        with safe_open(base / PLAIN, "np") as file:
            for name in (one for one in file.keys() if "pooler" not in one):  # noqa: SIM118 - it is no dictionary
                yield f"{kind}.{name}", _changed(f"{kind}.{name}", file.get_tensor(name), learned, share)
        yield from ((_of_head(name), value.astype(np.float32)) for name, value in learned.items())
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError, SafetensorError) as error:
        raise ModelError(f"{adapter} can't be added to {base} ({error}); get both again.") from error


def _changed(name: str, weight: NDArray[Any], learned: dict[str, NDArray[Any]], share: np.float32) -> NDArray[Any]:
    """The weight with what was learned for it, which is taken out of `learned`."""
    layer = name.removesuffix(".weight")
    if f"{layer}{_DOWN}" not in learned:
        return weight
    up, down = (learned.pop(f"{layer}{end}").astype(np.float32) for end in (_UP, _DOWN))
    found: NDArray[Any] = weight + share * (up @ down)
    return found


def _of_head(name: str) -> str:
    """The name of what is left once all layers have theirs; a layer that the base lacks is no part of the head."""
    if name.endswith((_DOWN, _UP)):
        raise KeyError(name)
    return name


def added_small(adapter: Path, base: Path) -> dict[str, NDArray[Any]]:
    """The same with matrices in int8, a scale a row, as packed models have them.

    Raises:
        ModelError: as `added` does.
    """
    return {key: value for name, weight in added(adapter, base) for key, value in small(name, weight).items()}


@contextmanager
def whole(adapter: Path, base: Path) -> Iterator[Path]:
    """A folder with the cross-encoder as transformers reads it, for as long as the block lasts.

    Raises:
        ModelError: as `added` does.
    """
    weights = dict(added(adapter, base))
    with TemporaryDirectory() as name:
        plain = Path(name)
        copy_texts(base, plain)
        config = json.loads((base / "config.json").read_text(encoding="utf-8"))
        told = {**config, "num_labels": 1, "architectures": ["MPNetForSequenceClassification"]}
        (plain / "config.json").write_text(json.dumps(told), encoding="utf-8")
        save_file(weights, plain / PLAIN, metadata={"format": "pt"})
        yield plain
