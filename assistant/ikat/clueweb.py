"""Cuts documents of ClueWeb22 into passages as TREC iKAT does, and indexes them with Anserini.

A document is its clean text without line breaks, cut to 10,000 characters; a passage is a window of ten sentences, the
next begins five sentences later; passage n of a document is `<document>:<n>`, from 0 (guidelines of iKAT 2023).
docs/clueweb.md has the steps from the collection to a run.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]
from warcio.exceptions import ArchiveLoadFailed  # type: ignore[import-untyped]

from assistant.errors import DataError
from assistant.library.readers import html
from assistant.protocols import Progress
from assistant.retrieve import jvm
from assistant.retrieve.bm25 import reading
from assistant.text.sentences import quote, sentences
from assistant.types import Passage

MAX_DOCUMENT_CHARS = 10_000
SENTENCES_PER_PASSAGE = 10
STRIDE = 5
WARC_ENDINGS = (".warc", ".warc.gz")
TEXT_ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".json.bz2", ".jsonl.bz2")
PASSAGE_ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
ID_HEADERS = ("ClueWeb22-ID", "WARC-TREC-ID")
# Anserini buffers this much before it writes; Java has no more than 1 GB here.
BUFFER_MB = 256


@dataclass(frozen=True, slots=True)
class Document:
    """A web page of the collection, as clean text."""

    id: str
    url: str
    text: str


def documents(path: Path) -> Iterator[Document]:
    """The documents of one file of the collection: its clean texts (JSON lines) or its pages (WARC), in their order.

    Raises:
        DataError: the file is neither, can't be read, or has a broken record; the message names it.
    """
    name = path.name.lower()
    reader = _pages if name.endswith(WARC_ENDINGS) else _texts if name.endswith(TEXT_ENDINGS) else None
    if reader is None:
        raise DataError(f"{path} is no file of ClueWeb22; those end in {', '.join((*WARC_ENDINGS, *TEXT_ENDINGS))}.")
    yield from reader(path)


def segment(document: Document) -> list[Passage]:
    """The passages of a document; none where it has no text."""
    text = document.text.replace("\r", " ").replace("\n", " ").strip()[:MAX_DOCUMENT_CHARS]
    sentence_texts = [quote(text, span) for span in sentences(text)]
    last_start = max(len(sentence_texts) - SENTENCES_PER_PASSAGE, 0)
    starts = range(0, last_start + STRIDE, STRIDE) if sentence_texts else ()
    return [
        Passage(
            f"{document.id}:{n}",
            "",
            " ".join(sentence_texts[start : start + SENTENCES_PER_PASSAGE]),
            source=document.url,
        )
        for n, start in enumerate(starts)
    ]


def collection_files(paths: Sequence[Path]) -> list[Path]:
    """The files to read: those that are named, and those of the collection that are in the folders named.

    Raises:
        DataError: one is not there, or there is nothing to read.
    """
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            raise DataError(f"There is no {path}; check the path.")
        folder_files = (
            file for file in sorted(path.rglob("*")) if file.name.lower().endswith((*WARC_ENDINGS, *TEXT_ENDINGS))
        )
        files += folder_files if path.is_dir() else [path]
    if not files:
        raise DataError(f"No file of ClueWeb22 is in {', '.join(map(str, paths))}; name its txt or html folder.")
    return files


def write_passages(files: Sequence[Path], folder: Path, progress: Progress) -> int:
    """Write the passages of each file into one of its own, as Anserini's JsonCollection reads them; say how many.

    A file whose passages are there already is skipped, so that an interrupted run goes on where it stopped.

    Args:
        files: of the collection, as `collection_files` finds them.
        folder: where the .jsonl.gz files go.
        progress: told files.

    Raises:
        DataError: a file is broken, two are called alike, or the folder can't be written.
    """
    count = 0
    for done, (target, file) in enumerate(_targets(files, folder).items()):
        progress(done, len(files))
        if not target.exists():
            count += _write(file, target)
    progress(len(files), len(files))
    return count


def passage_files(folder: Path) -> list[Path]:
    """The files of passages in a folder and below it, as Anserini looks for them.

    Raises:
        DataError: there are none.
    """
    files = [file for file in sorted(folder.rglob("*.json*")) if file.name.endswith(PASSAGE_ENDINGS)]
    if not files:
        raise DataError(
            f"There are no passages in {folder}; write them with: "
            "python -m assistant ikat-index PATH --passages FOLDER."
        )
    return files


def compare_hashes(passages: Sequence[Path], hashes: Path) -> tuple[int, list[str]]:
    """How many of the passages the track knows, and the ids of those that it cuts otherwise.

    Args:
        passages: .jsonl[.gz] files, as `passage_files` finds them.
        hashes: the track's TSV file of document, passage number and the MD5 of the passage's text; may be bzipped.

    Raises:
        DataError: a file can't be read, a line of it is no passage, or one of the hashes has not three columns.
    """
    our_digests = dict(pair for path in passages for pair in _digests(path))
    known_count, differing_ids = 0, []
    with _opened(hashes) as lines:
        for n, line in enumerate(lines, 1):
            identity, digest = _hash(hashes, n, line)
            known_count += identity in our_digests
            differing_ids += [identity] if our_digests.get(identity, digest) != digest else []
    return known_count, differing_ids


def build_index(passages: Path, index: Path, threads: int = 2) -> None:
    """Index the .jsonl[.gz] files of a folder with Anserini, so that `--index` can search them.

    Raises:
        DataError: there are none, or the index is no folder, or one that is not empty.
        LibraryError: the index can't be written.
    """
    passage_files(passages)
    if index.exists() and (not index.is_dir() or any(index.iterdir())):
        raise DataError(f"{index} is not an empty folder; choose another for the index.")
    format_args = ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator", "-storeRaw"]
    limit_args = ["-threads", str(threads), "-memoryBuffer", str(BUFFER_MB)]
    path_args = ["-input", str(passages), "-index", str(index)]
    with reading(index):
        jvm.call(lambda: jvm.java("io.anserini.index.IndexCollection").main([*format_args, *limit_args, *path_args]))


def _targets(files: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """The files by where their passages go."""
    files_by_target: dict[Path, Path] = {}
    for file in files:
        ending = next((suffix for suffix in (*WARC_ENDINGS, *TEXT_ENDINGS) if file.name.lower().endswith(suffix)), "")
        target = folder / f"{file.parent.name}-{file.name[: len(file.name) - len(ending)]}.jsonl.gz"
        first_file = files_by_target.setdefault(target, file)
        if not first_file.samefile(file):
            raise DataError(
                f"The passages of {first_file} and of {file} would be one file; rename one, or leave it out."
            )
    return files_by_target


def _write(file: Path, target: Path) -> int:
    partial_file, count = target.with_name(f"{target.name}.part"), 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(partial_file, "wt", encoding="utf-8") as out:
            for passage in (passage for document in documents(file) for passage in segment(document)):
                record = {"id": passage.id, "contents": passage.text, "url": passage.source}
                out.write(json.dumps(record, ensure_ascii=False) + "\n")
                count += 1
        partial_file.replace(target)
    except OSError as error:
        raise DataError(f"The passages can't be written to {target} ({error.strerror}); choose another.") from error
    finally:
        if partial_file.exists():  # unlink's own missing_ok fails where a file stands in the folder's place
            partial_file.unlink()
    return count


def _digests(path: Path) -> Iterator[tuple[str, str]]:
    with _opened(path) as lines:
        for n, line in enumerate(lines, 1):
            try:
                identity, text = _passage(json.loads(line))
                digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise DataError(f"{path}, line {n}, is no passage; take the file out of the folder.") from error
            yield identity, digest


def _passage(record: dict[str, Any]) -> tuple[str, str]:
    identity, text = record["id"], record["contents"]
    if not isinstance(identity, str) or not isinstance(text, str):
        raise TypeError("an id or a text is something else")
    return identity, text


def _texts(path: Path) -> Iterator[Document]:
    """Clean texts: `{"ClueWeb22-ID": "clueweb22-en0000-00-00000", "URL": "https://...", "Clean-Text": "..."}`."""
    with _opened(path) as lines:
        for n, line in enumerate(lines, 1):
            try:
                document = _document(json.loads(line))
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise DataError(f"{path}, line {n}, has no ClueWeb22-ID or no Clean-Text; copy it again.") from error
            yield document


def _document(record: dict[str, Any]) -> Document:
    identity, text = record["ClueWeb22-ID"], record["Clean-Text"]
    if not isinstance(identity, str) or not isinstance(text, str):
        raise TypeError("an id or a text is something else")
    return Document(identity, str(record.get("URL", "")).strip(), text)


def _pages(path: Path) -> Iterator[Document]:
    """Pages, each an HTTP response or the page alone, whose id is in the record's header."""
    try:
        with path.open("rb") as file:
            for n, record in enumerate(ArchiveIterator(file), 1):
                if record.rec_type in {"response", "resource", "conversion"}:
                    yield _page(f"{path}, record {n}", record)
    except (OSError, EOFError, zlib.error, ArchiveLoadFailed) as error:
        raise DataError(f"{path} can't be read to its end ({error}); copy it again.") from error


