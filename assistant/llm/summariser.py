"""Summaries by a sequence-to-sequence model, in full precision (Generate-Retrieve-Generate, section 2.2.5).

The paper's is `lmsys/fastchat-t5-3b-v1.0`, which quantisation harms visibly (its table 4). Any other of the hub does as
well: one that follows instructions, such as the T5s, or one that was trained on summaries alone, such as BART's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from threading import Event, Lock
from typing import Any

import psutil
import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer, StoppingCriteria, StoppingCriteriaList
from transformers.utils import logging

from assistant.errors import ModelError
from assistant.llm.catalogue import Catalogue
from assistant.llm.pretrained import first_line
from assistant.protocols import Progress, silent
from assistant.settings import Settings

_GIB = 1 << 30
# Texts read at once: more would save a CPU no time, and take memory.
_BATCH = 4
_VOCABULARIES = ("tokenizer.json", "*.model", "vocab.*")


class Summariser:
    """A model in a local folder, on the GPU where there is one. Safe to call from several threads: they take turns.

    Raises:
        ModelError: the folder holds no such model, it is broken, or the memory is too small for it.
    """

    def __init__(self, folder: Path, name: str = "") -> None:
        self.name = name or folder.name
        self._lock = Lock()
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            _check_tokenizer(folder)
            _check_memory(folder, self.name)
            self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            self._model: Any = AutoModelForSeq2SeqLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
            self._model.eval().to("cuda" if torch.cuda.is_available() else "cpu")
        except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
            raise ModelError(
                f"{self.name} can't be loaded as a sequence-to-sequence model ({first_line(error)}); set"
                " turn.summariser to another one, or turn.digest to extractive."
            ) from error

    @property
    def longest(self) -> int:
        """Tokens that the model reads at most, or 0 for no end: T5's positions have none."""
        limits = (self._tokenizer.model_max_length, getattr(self._model.config, "max_position_embeddings", None))
        return min((limit for limit in limits if limit and limit < 1 << 20), default=0)

    def summarise(self, texts: Sequence[str], max_tokens: int, stop: Event) -> list[str]:
        """A summary of each text, greedy and of at most `max_tokens` tokens; "" for those not made because of `stop`.

        A text that is longer than the model reads is cut at its end.
        """
        summaries: list[str] = []
        for start in range(0, len(texts), _BATCH):
            summaries += self._batch(texts[start : start + _BATCH], max_tokens, stop)
        return summaries

    def _batch(self, texts: Sequence[str], max_tokens: int, stop: Event) -> list[str]:
        if stop.is_set():
            return [""] * len(texts)
        cleaned = [text.encode("utf-8", "replace").decode() for text in texts]
        truncation = {"truncation": True, "max_length": self.longest} if self.longest else {}
        with self._lock, torch.inference_mode():
            inputs = self._tokenizer(cleaned, padding=True, return_tensors="pt", **truncation).to(self._model.device)
            ids = self._model.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                max_new_tokens=max_tokens,
                do_sample=False,
                stopping_criteria=StoppingCriteriaList([_Stop(stop)]),
            )
        if stop.is_set():
            return [""] * len(texts)
        summaries: list[str] = self._tokenizer.batch_decode(ids, skip_special_tokens=True)
        return [" ".join(text.split()) for text in summaries]


def load(settings: Settings, progress: Progress = silent) -> Summariser:
    """The model that the settings name, fetched if need be, and loaded once.

    Raises:
        ModelError: it can't be fetched or loaded; that is tried again the next time.
    """
    name = settings.turn.summariser
    return _loaded(Catalogue.load().resolve(name, settings, progress), name)


@lru_cache(maxsize=1)
def _loaded(folder: Path, name: str) -> Summariser:
    return Summariser(folder, name)


class _Stop(StoppingCriteria):
    """Ends writing once `stop` is set."""

    def __init__(self, stop: Event) -> None:
        self._stop = stop

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:  # noqa: ARG002
        """Whether each row is over."""
        return torch.full((len(input_ids),), self._stop.is_set(), device=input_ids.device, dtype=torch.bool)


def _check_tokenizer(folder: Path) -> None:
    """Without a vocabulary transformers would make up a tokenizer that knows no word."""
    if not any(any(folder.glob(name)) for name in _VOCABULARIES):
        raise ValueError(f"{folder} holds no tokenizer")


def _check_memory(folder: Path, name: str) -> None:
    """Counts the weights without making them, since a process that takes too much is killed without a word."""
    with torch.device("meta"):
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        model = AutoModelForSeq2SeqLM.from_config(config)  # type: ignore[no-untyped-call]
    needed, free = 4 * sum(parameter.numel() for parameter in model.parameters()), psutil.virtual_memory().available
    if not torch.cuda.is_available() and needed > free:
        raise ModelError(
            f"{name} needs {needed / _GIB:.1f} GiB in full precision and {free / _GIB:.1f} GiB are free; set "
            "turn.summariser to a smaller model, or turn.digest to extractive."
        )
