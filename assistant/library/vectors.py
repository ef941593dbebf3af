"""Dense indexes of libraries: made when first asked for, and kept in step with the library."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from sqlalchemy import Engine

from assistant.errors import DamagedIndexError, LibraryError
from assistant.library.making import IndexedShelves
from assistant.library.shelves import FOREVER, OWN_PREFIX, locked, open_library, pgvector_module
from assistant.protocols import Embedder, Progress, Retriever
from assistant.retrieve.bm25 import Bm25
from assistant.retrieve.dense import Dense, forget_index, read_manifest, update_dense
from assistant.retrieve.encoder_pieces import BySentences
from assistant.settings import Settings
from assistant.store.database import connect, is_postgres
from assistant.types import Passage

if TYPE_CHECKING:
    from assistant.retrieve.pgvector import PostgresDense

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
    folder = _folder(name, settings, embedder)
    with suppress(DamagedIndexError):
        return _open_updated(folder, library, embedder, progress)
    _LOG.warning("the dense index in %s is damaged; it is made again from the vectors", folder)
    with locked(folder, FOREVER):
        forget_index(folder)
    return _open_updated(folder, library, embedder, progress)


def _open_updated(folder: Path, library: Bm25, embedder: Embedder, progress: Progress) -> Dense:
    state = library.state
    if not _is_built(folder, state):
        with locked(folder, FOREVER):
            if not _is_built(folder, state):
                update_dense(folder, library.segments(), embedder, progress, state)
    with suppress(DamagedIndexError):
        return Dense(folder, embedder, library.get)
    with locked(folder, FOREVER):  # if another process was just changing it, nothing is wrong with it now
        return Dense(folder, embedder, library.get)


def encoder_of(name: str, encoder: Embedder) -> Embedder:
    """What encodes a library: people's own documents are found by their sentences, too."""
    return BySentences(encoder) if name.startswith(OWN_PREFIX) else encoder


class Vectors(Protocol):
    """Where the vectors of libraries are kept."""

    def is_current(self, name: str, library: Bm25) -> bool:
        """Whether those of a library are there, as it is now."""
        ...

    def make(self, name: str, library: Bm25, progress: Progress) -> None:
        """Make them, or bring them up to date.

        Raises:
            SequiturError: that can't be done; the message says what to do.
        """
        ...

    def open(self, name: str, library: Bm25) -> Retriever:
        """Search in them.

        Raises:
            DamagedIndexError: they can't be read; making mends it.
        """
        ...


class _FileVectors:
    """In a folder for each library."""

    def __init__(self, settings: Settings, encoder: Embedder) -> None:
        self._settings, self._encoder = settings, encoder

    def is_current(self, name: str, library: Bm25) -> bool:
        return _is_built(_folder(name, self._settings, encoder_of(name, self._encoder)), library.state)

    def make(self, name: str, library: Bm25, progress: Progress) -> None:
        dense_retriever(name, library, self._settings, encoder_of(name, self._encoder), progress)

    def open(self, name: str, library: Bm25) -> Retriever:
        encoder = encoder_of(name, self._encoder)
        return Dense(_folder(name, self._settings, encoder), encoder, library.get)


class _DatabaseVectors:
    """In the database, which is PostgreSQL with pgvector."""

    def __init__(self, engine: Engine, encoder: Embedder) -> None:
        self._engine, self._encoder = engine, encoder

    def is_current(self, name: str, library: Bm25) -> bool:
        return self.open(name, library).state == library.state

    def make(self, name: str, library: Bm25, progress: Progress) -> None:
        if not self.is_current(name, library):
            self.open(name, library).build(library.passages(), progress, library.state)

    def open(self, name: str, library: Bm25) -> PostgresDense:
        from assistant.retrieve.pgvector import PostgresDense  # noqa: PLC0415

        return PostgresDense(self._engine, name, encoder_of(name, self._encoder), library.get)


def vectors_of(settings: Settings, encoder: Embedder) -> Vectors:
    """In the database where that is PostgreSQL with pgvector, in files otherwise.

    Raises:
        SequiturError: the database can't be reached.
    """
    if is_postgres(settings.database_url):
        pgvector, engine = pgvector_module(), connect(settings.database_url)
        if pgvector.prepare(engine):
            return _DatabaseVectors(engine, encoder)
        _LOG.warning("the database has no pgvector: vectors are kept in files of the data folder")
        engine.dispose()
    return _FileVectors(settings, encoder)


class MergedRetriever:
    """A `Retriever` over several whose scores compare, such as cosines of one encoder."""

    def __init__(self, retrievers: Sequence[Retriever]) -> None:
        self._retrievers = tuple(retrievers)

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first."""
        passages = [passage for retriever in self._retrievers for passage in retriever.search(query, k)]
        return sorted(passages, key=lambda passage: -passage.score)[: max(k, 0)]


class DenseShelves(IndexedShelves):
    """Dense retrieval over libraries by their names. Encoding takes minutes: no search does it in silence."""

    WAITING = (
        "The library is being encoded for search by meaning{progress}; "
        "ask again when that is done, or choose search by words (bm25) meanwhile."
    )

    def __init__(self, settings: Settings, load_encoder: Callable[[Progress], Embedder]) -> None:
        """`load_encoder` is called once, when the first library is encoded or opened."""
        super().__init__()
        self._settings, self._load = settings, load_encoder
        self._vectors: Vectors | None = None
        self._making = Lock()

    def make(self, names: Sequence[str], progress: Progress) -> None:
        """Make or update the indexes of these libraries; what was encoded before an interruption is kept.

        Raises:
            SequiturError: the encoder can't be fetched, or an index can't be made.
        """
        with self._making:
            self._vectors = self._vectors or vectors_of(self._settings, self._load(progress))
            for name in names:
                self._vectors.make(name, open_library(name, self._settings), progress)

    def ready_retriever(self, names: Sequence[str]) -> Retriever | None:
        """The libraries, if all can be searched as they are now."""
        vectors = self._vectors
        libraries = {name: open_library(name, self._settings) for name in names}
        if vectors is None or not all(vectors.is_current(name, library) for name, library in libraries.items()):
            return None
        with suppress(DamagedIndexError):  # making mends it
            return MergedRetriever([vectors.open(name, library) for name, library in libraries.items()])
        return None


def _folder(name: str, settings: Settings, embedder: Embedder) -> Path:
    encoder = re.sub(r"[^A-Za-z0-9.-]+", "-", embedder.name).strip("-")
    return settings.data_dir / "dense" / encoder / name


def _is_built(folder: Path, state: str) -> bool:
    try:
        return read_manifest(folder).state == state
    except LibraryError:
        return False
