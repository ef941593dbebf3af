"""Dense indexes of libraries: made when first asked for, and kept in step with the library."""

from __future__ import annotations

import re
from pathlib import Path

from assistant.errors import LibraryError
from assistant.library.shelves import locked
from assistant.retrieve.bm25 import Bm25
from assistant.retrieve.dense import Dense, build_dense, read_manifest
from assistant.settings import Settings
from assistant.types import Embedder, Progress


def dense_retriever(name: str, library: Bm25, settings: Settings, embedder: Embedder, progress: Progress) -> Dense:
    """The dense index of a library or corpus, which is made or brought up to date first.

    Args:
        name: tells the index from others; the library's.
        library: where the passages are.
        settings: say where indexes are kept.
        embedder: the encoder; each has indexes of its own.
        progress: told texts to encode.

    Raises:
        LibraryError: the index can't be made or opened; the message says what to do.
    """
    encoder = re.sub(r"[^A-Za-z0-9.-]+", "-", embedder.name).strip("-")
    folder = settings.data_dir / "dense" / encoder / name
    state = library.state
    if not _is_built(folder, state):
        with locked(folder):
            if not _is_built(folder, state):
                build_dense(folder, library.passages(), embedder, progress, state)
    return Dense(folder, embedder, library.get)


def _is_built(folder: Path, state: str) -> bool:
    try:
        return read_manifest(folder).state == state
    except LibraryError:
        return False
