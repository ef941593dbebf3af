"""Libraries in OpenSearch: brought there from the indexes here when first asked for, and kept in step with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from threading import Lock

from assistant.library.making import IndexedShelves
from assistant.library.shelves import FOREVER, library_folder, locked, open_library
from assistant.library.vectors import encoder_of
from assistant.protocols import Embedder, Progress, Retriever
from assistant.retrieve.bm25 import read_manifest
from assistant.retrieve.opensearch import Cluster, Index, VectorRetriever, WordRetriever
from assistant.settings import Settings


class RemoteShelves(IndexedShelves):
    """Libraries by their names, searched in OpenSearch: by meaning where there is an encoder, by words otherwise."""

    WAITING = "The library is being brought to OpenSearch{progress}; ask again when that is done."

    def __init__(self, settings: Settings, load_encoder: Callable[[Progress], Embedder] | None = None) -> None:
        """`load_encoder` is called once, when the first library is brought there or opened.

        Raises:
            LibraryError: the client of OpenSearch is not installed.
        """
        super().__init__()
        self._settings, self._load = settings, load_encoder
        self._cluster = Cluster(settings.retrieve)
        self._encoder: Embedder | None = None
        self._making = Lock()

    def make(self, names: Sequence[str], progress: Progress) -> None:
        """Bring there what differs from the libraries here; what arrived before an interruption is not sent again.

        Raises:
            SequiturError: the encoder can't be fetched, a library can't be read, or OpenSearch can't be written.
        """
        with self._making:
            if self._load:
                self._encoder = self._encoder or self._load(progress)
            for name in names:
                with locked(self._settings.data_dir / "opensearch" / name, FOREVER):
                    library = open_library(name, self._settings)
                    index = self._index(name)
                    index.synchronise(library.passages(), len(library), mark_of(name, self._settings), progress)

    def ready_retriever(self, names: Sequence[str]) -> Retriever | None:
        """The libraries, if all of them are there as they are here."""
        if self._load and not self._encoder:
            return None
        indexes = [self._index(name) for name in names]
        expected_marks = {index.name: mark_of(name, self._settings) for index, name in zip(indexes, names, strict=True)}
        if self._cluster.marks(indexes) != expected_marks:
            return None
        return (
            VectorRetriever(self._cluster, indexes, self._encoder)
            if self._encoder
            else WordRetriever(self._cluster, indexes)
        )

    def _index(self, name: str) -> Index:
        return self._cluster.index(name, self._encoder and encoder_of(name, self._encoder))


def mark_of(name: str, settings: Settings) -> str:
    """Names what a library holds, the same on every computer: its documents, each by its hash.

    Raises:
        LibraryError: the library can't be read.
    """
    manifest = read_manifest(library_folder(name, settings))
    return sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:16]
