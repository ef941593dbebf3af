"""The encoders of dense retrieval, told apart by what their folders hold: Sentence-BERT, Contriever or DPR.

Sentence-BERT vectors have length 1, so that their inner product is the cosine; those of Contriever and DPR have not,
and are ranked by the inner product, as their authors do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assistant.errors import ModelError
from assistant.llm.embedder import SentenceEmbedder
from assistant.llm.model_folders import name_of
from assistant.llm.processor import has_bf16, sees_gpu
from assistant.retrieve.encoder_pieces import Encoder

CONTRIEVER, CONTEXTS, QUESTIONS = "Contriever", "DPRContextEncoder", "DPRQuestionEncoder"
# Larger windows are not filled: of a longer text one vector says little.
MOST_TOKENS = 256
BATCH = 32
_PAIR = (
    "set retrieve.encoder to DPR's encoder of passages (facebook/dpr-ctx_encoder-single-nq-base) and "
    "retrieve.question_encoder to that of questions (facebook/dpr-question_encoder-single-nq-base)"
)
# What a transformer says of a batch: (its last hidden states, the attention mask) -> one vector for each text.
Pooling = Callable[[Any, Any], Any]


def open_encoder(folder: Path, questions: Path | None = None, embedder: SentenceEmbedder | None = None) -> Encoder:
    """The encoder in `folder`, by its own architecture.

    Args:
        folder: what passages are encoded with, and queries too, except for DPR.
        questions: what DPR encodes queries with.
        embedder: the Sentence-BERT model of this folder, where it is loaded already.

    Raises:
        ModelError: a folder holds no such encoder, or two that don't belong together.
    """
    kind = _architecture(folder)
    if kind == QUESTIONS:
        raise ModelError(f"{folder.name} encodes questions only; {_PAIR}.")
    if kind == CONTEXTS:
        if questions is None:
            raise ModelError(f"{folder.name} encodes passages only; {_PAIR}.")
        return Dpr(folder, questions)
    if questions is not None:
        raise ModelError(f"{folder.name} encodes questions as it does passages; leave retrieve.question_encoder empty.")
    return Contriever(folder) if kind == CONTRIEVER else SentenceBert(folder, embedder)


class SentenceBert:
    """Any model of sentence-transformers; mean pooled for most, length 1."""

    def __init__(self, folder: Path, embedder: SentenceEmbedder | None = None) -> None:
        self._device = _device()
        loaded = embedder if embedder and embedder.device == self._device else None
        self._embedder = loaded or SentenceEmbedder(folder, device=self._device)
        self.name = self._embedder.name
        self.window = min(self._embedder.window, MOST_TOKENS)
        self.count = self._embedder.count

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimension), each row of length 1."""
        with _half_precision(self._device):
            return self._embedder.encode(texts)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimension), each row of length 1."""
        return self._embedder.encode(texts)


class Contriever:
    """Izacard et al., "Unsupervised Dense Information Retrieval with Contrastive Learning", TMLR 2022 (section 3)."""

    def __init__(self, folder: Path) -> None:
        self._model = _Transformer(folder, "BertModel", _mean_vector, add_pooling_layer=False)
        self.name = name_of(folder)
        self.window = min(self._model.window, MOST_TOKENS)
        self.count = self._model.count

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimension); lengths differ."""
        return self._model.encode(texts)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimension); lengths differ."""
        return self._model.encode(texts)


class Dpr:
    """Karpukhin et al., "Dense Passage Retrieval", EMNLP 2020 (section 3): two encoders, the vector of [CLS] of each.

    A passage is read as its title and its text, apart by [SEP].
    """

    def __init__(self, contexts: Path, questions: Path) -> None:
        if _architecture(questions) != QUESTIONS:
            raise ModelError(f"{questions.name} is no DPR encoder of questions; {_PAIR}.")
        self._contexts = _Transformer(contexts, CONTEXTS, _cls_vector)
        self._questions = _Transformer(questions, QUESTIONS, _cls_vector)
        if self._contexts.dimension != self._questions.dimension:
            raise ModelError(f"{contexts.name} and {questions.name} give vectors of different sizes; {_PAIR}.")
        self.name = f"{name_of(contexts)} {name_of(questions)}"
        self.window = min(self._contexts.window, MOST_TOKENS)

    def count(self, text: str) -> int:
        """Tokens of a passage, whose first line is its title."""
        title, _, body = text.partition("\n")
        return self._contexts.count(title, body)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimension); lengths differ. The first line of a text is its title."""
        titled = [text.partition("\n") for text in texts]
        return self._contexts.encode([title for title, _, _ in titled], [text for _, _, text in titled])

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimension); lengths differ."""
        return self._questions.encode(texts)


class _Transformer:
    """A BERT in a folder, on a GPU where there is one. Missing weights are refused: the library would invent them."""

    def __init__(self, folder: Path, architecture: str, pool: Pooling, **options: Any) -> None:
        import transformers  # noqa: PLC0415 - takes seconds to import

        loading_errors = _loading_errors()
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            self._model, report = getattr(transformers, architecture).from_pretrained(
                folder, local_files_only=True, output_loading_info=True, **options
            )
        except loading_errors as error:
            raise ModelError(f"{folder} holds no complete encoder ({error}); fetch it again.") from error
        if report["missing_keys"]:
            raise ModelError(f"{folder} lacks weights ({min(report['missing_keys'])}); fetch it again.")
        if len(self._tokenizer) <= len(self._tokenizer.all_special_tokens):
            raise ModelError(f"{folder} lacks its vocabulary; fetch it again.")
        self._device = _device()
        self._model.eval().to(self._device)
        self._pool = pool
        self.window = int(self._model.config.max_position_embeddings)
        self.dimension = self.encode([" "]).shape[1]

    def encode(self, texts: Sequence[str], seconds: Sequence[str] | None = None) -> NDArray[np.float32]:
        """Shape (len(texts), dimension); `seconds` are second texts, read after the first and a [SEP]."""
        import torch  # noqa: PLC0415

        columns = [_clean(column) for column in (texts, seconds) if column is not None]
        starts = range(0, len(texts), BATCH)
        with torch.inference_mode(), _half_precision(self._device):
            vectors = [self._batch([column[start : start + BATCH] for column in columns]) for start in starts]
        return np.concatenate(vectors) if vectors else np.zeros((0, self.dimension), dtype=np.float32)

    def count(self, text: str, second: str | None = None) -> int:
        """Tokens of a text, or of two with a [SEP] between them, and of the marks around them."""
        texts = _clean([part for part in (text, second) if part is not None])
        return len(self._tokenizer(*texts, verbose=False)["input_ids"])

    def _batch(self, columns: list[list[str]]) -> NDArray[np.float32]:
        inputs = self._tokenizer(*columns, padding=True, truncation=True, max_length=self.window, return_tensors="pt")
        inputs = inputs.to(self._device)
        pooled = self._pool(self._model(**inputs), inputs["attention_mask"])
        return np.asarray(pooled.float().cpu().numpy(), dtype=np.float32)


def _device() -> str:
    return "cuda" if sees_gpu() else "cpu"


def _loading_errors() -> tuple[type[Exception], ...]:
    """What loading raises where files are missing, cut short or of another kind."""
    from safetensors import SafetensorError  # noqa: PLC0415 - torch

    return OSError, ValueError, KeyError, RuntimeError, AttributeError, EOFError, UnpicklingError, SafetensorError


def _mean_vector(output: Any, mask: Any) -> Any:
    """The mean over the pieces of each text."""
    weights = mask.unsqueeze(-1)
    return (output.last_hidden_state * weights).sum(1) / weights.sum(1)


def _cls_vector(output: Any, mask: Any) -> Any:  # noqa: ARG001 - a `Pooling`
    """The vector of [CLS], after DPR's projection where it has one."""
    return output.pooler_output


@contextmanager
def _half_precision(device: str) -> Iterator[None]:
    """Half precision where it is faster: 2.5 times, measured, with a cosine of 0.9999 to vectors of full precision.

    Without such instructions a CPU would be slower by it. Where torch isn't loaded, OpenVINO does so by itself.
    """
    torch = sys.modules.get("torch")
    with torch.autocast(device, torch.bfloat16) if torch and (device != "cpu" or has_bf16()) else nullcontext():
        yield


def _architecture(folder: Path) -> str:
    """What the model says that it is, "" where it says nothing."""
    architectures = _json(folder / "config.json").get("architectures") or [""]
    return str(architectures[0])


def _json(file: Path) -> dict[str, Any]:
    try:
        parsed = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # whoever loads the model says what it lacks
    return parsed if isinstance(parsed, dict) else {}


def _clean(texts: Sequence[str]) -> list[str]:
    return [text.encode("utf-8", "replace").decode() for text in texts]
