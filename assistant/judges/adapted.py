"""A cross-encoder that comes as an adapter, whose weights are added to those of an encoder that is fetched.

An adapter has low-rank matrices for the layers, and a head (Hu et al. 2022, "LoRA"): a fortieth of all weights, in the
file format of the library peft, which trains it; peft isn't needed to add the weights up. OpenVINO holds the encoder
once for all adapters, whose weights are its inputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save_file

from assistant.errors import DataError, ModelError, disk_errors_as
from assistant.judges.packed import PLAIN, VERSION, copy_texts, small
from assistant.llm import mpnet
from assistant.llm.bert import CompiledNetwork, Tensors, TextInputs, errors_as_unfit
from assistant.llm.catalogue import Catalogue
from assistant.llm.mapped_tensors import MappedTensors
from assistant.llm.mpnet import DOWN, UP, Adaptable
from assistant.protocols import Progress
from assistant.settings import Settings

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
# The encoder of the adapters that come with Sequitur.
BASE = "all-mpnet-base-v2"
# What was fitted to one adapter and doesn't hold for another: its curve, blend and calibration.
_FITTED = ("judge.json", "blend.json", "calibration.json")
_PEFT_PREFIX = "base_model.model."


def encoder(settings: Settings, progress: Progress) -> Path:
    """The folder of the encoder, fetched if need be.

    Raises:
        ModelError: it can't be fetched.
    """
    return Catalogue.load().resolve(BASE, settings, progress)


def added(adapter: Path, base: Path) -> Iterator[tuple[str, NDArray[Any]]]:
    """The weights of the cross-encoder one by one, with their names in transformers, in float32.

    Only one of them is in memory at a time, besides the adapter.

    Args:
        adapter: the folder of the adapter.
        base: the folder of the encoder.

    Raises:
        ModelError: one of the two can't be read, or they don't belong together.
    """
    try:
        config = json.loads((adapter / CONFIG).read_text(encoding="utf-8"))
        prefix = json.loads((base / "config.json").read_text(encoding="utf-8"))["model_type"]
        tensors = {name.removeprefix(_PEFT_PREFIX): value for name, value in load_file(adapter / WEIGHTS).items()}
        scale = np.float32(config["lora_alpha"] / config["r"])
        with safe_open(base / PLAIN, "np") as file:
            for name in (key for key in file.keys() if "pooler" not in key):  # noqa: SIM118 - it is no dictionary
                yield f"{prefix}.{name}", _merged(f"{prefix}.{name}", file.get_tensor(name), tensors, scale)
        yield from ((_head_name(name), value.astype(np.float32)) for name, value in tensors.items())
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError, SafetensorError) as error:
        raise ModelError(f"{adapter} can't be added to {base} ({error}); get both again.") from error


def _merged(name: str, weight: NDArray[Any], tensors: dict[str, NDArray[Any]], scale: np.float32) -> NDArray[Any]:
    """The weight with what the adapter adds to it; the adapter's matrices are removed from `tensors`."""
    layer = name.removesuffix(".weight")
    if f"{layer}{DOWN}" not in tensors:
        return weight
    up, down = (tensors.pop(f"{layer}{ending}").astype(np.float32) for ending in (UP, DOWN))
    merged: NDArray[Any] = weight + scale * (up @ down)
    return merged


def _head_name(name: str) -> str:
    """The name of a tensor that no layer took: one of the head; a layer that the base lacks is an error."""
    if name.endswith((DOWN, UP)):
        raise KeyError(name)
    return name


def pack(folder: Path, target: Path) -> int:
    """Write a trained adapter in half precision, with what was fitted to it; returns the size of all files in bytes.

    Raises:
        ModelError: the folder holds no adapter.
        DataError: it can't be written.
    """
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        tensors = {name: value.astype(np.float16) for name, value in load_file(folder / WEIGHTS).items()}
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelError(f"{folder} holds nothing that can be packed ({error}); train a model first.") from error
    packed_config = {**config, "base_model_name_or_path": f"sentence-transformers/{BASE}"}
    with disk_errors_as(DataError, f"The model can't be written to {target}", "choose another folder"):
        target.mkdir(parents=True, exist_ok=True)
        (target / CONFIG).write_text(json.dumps(packed_config, indent=2) + "\n", encoding="utf-8")
        save_file(tensors, target / WEIGHTS)
        _copy_fitted(folder, target)
    return sum(file.stat().st_size for file in target.iterdir())


def _copy_fitted(folder: Path, target: Path) -> None:
    """Copy what was fitted to the adapter, and remove what the target has of another adapter."""
    for name in _FITTED:
        if (folder / name).exists():
            (target / name).write_bytes((folder / name).read_bytes())
        else:
            (target / name).unlink(missing_ok=True)


