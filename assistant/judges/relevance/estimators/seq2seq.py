"""The paper's relevance estimator: a T5 that reads question and context and writes "true" or "false" (RE-RAG, 2.2).

r_j = P("true") / (P("true") + P("false")) of the first token that it writes (equation 3), so that s_j, its log-odds,
is the difference of the two logits (equation 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Event, Lock
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.utils import logging

from assistant.errors import ModelError
from assistant.llm.model_folders import is_encoder_decoder
from assistant.types import Passage, Relevance

SHIPPED: Path | None = None
WORDS = ("true", "false")
# Tokens of question and passage together; what is longer is cut at its end, which is the passage's.
LENGTH = 384
BATCH = 8


def trained(folder: Path, name: str) -> Seq2SeqEstimator:
    """The estimator in a folder; see `estimators.TrainedModule`."""
    return Seq2SeqEstimator(folder, name)


class Seq2SeqEstimator:
    """A T5, or any encoder-decoder, in a local folder, on the CPU or the GPU. Threads take turns.

    Raises:
        ModelError: the folder holds no such model, it can't be loaded, or "true" and "false" begin with the same token.
    """

    calibration = ""

    def __init__(self, folder: Path, name: str = "") -> None:
        self.name = f"seq2seq:{name or folder.name}"
        self._lock = Lock()
        self._tokenizer, self._model = load(folder)
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._model.to(self._device).eval()
        self._words = word_ids(self._tokenizer)

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        """One estimate for each passage; see `Estimator`. `stop` is looked at between batches of 8."""
        estimates: list[Relevance] = []
        for start in range(0, len(passages), BATCH):
            batch = passages[start : start + BATCH]
            estimates += [Relevance.of_score(0.0)] * len(batch) if stop.is_set() else self._batch(question, batch)
        return estimates

    def _batch(self, question: str, passages: Sequence[Passage]) -> list[Relevance]:
        with self._lock, torch.inference_mode():
            logits = first_logits(self._model, encoded(self._tokenizer, question, passages, self._device))
        return [Relevance.of_score(float(score)) for score in scores(logits, self._words)]


def load(folder: Path) -> tuple[Any, Any]:
    """The tokenizer and the model, in fp32.

    Raises:
        ModelError: the folder holds no encoder-decoder, or one that is broken.
    """
    if not is_encoder_decoder(folder):
        raise ModelError(f"{folder} holds no encoder-decoder such as T5; give the folder of one.")
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModelForSeq2SeqLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelError(f"{folder} holds no complete encoder-decoder ({error}); get or train it again.") from error
    return tokenizer, model


def word_ids(tokenizer: Any) -> tuple[int, int]:
    """The tokens that "true" and "false" begin with.

    Raises:
        ModelError: they are the same one, as for a tokenizer that knows neither word.
    """
    true, false = (tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in WORDS)
    if true == false:
        raise ModelError("This model's tokenizer can't tell 'true' from 'false'; give another estimator.")
    return int(true), int(false)


def text_of(question: str, passage: Passage) -> str:
    """What the estimator and the generator read."""
    return f"question: {question} context: {passage.titled}".encode("utf-8", "replace").decode()


def encoded(
    tokenizer: Any, question: str, passages: Sequence[Passage], device: torch.device, length: int = LENGTH
) -> Any:
    """Token ids and mask, each (passages, tokens)."""
    texts = [text_of(question, passage) for passage in passages]
    return tokenizer(texts, padding=True, truncation=True, max_length=length, return_tensors="pt").to(device)


def first_logits(model: Any, inputs: Any) -> Tensor:
    """The logits of the first token written, (passages, vocabulary)."""
    start = inputs["input_ids"].new_full((len(inputs["input_ids"]), 1), model.config.decoder_start_token_id)
    logits: Tensor = model(**inputs, decoder_input_ids=start).logits[:, 0].float()
    return logits


def scores(logits: Tensor, words: tuple[int, int]) -> Tensor:
    """s_j of first-token logits (..., vocabulary): log P("true") - log P("false")."""
    return logits[..., words[0]] - logits[..., words[1]]
