"""A cross-encoder that comes as an adapter: what was learned is added to an encoder that is fetched.

The difference is low-rank matrices for the layers, and a head (Hu et al. 2022, "LoRA"), a fortieth of the whole, in
the files of the library peft, which trains it. It isn't needed to add them up. OpenVINO runs the encoder once for all
of them: what each learned is an input.
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
from assistant.llm.bert import Running, Tensors, Texts, unfit
from assistant.llm.catalogue import Catalogue
from assistant.llm.mapped_tensors import MappedTensors
from assistant.llm.mpnet import DOWN, UP, Adaptable
from assistant.protocols import Progress
from assistant.settings import Settings

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
# The encoder that the differences which come with Sequitur are added to.
BASE = "all-mpnet-base-v2"
_UNDER = "base_model.model."


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
    if f"{layer}{DOWN}" not in learned:
        return weight
    up, down = (learned.pop(f"{layer}{end}").astype(np.float32) for end in (UP, DOWN))
    found: NDArray[Any] = weight + share * (up @ down)
    return found


def _of_head(name: str) -> str:
    """The name of what is left once all layers have theirs; a layer that the base lacks is no part of the head."""
    if name.endswith((DOWN, UP)):
        raise KeyError(name)
    return name


def pack(folder: Path, into: Path) -> int:
    """Write what a training learned in half precision; the bytes of all its files.

    Raises:
        ModelError: the folder holds nothing that was learned so.
        DataError: it can't be written.
    """
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        learned = {name: value.astype(np.float16) for name, value in load_file(folder / WEIGHTS).items()}
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelError(f"{folder} holds nothing that can be packed ({error}); train a model first.") from error
    told = {**config, "base_model_name_or_path": f"sentence-transformers/{BASE}"}
    with disk_errors_as(DataError, f"The model can't be written to {into}", "choose another folder"):
        into.mkdir(parents=True, exist_ok=True)
        (into / CONFIG).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
        save_file(learned, into / WEIGHTS)
    return sum(file.stat().st_size for file in into.iterdir())


class Adapted:
    """The cross-encoder run by OpenVINO; the encoder is in memory once for all that are added to it, in int8.

    Args:
        adapter: the folder of the difference.
        base: the folder of the encoder.
        length: tokens that are read of a pair.

    Raises:
        UnfitError: OpenVINO can't run it, or one of the two is broken.
    """

    def __init__(self, adapter: Path, base: Path, length: int) -> None:
        with unfit():
            self._learned = _learned(adapter)
            self._texts = Texts(base, length, Adaptable)
            self.encoder = _shared(base, frozenset(self._learned))

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """A logit for each pair, shape (pairs, 1); all are read at once."""
        return self.encoder(self._texts(pairs), self._learned)


class Encoder:
    """An encoder's network, which takes what was learned by these names."""

    def __init__(self, base: Path, learned: frozenset[str]) -> None:
        tensors = _small(base)
        network = Adaptable(tensors, json.loads((base / "config.json").read_text(encoding="utf-8")), learned)
        self._running = Running(network.compiled(mpnet.logit), tensors)
        self._names = tuple(network.given)
        if strange := learned.difference(self._names):
            raise ValueError(f"the encoder has no {min(strange)}")

    def __call__(self, texts: Sequence[NDArray[Any]], given: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """A logit for each pair, shape (pairs, 1), with what was learned."""
        return self._running([*texts, *(given[name] for name in self._names)])


_ENCODERS: WeakValueDictionary[tuple[Path, frozenset[str]], Encoder] = WeakValueDictionary()
_LOADING = Lock()


def _shared(base: Path, learned: frozenset[str]) -> Encoder:
    """The encoder, loaded unless somebody has it."""
    with _LOADING:
        encoder = _ENCODERS.get((base, learned)) or Encoder(base, learned)
        _ENCODERS[base, learned] = encoder
        return encoder


def _small(base: Path) -> Tensors:
    """The encoder's weights as packed models have them, in a file beside its folder where that can be written."""
    kept, found = base.with_name(f"{base.name}.int8.safetensors"), (base / PLAIN).stat()
    notes = {"of": f"{found.st_size} bytes, changed {found.st_mtime_ns}", "version": VERSION}
    try:
        with FileLock(f"{kept}.lock"):
            if _notes(kept) != notes:
                partial = kept.with_suffix(".partial")
                try:
                    save_file(_in_int8(base), partial, metadata=notes)
                    partial.replace(kept)
                finally:
                    partial.unlink(missing_ok=True)
        return MappedTensors(kept)
    except (OSError, SafetensorError):
        return _in_int8(base)


def _notes(file: Path) -> dict[str, str]:
    try:
        return MappedTensors(file).notes
    except (OSError, SafetensorError):
        return {}


def _in_int8(base: Path) -> dict[str, NDArray[Any]]:
    """The encoder's weights, matrices in int8 with a scale a row."""
    with safe_open(base / PLAIN, "np") as file:
        names = [name for name in file.keys() if "pooler" not in name]  # noqa: SIM118 - it is no dictionary
        return {key: value for name in names for key, value in small(name, file.get_tensor(name)).items()}


def _learned(adapter: Path) -> dict[str, NDArray[np.float32]]:
    """What was learned, in float32, by the names that the encoder has in its own folder."""
    config = json.loads((adapter / CONFIG).read_text(encoding="utf-8"))
    share = {UP: config["lora_alpha"] / config["r"]}
    return {
        _plain(name): value.astype(np.float32) * np.float32(share.get(name[-len(UP) :], 1.0))
        for name, value in load_file(adapter / WEIGHTS).items()
    }


def _plain(name: str) -> str:
    """A name without what peft and transformers put before it."""
    inside = name.removeprefix(_UNDER)
    return inside if inside.startswith("classifier.") else inside.partition(".")[2]


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
