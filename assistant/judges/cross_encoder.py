"""What the trained judges share: a small cross-encoder, which reads two texts together and gives one logit."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from threading import Event, Lock
from typing import Any

from assistant.errors import ModelError
from assistant.llm.bert import Bert, UnfitError, logit
from assistant.llm.mapped_tensors import MappedTensors
from assistant.llm.processor import has_bf16

_LOG = logging.getLogger(__name__)
# Pairs -> a logit each.
Read = Callable[[Sequence[tuple[str, str]]], Iterable[float]]
# Tokens read of both texts together, unless a judge sets another number.
LENGTH = 256
# Without any of these transformers would make a tokenizer that knows no word.
_TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "spm.model", "sentencepiece.bpe.model", "tokenizer.model")


class PairReader:
    """A sentence-transformers cross-encoder in a local folder, on the CPU or the GPU. Threads take turns.

    OpenVINO runs it if it can; torch is imported only if it can't. Pairs of more than `length` tokens are cut, first
    the longer of the two texts. With a `base`, the folder holds what is added to this encoder.

    Raises:
        ModelError: the folder holds no cross-encoder of one logit, or one that can't be loaded; the message says why.
    """

    def __init__(self, folder: Path, length: int = LENGTH, base: Path | None = None) -> None:
        if base is None:
            check(folder)
        self._read = _openvino_reader(folder, length, base) or _torch_reader(folder, length, base)

    def logits(self, pairs: Sequence[tuple[str, str]], batch: int, stop: Event) -> list[float]:
        """One logit for each pair, in order; `batch` pairs are read at once. Fewer if `stop` was set between batches.

        Padding takes less time if pairs of similar lengths are next to each other.
        """
        logits: list[float] = []
        for start in range(0, len(pairs), batch):
            if stop.is_set():
                break
            logits += map(float, self._read([readable(pair) for pair in pairs[start : start + batch]]))
        return logits


def _openvino_reader(folder: Path, length: int, base: Path | None) -> Read | None:
    """What reads pairs by OpenVINO, None where it can't run this model."""
    from safetensors import SafetensorError  # noqa: PLC0415

    from assistant.judges.adapted import Adapted  # noqa: PLC0415
    from assistant.judges.packed import PLAIN, is_packed, packed  # noqa: PLC0415

    try:
        if base:
            adapted = Adapted(folder, base, _window(base, length))
            return lambda pairs: adapted(pairs)[:, 0]
        tensors = packed(folder) if is_packed(folder) else MappedTensors(folder / PLAIN)
        bert = Bert(folder, tensors, _window(folder, length), logit)
    except (UnfitError, OSError, ValueError, TypeError, KeyError, SafetensorError) as error:
        # torch may read it, or says what is wrong
        _LOG.info("%s is read by torch (%s)", folder, error)
        return None
    return lambda pairs: bert(pairs)[:, 0]


def _torch_reader(folder: Path, length: int, base: Path | None) -> Read:
    from torch.nn import Identity  # noqa: PLC0415 - takes seconds to import

    model, lock, identity = load(folder, length, base), Lock(), Identity()

    def read(pairs: Sequence[tuple[str, str]]) -> Iterable[float]:
        with lock:
            logits: Iterable[float] = model.predict(
                pairs, activation_fn=identity, batch_size=len(pairs), show_progress_bar=False
            )
        return logits

    return read


def _window(folder: Path, length: int) -> int:
    """How many tokens are read: as many as asked for, or fewer if the model's tokenizer says so."""
    max_length = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")).get("model_max_length")
    return min(length, int(max_length or length))


def readable(pair: tuple[str, str]) -> tuple[str, str]:
    """Two texts as a tokenizer takes them, without halves of characters."""
    first, second = (text.encode("utf-8", "replace").decode() for text in pair)
    return first, second


def check(folder: Path) -> None:
    """Refuse a model that isn't a cross-encoder with one logit: transformers would add a random head to it.

    Raises:
        ModelError: the folder can't be used; the message says why.
    """
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder} holds no model ({error}); give the folder of a cross-encoder.") from error
    if not any("ForSequenceClassification" in name for name in config.get("architectures") or ()):
        raise ModelError(f"{folder} holds no cross-encoder; give one, or train one with `train relevance`.")
    if not any((folder / name).exists() for name in _TOKENIZERS):
        raise ModelError(f"{folder} holds no tokenizer; get or train the cross-encoder again.")
    labels = len(config.get("id2label", ("false", "true")))
    if labels != 1:
        raise ModelError(f"The cross-encoder in {folder} gives {labels} values a passage; give one that gives one.")


def load(folder: Path, length: int = LENGTH, base: Path | None = None) -> Any:
    """The sentence-transformers `CrossEncoder` of a folder, reading at most `length` tokens of a pair.

    With a `base`, the folder holds what is added to this encoder.

    Raises:
        ModelError: a file is missing or broken.
    """
    from safetensors import SafetensorError  # noqa: PLC0415
    from sentence_transformers import CrossEncoder  # noqa: PLC0415 - takes seconds to import
    from transformers.utils import logging  # noqa: PLC0415

    from assistant.judges.adapted import whole  # noqa: PLC0415
    from assistant.judges.packed import is_packed, unpacked  # noqa: PLC0415

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        folder_context = whole(folder, base) if base else unpacked(folder) if is_packed(folder) else nullcontext(folder)
        with folder_context as plain_folder:
            model = CrossEncoder(str(plain_folder), local_files_only=True, model_kwargs={"dtype": fastest()})
    except (OSError, ValueError, KeyError, RuntimeError, AttributeError, SafetensorError) as error:
        raise ModelError(f"{folder} holds no complete cross-encoder ({error}); get or train it again.") from error
    model.max_seq_length = min(model.max_seq_length or length, length)
    return model


def fastest() -> Any:
    """The type in which this machine multiplies fastest: with units for bf16, that takes a third of the time."""
    import torch  # noqa: PLC0415

    if torch.cuda.is_available():
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    return torch.bfloat16 if has_bf16() else torch.float32
