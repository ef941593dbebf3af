"""Writes passages into a Lucene index. A commit is atomic: killed before it, the index is what it was."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from assistant.errors import LibraryError
from assistant.retrieve import jvm
from assistant.retrieve.bm25 import FORMAT, FORMAT_KEY, KEYWORDS, MANIFEST_KEY, passage_json
from assistant.types import Passage

_LOG = logging.getLogger(__name__)
DOCUMENT_FIELD = "document"
BUFFER_MB = 64.0
# How Lucene calls files of an index that were cut or changed.
_DAMAGE = ("CorruptIndexException", "EOFException", "IndexFormatToo", "NoSuchFileException")


class Writer:
    """An open index. Nothing is seen by searches, or survives, until `commit`."""

    def __init__(self, folder: Path) -> None:
        """Open or begin the index in `folder`, which exists.

        Raises:
            LibraryError: the index is corrupt, or the disk can't be written.
        """
        self._folder = folder
        with self._writing():
            jvm.call(self._open)

    def add(self, document: str, passages: Sequence[Passage], keywords: Mapping[str, str] | None = None) -> None:
        """Add passages, which belong to `document` from now on.

        `keywords` are words by the ids of passages that these are found by as well, and that no search returns.

        Raises:
            LibraryError: the disk is full or can't be written.
        """
        with self._writing():
            jvm.call(self._add, document, passages, keywords or {})

    def remove(self, document: str) -> None:
        """Remove every passage of `document`.

        Raises:
            LibraryError: the disk is full or can't be written.
        """
        with self._writing():
            jvm.call(self._remove, document)

    def clear(self) -> None:
        """Remove every passage."""
        with self._writing():
            jvm.call(self._delete_all)

    def holds_any(self, ids: Sequence[str]) -> bool:
        """Whether one of these passage ids is in the index, uncommitted ones included."""
        with self._writing():
            return jvm.call(self._holds_any, ids)

    def commit(self, manifest: Mapping[str, Any]) -> None:
        """Make all changes visible and durable, with what the index is to say of its documents.

        Raises:
            LibraryError: the disk is full or can't be written; the index is what it was.
        """
        with self._writing():
            jvm.call(self._commit, manifest)

    def close(self) -> None:
        """Let go of the index; what was not committed is forgotten."""
        with self._writing():
            jvm.call(self._close)

    def _open(self) -> None:
        java = jvm.java
        self._analyzer = java("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
        config = java("org.apache.lucene.index.IndexWriterConfig")(self._analyzer)
        config.setRAMBufferSizeMB(BUFFER_MB)
        config.setCommitOnClose(False)
        path = java("java.nio.file.Paths").get(str(self._folder))
        self._directory = java("org.apache.lucene.store.FSDirectory").open(path)
        self._writer = java("org.apache.lucene.index.IndexWriter")(self._directory, config)
        # Of keywords it counts which there are, not how often, nor among how many.
        self._keyword_type = java("org.apache.lucene.document.FieldType")(
            java("org.apache.lucene.document.TextField").TYPE_NOT_STORED
        )
        self._keyword_type.setOmitNorms(True)
        self._keyword_type.setIndexOptions(java("org.apache.lucene.index.IndexOptions").DOCS)
        arguments = java("io.anserini.index.IndexCollection$Args")()
        arguments.storeRaw = True
        self._generator = java("io.anserini.index.generator.DefaultLuceneDocumentGenerator")(arguments)

    def _add(self, document: str, passages: Sequence[Passage], keywords: Mapping[str, str]) -> None:
        parse = jvm.java("io.anserini.collection.JsonCollection$Document").fromString
        store = jvm.java("org.apache.lucene.document.Field$Store")
        field = jvm.java("org.apache.lucene.document.StringField")(DOCUMENT_FIELD, document, store.NO)
        for passage in passages:
            lucene_document = self._generator.createDocument(parse(passage_json(passage)))
            lucene_document.add(field)
            if words := keywords.get(passage.id):
                text = jvm.cast("java.io.Reader", jvm.java("java.io.StringReader")(words))
                lucene_document.add(jvm.java("org.apache.lucene.document.Field")(KEYWORDS, text, self._keyword_type))
            self._writer.addDocument(lucene_document)

    def _remove(self, document: str) -> None:
        # Deleting takes a variable number of terms in Java, which the bridge calls reliably in its update form only.
        term = jvm.java("org.apache.lucene.index.Term")(DOCUMENT_FIELD, document)
        self._writer.updateDocuments(term, jvm.java("java.util.ArrayList")())

    def _delete_all(self) -> None:
        self._writer.deleteAll()

    def _holds_any(self, ids: Sequence[str]) -> bool:
        terms = jvm.java("java.util.ArrayList")()
        for passage_id in ids:
            terms.add(jvm.java("org.apache.lucene.util.BytesRef")(passage_id.encode()))
        reader = jvm.java("org.apache.lucene.index.DirectoryReader").open(self._writer)
        try:
            query = jvm.java("org.apache.lucene.search.TermInSetQuery")("id", terms)
            index_reader = jvm.cast("org.apache.lucene.index.IndexReader", reader)
            return int(jvm.java("org.apache.lucene.search.IndexSearcher")(index_reader).count(query)) > 0
        finally:
            reader.close()

    def _commit(self, manifest: Mapping[str, Any]) -> None:
        data = jvm.java("java.util.HashMap")()
        data.put(FORMAT_KEY, FORMAT)
        data.put(MANIFEST_KEY, json.dumps(manifest))
        self._writer.setLiveCommitData(data.entrySet())
        self._writer.commit()

    def _close(self) -> None:
        self._writer.rollback()
        self._directory.close()
        del self._writer, self._directory, self._generator, self._analyzer, self._keyword_type

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn what Java raises while writing into a sentence for a person."""
        try:
            yield
        except jvm.java_exception() as error:
            if not error.classname:
                raise
            _LOG.warning("writing %s failed: %s", self._folder, error)
            raise LibraryError(_sentence(self._folder, error)) from error


@contextmanager
def writing(folder: Path) -> Iterator[Writer]:
    """A writer that is closed in the end, whatever happens."""
    writer = Writer(folder)
    try:
        yield writer
    finally:
        with suppress(LibraryError):
            writer.close()


def _sentence(folder: Path, error: Exception) -> str:
    if "No space left" in str(error):
        return f"The disk is full: free some space for {folder} and try again; the index is as it was before."
    if any(damage in str(error) for damage in _DAMAGE):
        return (
            f"The index in {folder} is damaged; put a backup in its place, or move that folder away and add the "
            "documents again (copies of what was uploaded are in it, in originals)."
        )
    if "LockObtainFailed" in str(error):
        return f"The index in {folder} is being updated elsewhere; try again when that has finished."
    return (
        f"The index in {folder} can't be written; check the folder's permissions, or remove it and try again. The log "
        "has the details."
    )
