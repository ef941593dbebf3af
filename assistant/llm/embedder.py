"""Sentence embeddings by sentence-transformers (Reimers and Gurevych 2019, "Sentence-BERT"), on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from assistant.errors import ModelError
from assistant.llm.folders import name_of


class SentenceEmbedder:
    """A Sentence-BERT model in a local folder. Safe to call from several threads: they take turns.

    Raises:
        ModelError: the folder holds no model that sentence-transformers can load.
    """

    def __init__(self, folder: Path, name: str = "") -> None:
        self.name = name or name_of(folder)
        self._lock = Lock()
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - takes seconds to import
        from transformers.utils import logging  # noqa: PLC0415

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            self._model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        except (OSError, ValueError, KeyError, RuntimeError, AttributeError) as error:
            raise ModelError(f"{folder} holds no complete Sentence-BERT model ({error}); fetch it again.") from error

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimension), each row of length 1."""
        if not texts:
            return np.zeros((0, self._model.get_embedding_dimension() or 0), dtype=np.float32)
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        with self._lock:
            vectors = self._model.encode(clean, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)
