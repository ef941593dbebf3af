"""BM25 over an index that was made elsewhere with Anserini or Pyserini, such as that of ClueWeb22-B.

The index must have been made from JSON records (`{"id": "clueweb22-...:0", "contents": "..."}` and others that
`assistant/retrieve/external_records.py` knows) with `-storeRaw`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assistant.errors import LibraryError, TextlessIndexError
from assistant.retrieve import jvm
from assistant.retrieve.bm25 import Ranker, open_searcher, reading, searchable
from assistant.retrieve.external_records import external_passage
from assistant.types import Passage

_HOW_TO_INDEX = "make it with: python -m pyserini.index.lucene --collection JsonCollection --storeRaw ..."


class Anserini:
    """A `Retriever` over one Lucene index, opened once and never written."""

    def __init__(self, folder: Path, k1: float = 0.9, b: float = 0.4) -> None:
        """Open the index.

        Raises:
            TextlessIndexError: it doesn't hold its passages' texts.
            LibraryError: there is none, it is empty, or it can't be read.
        """
        if not any(folder.glob("segments_*")):
            raise LibraryError(f"There is no index in {folder}; {_HOW_TO_INDEX}.")
        self._folder = folder
        self._searcher = jvm.call(self._open, k1, b)

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first. The query is plain text: Lucene's syntax means nothing in it.

        Raises:
            LibraryError: the index can't be read any more.
        """
        text = searchable(query)
        return jvm.call(self._search, text, k) if text and k > 0 else []

    def __len__(self) -> int:
        """How many passages there are."""
        return jvm.call(lambda: int(self._searcher.object.reader.numDocs()))

    def _open(self, k1: float, b: float) -> Any:
        with reading(self._folder):
            searcher = open_searcher(self._folder)
            self._ranker = Ranker(searcher, k1, b)
            reader = searcher.object.reader
            if int(reader.numDocs()) == 0:
                raise LibraryError(f"The index in {self._folder} holds no passages; {_HOW_TO_INDEX}.")
            self._passage(reader.storedFields().document(0).get("raw"), 0.0)
        return searcher

    def _search(self, query: str, k: int) -> list[Passage]:
        with reading(self._folder):
            return [self._passage(raw, score) for raw, score in self._ranker.search(query, k)]

    def _passage(self, raw: str | None, score: float) -> Passage:
        try:
            return external_passage(json.loads(raw or ""), score, self._folder.name)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TextlessIndexError(
                f"The index in {self._folder} doesn't hold its passages' texts; {_HOW_TO_INDEX}."
            ) from error
