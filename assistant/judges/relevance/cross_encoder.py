"""A cross-encoder as relevance estimator: reads question and passage together, gives one logit, which is s_j."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from threading import Event, Lock
from typing import Any

from assistant.errors import ModelError
from assistant.llm.processor import has_bf16
from assistant.types import Passage, Relevance

BATCH = 8
# Tokens read of question and passage together: all of most passages, and what is over costs time with its square.
LENGTH = 256
# Without any of these transformers would make a tokenizer that knows no word.
_TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "spm.model", "sentencepiece.bpe.model", "tokenizer.model")


class CrossEncoderEstimator:
    """A sentence-transformers cross-encoder in a local folder, on the CPU or the GPU. Threads take turns.

    What is longer than the model reads, 256 tokens at most, is cut by its tokenizer, the longer of question and passage
    first. Passages of similar lengths are read together, so that little time goes into padding.

    Raises:
        ModelError: the folder holds no cross-encoder of one logit, or one that can't be loaded.
    """

    calibration = ""

    def __init__(self, folder: Path, name: str = "") -> None:
        self.name = f"cross-encoder:{name or folder.name}"
        self._lock = Lock()
        check(folder)
        self._model = load(folder)

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        """One estimate for each passage; see `Estimator`. `stop` is looked at between batches of 8."""
        found = [Relevance.of_score(0.0)] * len(passages)
        order = sorted(range(len(passages)), key=lambda n: len(passages[n].text))
        for start in range(0, len(order), BATCH):
            if stop.is_set():
                break
            places = order[start : start + BATCH]
            for place, one in zip(places, self._batch(question, [passages[n] for n in places]), strict=True):
                found[place] = one
        return found

    def _batch(self, question: str, passages: Sequence[Passage]) -> list[Relevance]:
        from torch.nn import Identity  # noqa: PLC0415 - takes seconds to import

        with self._lock:
            logits = self._model.predict(
                [pair(question, passage) for passage in passages],
                activation_fn=Identity(),
                batch_size=BATCH,
                show_progress_bar=False,
            )
        return [Relevance.of_score(float(logit)) for logit in logits]


def pair(question: str, passage: Passage) -> tuple[str, str]:
    """What the cross-encoder reads, in training and in use."""
    first, second = (text.encode("utf-8", "replace").decode() for text in (question, passage.titled))
    return first, second


def check(folder: Path) -> None:
    """Refuse what is no cross-encoder of one logit: transformers would add a head at random to any other model.

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


def load(folder: Path, length: int = LENGTH) -> Any:
    """The sentence-transformers `CrossEncoder` of a folder, reading at most `length` tokens of a pair.

    Raises:
        ModelError: a file is missing or broken.
    """
    from safetensors import SafetensorError  # noqa: PLC0415
    from sentence_transformers import CrossEncoder  # noqa: PLC0415 - takes seconds to import
    from transformers.utils import logging  # noqa: PLC0415

    from assistant.judges.relevance.packed import is_packed, unpacked  # noqa: PLC0415 - torch

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with unpacked(folder) if is_packed(folder) else nullcontext(folder) as plain:
            model = CrossEncoder(str(plain), local_files_only=True, model_kwargs={"dtype": fastest()})
    except (OSError, ValueError, KeyError, RuntimeError, AttributeError, SafetensorError) as error:
        raise ModelError(f"{folder} holds no complete cross-encoder ({error}); get or train it again.") from error
    model.max_seq_length = min(model.max_seq_length or length, length)
    return model


def fastest() -> Any:
    """The type that this machine multiplies fastest in: bf16 takes a third of the time where there are units for it."""
    import torch  # noqa: PLC0415

    if torch.cuda.is_available():
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    return torch.bfloat16 if has_bf16() else torch.float32
