"""A corpus of passages for evaluation: indexed once as it is, without cutting, and kept by its content."""

from __future__ import annotations

from hashlib import file_digest
from pathlib import Path

from assistant.errors import LibraryError
from assistant.library.readers import read, reader_of
from assistant.library.shelves import FOREVER, is_library, locked
from assistant.library.writer import writing
from assistant.protocols import Progress
from assistant.retrieve.bm25 import FORMAT, Bm25
from assistant.settings import Settings
from assistant.types import Passage

BATCH = 1000


def corpus_retriever(path: Path, settings: Settings, progress: Progress) -> Bm25:
    """BM25 over the passages of a file of records ({id, title, contents} a line, or DPR's TSV; may be gzipped).

    Args:
        path: the corpus.
        settings: say where indexes are kept, and k1 and b.
        progress: told passages.

    Raises:
        LibraryError: the file can't be read or holds something else, or the index can't be written.
    """
    folder = corpus_folder(path, settings)
    if not is_library(folder):
        with locked(folder, FOREVER):
            if not is_library(folder):
                _build(folder, load_corpus(path), progress)
    return Bm25(folder, k1=settings.retrieve.k1, b=settings.retrieve.b)


def corpus_folder(path: Path, settings: Settings) -> Path:
    """Where the index of a corpus is, or would be; named by its content.

    Raises:
        LibraryError: the file can't be read.
    """
    return settings.data_dir / "corpora" / f"{_digest(path)[:16]}-{FORMAT}"


def load_corpus(path: Path) -> list[Passage]:
    """The passages of a corpus, with the ids that they have in it.

    Raises:
        LibraryError: the file can't be read or holds something else; the message names it.
    """
    reader = reader_of(path)
    if reader is None or not reader.RECORDS:
        raise LibraryError(f"The corpus {path} can't be used: a corpus is .jsonl or .tsv, which may be gzipped (.gz).")
    try:
        return [Passage(block.id, block.title, block.text, source=path.name) for block in read(path)]
    except LibraryError as error:
        raise LibraryError(f"The corpus {path} can't be used: {error}.") from error


def _build(folder: Path, passages: list[Passage], progress: Progress) -> None:
    folder.mkdir(exist_ok=True)
    with writing(folder) as writer:
        writer.clear()
        for start in range(0, len(passages), BATCH):
            writer.add("corpus", passages[start : start + BATCH])
            progress(min(start + BATCH, len(passages)), len(passages))
        writer.commit({"passages": len(passages)})


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise LibraryError(f"The corpus {path} can't be opened ({error.strerror}).") from error
