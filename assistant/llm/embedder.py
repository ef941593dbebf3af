"""Sentence embeddings by sentence-transformers (Reimers and Gurevych 2019, "Sentence-BERT"), by default on the CPU."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
from safetensors import SafetensorError

from assistant.errors import ModelError
from assistant.llm.bert import Bert, UnfitError, mean
from assistant.llm.disk_vector_cache import DiskVectorCache, Vectors
from assistant.llm.mapped_tensors import MappedTensors
from assistant.llm.model_folders import name_of

_LOG = logging.getLogger(__name__)
# Of a model that tells none.
_WINDOW = 256
# Texts that are read together.
_BATCH = 32


class SentenceEmbedder:
    """A Sentence-BERT model in a local folder. Safe to call from several threads: they take turns.

    On a CPU OpenVINO runs it where it can; torch is imported only where it can't.

    Raises:
        ModelError: the folder holds no model that sentence-transformers can load.
    """

    def __init__(self, folder: Path, name: str = "", device: str = "cpu") -> None:
        self.name = name or name_of(folder)
        self.device = device
        self._folder = folder
        self._disk_cache: DiskVectorCache | None = None
        self._model = (_by_openvino(folder) if device == "cpu" else None) or _ByTorch(folder, device)
        self.window, self.count = self._model.window, self._model.count

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension), each row of length 1."""
        if not texts:
            return np.zeros((0, self._model.dimension), dtype=np.float32)
        return self._disk_cache.of(texts, self._encoded) if self._disk_cache else self._encoded(texts)

    @contextmanager
    def caching_in(self, folder: Path) -> Iterator[None]:
        """Meanwhile vectors are kept in this folder, for the next start: those of examples, which stay the same.

        Only for as long as no other thread uses the embedder.
        """
        self._disk_cache = DiskVectorCache(folder, self._folder)
        try:
            yield
            self._disk_cache.tidy()
        finally:
            self._disk_cache = None

    def _encoded(self, texts: Sequence[str]) -> Vectors:
        return self._model.encode([_clean(text) for text in texts])


class _Model(Protocol):
    """What runs a model; it reads `window` tokens of a text, its own marks included, as `count` tells them."""

    dimension: int
    window: int

    def encode(self, texts: Sequence[str]) -> Vectors: ...

    def count(self, text: str) -> int: ...


class _ByOpenVino:
    """Texts of similar lengths are read together, so that little time goes into padding."""

    def __init__(self, folder: Path) -> None:
        settings = json.loads((folder / "sentence_bert_config.json").read_text(encoding="utf-8"))
        self._bert = Bert(folder, MappedTensors(folder / "model.safetensors"), int(settings["max_seq_length"]), mean)
        self.window, self.dimension = self._bert.length, self._bert.width

    def encode(self, texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda n: len(texts[n]))
        for start in range(0, len(order), _BATCH):
            indices = order[start : start + _BATCH]
            vectors[indices] = self._bert([texts[n] for n in indices])
        return vectors

    def count(self, text: str) -> int:
        return self._bert.count(_clean(text))


class _ByTorch:
    def __init__(self, folder: Path, device: str) -> None:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - takes seconds to import
        from transformers.utils import logging as talk  # noqa: PLC0415

        talk.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            self._model = SentenceTransformer(str(folder), device=device, local_files_only=True)
        except (OSError, ValueError, KeyError, RuntimeError, AttributeError) as error:
            raise ModelError(f"{folder} holds no complete Sentence-BERT model ({error}); fetch it again.") from error
        self._lock = Lock()
        max_length = self._model.max_seq_length
        self.window = _WINDOW if max_length is None or max_length == inf else int(max_length)
        self.dimension = self._model.get_embedding_dimension() or 0

    def encode(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            vectors = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)

    def count(self, text: str) -> int:
        tokenizer, clean = self._model.tokenizer, _clean(text)
        with self._lock:  # a tokenizer can't count for one thread while it cuts for another
            return len(tokenizer(clean, verbose=False)["input_ids"] if callable(tokenizer) else tokenizer.encode(clean))


def _by_openvino(folder: Path) -> _Model | None:
    """The model of a folder where OpenVINO can run it, else None: torch may read it, or says what is wrong."""
    try:
        _check(folder)
        return _ByOpenVino(folder)
    except (UnfitError, OSError, ValueError, LookupError, TypeError, AttributeError, SafetensorError) as error:
        _LOG.info("%s is read by torch (%s)", folder, error)
        return None


def _check(folder: Path) -> None:
    """Refuse what is more than a transformer whose last states are averaged."""
    kinds = [module["type"].rpartition(".")[2] for module in _read(folder / "modules.json")]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        raise UnfitError(f"it is made of {', '.join(kinds)}")
    pooling = _read(folder / "1_Pooling" / "config.json")
    flags = {name for name, used in pooling.items() if name.startswith("pooling_mode_") and used}
    if (flags or {pooling.get("pooling_mode")}) - {"pooling_mode_mean_tokens", "mean"}:
        raise UnfitError("it isn't pooled by the mean")
    configs = _read(folder / "config_sentence_transformers.json"), _read(folder / "sentence_bert_config.json")
    if configs[0].get("default_prompt_name") or configs[1].get("do_lower_case"):
        raise UnfitError("texts are changed before they are read")


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def _clean(text: str) -> str:
    """Without lone surrogates, which tokenizers refuse."""
    return text.encode("utf-8", "replace").decode()