def _page(location: str, record: Any) -> Document:
    header_ids = [record.rec_headers.get_header(name) for name in ID_HEADERS]
    identity = next((header_id for header_id in header_ids if header_id), None)
    if identity is None:
        raise DataError(f"{location}, has no ClueWeb22-ID in its header; it is not of ClueWeb22.")
    url = record.rec_headers.get_header("WARC-Target-URI") or ""
    page = record.content_stream().read()
    if record.raw_stream.limit > 0:  # the library takes a page that ends too early for a whole one
        raise DataError(f"{location}, was cut off; copy the file again.")
    return Document(identity.strip(), url.strip(), _clean_text(page))


def _clean_text(page: bytes) -> str:
    """The page's text, a paragraph a line, title first; the collection's own clean text is somewhat other."""
    blocks = list(html.blocks(page.decode("utf-8", "replace"), ""))
    title = [blocks[0].title] if blocks and blocks[0].title else []
    return "\n".join([*title, *(block.text for block in blocks if block.text not in title)])


@contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    try:
        with _open(path) as lines:
            yield lines
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{path} can't be read to its end ({error}); copy it again.") from error


def _open(path: Path) -> IO[str]:
    if path.name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8")
    if path.name.endswith(".bz2"):
        return bz2.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def _hash(path: Path, n: int, line: str) -> tuple[str, str]:
    columns = line.split()
    if len(columns) != 3:
        raise DataError(f"{path}, line {n}, does not read 'document passage MD5'; give the track's own file.")
    return f"{columns[0]}:{columns[1]}", columns[2]
