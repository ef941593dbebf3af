"""Dense indexes of libraries: made when first asked for, and kept in step with the library."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

from assistant.errors import DamagedIndexError, LibraryError
from assistant.library.making import MadeShelves
from assistant.library.shelves import FOREVER, locked, open_library
from assistant.protocols import Embedder, Progress, Retriever
from assistant.retrieve.bm25 import Bm25
from assistant.retrieve.dense import Dense, build_dense, read_manifest
from assistant.settings import Settings
from assistant.types import Passage

_LOG = logging.getLogger(__name__)


def dense_retriever(name: str, library: Bm25, settings: Settings, embedder: Embedder, progress: Progress) -> Dense:
    """The dense index of a library or corpus, which is made, brought up to date or mended first.

    Args:
        name: tells the index from others; the library's.
        library: where the passages are.
        settings: say where indexes are kept.
        embedder: the encoder; each has indexes of its own.
        progress: told texts to encode.

    Raises:
        LibraryError: the index can't be made or opened; the message says what to do.
    """
    folder, state = _folder(name, settings, embedder), library.state
    if not _is_built(folder, state):
        with locked(folder, FOREVER):
            if not _is_built(folder, state):
                build_dense(folder, library.passages(), embedder, progress, state)
    with suppress(DamagedIndexError):
        return Dense(folder, embedder, library.get)
    _LOG.warning("the dense index in %s is damaged; it is made again from the vectors", folder)
    with locked(folder, FOREVER):
        build_dense(folder, library.passages(), embedder, progress, state)
    return Dense(folder, embedder, library.get)


class Together:
    """A `Retriever` over several whose scores compare, such as cosines of one encoder."""

    def __init__(self, retrievers: Sequence[Retriever]) -> None:
        self._retrievers = tuple(retrievers)

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first."""
        found = [passage for one in self._retrievers for passage in one.search(query, k)]
        return sorted(found, key=lambda passage: -passage.score)[: max(k, 0)]


class DenseShelves(MadeShelves):
    """Dense retrieval over libraries by their names. Encoding takes minutes: no search does it in silence."""

    WAITING = (
        "The library is being encoded for search by meaning{far}; "
        "ask again when that is done, or choose search by words (bm25) meanwhile."
    )

    def __init__(self, settings: Settings, load_encoder: Callable[[Progress], Embedder]) -> None:
        """`load_encoder` is called once, when the first library is encoded or opened."""
        super().__init__()
        self._settings, self._load = settings, load_encoder
        self._encoder: Embedder | None = None
        self._making = Lock()

    def make(self, names: Sequence[str], progress: Progress) -> None:
        """Make or update the indexes of these libraries; what was encoded before an interruption is kept.

        Raises:
            SequiturError: the encoder can't be had, or an index can't be made.
        """
        with self._making:
            self._encoder = self._encoder or self._load(progress)
            for name in names:
                dense_retriever(name, open_library(name, self._settings), self._settings, self._encoder, progress)

    def opened(self, names: Sequence[str]) -> Retriever | None:
        """The libraries, if all can be searched as they are now."""
        encoder = self._encoder
        libraries = {name: open_library(name, self._settings) for name in names}
        if encoder is None or not all(
            _is_built(_folder(name, self._settings, encoder), one.state) for name, one in libraries.items()
        ):
            return None
        with suppress(DamagedIndexError):  # making mends it
            return Together(
                [Dense(_folder(name, self._settings, encoder), encoder, one.get) for name, one in libraries.items()]
            )
        return None


def _folder(name: str, settings: Settings, embedder: Embedder) -> Path:
    encoder = re.sub(r"[^A-Za-z0-9.-]+", "-", embedder.name).strip("-")
    return settings.data_dir / "dense" / encoder / name


def _is_built(folder: Path, state: str) -> bool:
    try:
        return read_manifest(folder).state == state
    except LibraryError:
        return False