class Adapted:
    """The cross-encoder run by OpenVINO; the encoder is in memory once for all adapters, in int8.

    Args:
        adapter: the folder of the adapter.
        base: the folder of the encoder.
        length: how many tokens of a pair are read.

    Raises:
        UnfitError: OpenVINO can't run it, or adapter or encoder is broken.
    """

    def __init__(self, adapter: Path, base: Path, length: int) -> None:
        with errors_as_unfit():
            self._learned = _adapter_weights(adapter)
            self._texts = TextInputs(base, length, Adaptable)
            self.encoder = _shared_encoder(base, frozenset(self._learned))

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """A logit for each pair, shape (pairs, 1); all are read at once."""
        return self.encoder(self._texts(pairs), self._learned)


class Encoder:
    """An encoder's network, which takes the adapter's weights of these names as inputs."""

    def __init__(self, base: Path, weight_names: frozenset[str]) -> None:
        tensors = _cached_int8_weights(base)
        network = Adaptable(tensors, json.loads((base / "config.json").read_text(encoding="utf-8")), weight_names)
        self._running = CompiledNetwork(network.compiled(mpnet.logit), tensors)
        self._names = tuple(network.extra_inputs)
        if unknown_names := weight_names.difference(self._names):
            raise ValueError(f"the encoder has no {min(unknown_names)}")

    def __call__(self, texts: Sequence[NDArray[Any]], tensors: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """A logit for each pair, shape (pairs, 1), with these weights of the adapter."""
        return self._running([*texts, *(tensors[name] for name in self._names)])


_ENCODERS: WeakValueDictionary[tuple[Path, frozenset[str]], Encoder] = WeakValueDictionary()
_LOADING = Lock()


def _shared_encoder(base: Path, weight_names: frozenset[str]) -> Encoder:
    """The encoder, loaded unless it is in memory already."""
    with _LOADING:
        encoder = _ENCODERS.get((base, weight_names)) or Encoder(base, weight_names)
        _ENCODERS[base, weight_names] = encoder
        return encoder


def _cached_int8_weights(base: Path) -> Tensors:
    """The encoder's weights as in packed models, from a file beside its folder if that can be written."""
    cache_path, base_stat = base.with_name(f"{base.name}.int8.safetensors"), (base / PLAIN).stat()
    expected_notes = {"of": f"{base_stat.st_size} bytes, changed {base_stat.st_mtime_ns}", "version": VERSION}
    try:
        with FileLock(f"{cache_path}.lock"):
            if _notes(cache_path) != expected_notes:
                partial = cache_path.with_suffix(".partial")
                try:
                    save_file(_int8_weights(base), partial, metadata=expected_notes)
                    partial.replace(cache_path)
                finally:
                    partial.unlink(missing_ok=True)
        return MappedTensors(cache_path)
    except (OSError, SafetensorError):
        return _int8_weights(base)


def _notes(file: Path) -> dict[str, str]:
    try:
        return MappedTensors(file).notes
    except (OSError, SafetensorError):
        return {}


def _int8_weights(base: Path) -> dict[str, NDArray[Any]]:
    """The encoder's weights; matrices are in int8 with a scale for each row."""
    with safe_open(base / PLAIN, "np") as file:
        names = [name for name in file.keys() if "pooler" not in name]  # noqa: SIM118 - it is no dictionary
        return {key: value for name in names for key, value in small(name, file.get_tensor(name)).items()}


def _adapter_weights(adapter: Path) -> dict[str, NDArray[np.float32]]:
    """The adapter's weights, scaled, in float32, by the names that the encoder has in its own folder."""
    config = json.loads((adapter / CONFIG).read_text(encoding="utf-8"))
    scales = {UP: config["lora_alpha"] / config["r"]}
    return {
        _without_prefixes(name): value.astype(np.float32) * np.float32(scales.get(name[-len(UP) :], 1.0))
        for name, value in load_file(adapter / WEIGHTS).items()
    }


def _without_prefixes(name: str) -> str:
    """A name without the prefixes of peft and transformers."""
    inner_name = name.removeprefix(_PEFT_PREFIX)
    return inner_name if inner_name.startswith("classifier.") else inner_name.partition(".")[2]


@contextmanager
def whole(adapter: Path, base: Path) -> Iterator[Path]:
    """A folder with the cross-encoder as transformers reads it, for as long as the block lasts.

    Raises:
        ModelError: as `added` does.
    """
    weights = dict(added(adapter, base))
    with TemporaryDirectory() as temporary_name:
        folder = Path(temporary_name)
        copy_texts(base, folder)
        config = json.loads((base / "config.json").read_text(encoding="utf-8"))
        full_config = {**config, "num_labels": 1, "architectures": ["MPNetForSequenceClassification"]}
        (folder / "config.json").write_text(json.dumps(full_config), encoding="utf-8")
        save_file(weights, folder / PLAIN, metadata={"format": "pt"})
        yield folder
