"""Sentence embeddings by sentence-transformers (Reimers and Gurevych 2019, "Sentence-BERT"), by default on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from threading import Lock

import numpy as np

from assistant.errors import ModelError
from assistant.llm.folders import name_of
from assistant.llm.kept_vectors import KeptVectors, Vectors

# Of a model that tells none.
_WINDOW = 256


class SentenceEmbedder:
    """A Sentence-BERT model in a local folder. Safe to call from several threads: they take turns.

    Raises:
        ModelError: the folder holds no model that sentence-transformers can load.
    """

    def __init__(self, folder: Path, name: str = "", device: str = "cpu") -> None:
        self.name = name or name_of(folder)
        self.device = device
        self._lock = Lock()
        self._folder = folder
        self._kept: KeptVectors | None = None
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - takes seconds to import
        from transformers.utils import logging  # noqa: PLC0415

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            self._model = SentenceTransformer(str(folder), device=device, local_files_only=True)
        except (OSError, ValueError, KeyError, RuntimeError, AttributeError) as error:
            raise ModelError(f"{folder} holds no complete Sentence-BERT model ({error}); fetch it again.") from error

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension), each row of length 1."""
        if not texts:
            return np.zeros((0, self._model.get_embedding_dimension() or 0), dtype=np.float32)
        return self._kept.of(texts, self._encoded) if self._kept else self._encoded(texts)

    @contextmanager
    def keeping(self, folder: Path) -> Iterator[None]:
        """Meanwhile vectors are kept in this folder, for the next start: those of examples, which stay the same.

        Only for as long as no other thread uses the embedder.
        """
        self._kept = KeptVectors(folder, self._folder)
        try:
            yield
            self._kept.tidy()
        finally:
            self._kept = None

    def _encoded(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            vectors = self._model.encode(
                [_clean(text) for text in texts], normalize_embeddings=True, show_progress_bar=False
            )
        return np.asarray(vectors, dtype=np.float32)

    @property
    def window(self) -> int:
        """How many tokens of a text it reads, its own marks included."""
        most = self._model.max_seq_length
        return _WINDOW if most is None or most == inf else int(most)

    def count(self, text: str) -> int:
        """Tokens of a text, its own marks included."""
        tokenizer, clean = self._model.tokenizer, _clean(text)
        with self._lock:  # a tokenizer can't count for one thread while it cuts for another
            return len(tokenizer(clean, verbose=False)["input_ids"] if callable(tokenizer) else tokenizer.encode(clean))


def _clean(text: str) -> str:
    """Without lone surrogates, which tokenizers refuse."""
    return text.encode("utf-8", "replace").decode()
