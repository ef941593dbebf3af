"""Compares how well two programs read the text of PDFs, by sentences that a person copied from pictures of their pages.

`extractors.jsonl` has sentences, cells and rows that were copied from pictures of pages which a seed chose, before any
text of them was looked at; `pdfs.jsonl` says which files these are, and where they come from. None of them comes with
Sequitur.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import process_time

from pypdf import PdfReader
from pypdfium2 import PdfDocument

from assistant.errors import DataError
from assistant.experiment.datasets import read_models
from assistant.experiment.measures import mean, paired_difference
from assistant.experiment.task import Summary
from assistant.library.passages import passages_of
from assistant.library.readers.pdf import blocks_of, pages_of, text_of
from assistant.library.readers.shared.tables import values
from assistant.types import Passage

SENTENCES = Path(__file__).with_suffix(".jsonl")
FILES = Path(__file__).with_name("pdfs.jsonl")
ON_PAGE, IN_PASSAGE = "on its page", "in one passage"
_HYPHEN = re.compile(r"(?<=\w)-\n(?=\w)")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a person saw on a page of a document, from 1."""

    document: str
    page: int
    says: str

    def is_in(self, text: str) -> bool:
        """Whether a text has these words and no others between them; signs, capitals and ligatures don't count."""
        return f" {_words(self.says)} " in f" {_words(text)} "


@dataclass(frozen=True, slots=True)
class File:
    """A file that something was seen in: its SHA-256, and where it comes from."""

    document: str
    sha256: str
    source: str


@dataclass(frozen=True, slots=True)
class Found:
    """What of a document an extractor found: whether each was, by where it was sought; its pages, and seconds."""

    seen: Sequence[Seen]
    was: Mapping[str, Sequence[bool]]
    pages: int
    seconds: float


def by_pdfium(path: Path) -> list[str]:
    """The text of each page as it is read now."""
    with PdfDocument(path) as document:
        return [text_of(page.get_textpage()) for page in document]


def by_pypdf(path: Path) -> list[str]:
    """The text of each page as it was read before."""
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    return [page.extract_text() for page in PdfReader(path).pages]


EXTRACTORS: dict[str, Callable[[Path], list[str]]] = {"PDFium": by_pdfium, "pypdf": by_pypdf}


def compared(paths: Iterable[Path], sentences: Path = SENTENCES, files: Path = FILES) -> Summary:
    """What both find of all that was seen in these documents: the mean of their shares, and the difference by document.

    Headings and tables are those that PDFium finds, in both. Seconds are of a processor, for the text alone.

    Raises:
        DataError: a document isn't the file that its sentences were copied from.
    """
    every = read_models(sentences, Seen, "nothing seen on a page")
    listed = {one.document: one for one in read_models(files, File, "no file")}
    some = {path: [one for one in every if one.document == path.name] for path in paths}
    for path in (path for path, seen in some.items() if seen):
        _check(path, listed.get(path.name))
    found = {
        name: [_found(path, seen, extract) for path, seen in some.items() if seen]
        for name, extract in EXTRACTORS.items()
    }
    ours, theirs = found.values()
    if not ours:
        return {}
    told: Summary = {name: _told(one) for name, one in found.items()}
    for where in (ON_PAGE, IN_PASSAGE):
        told[f"more {where}"] = paired_difference(_shares(ours, where), _shares(theirs, where))
    return told


def _check(path: Path, listed: File | None) -> None:
    if listed is None or sha256(path.read_bytes()).hexdigest() != listed.sha256:
        raise DataError(f"{path.name} is not the file that its sentences were copied from ({FILES.name}).")


def _found(path: Path, seen: Sequence[Seen], extract: Callable[[Path], list[str]]) -> Found:
    start = process_time()
    texts = extract(path)
    seconds = process_time() - start
    title, pages = pages_of(path)
    read = [page._replace(text=text) for page, text in zip(pages, texts, strict=True)]
    passages = passages_of(blocks_of(title, read), path.name, path.name)
    was = {
        ON_PAGE: [one.is_in(texts[one.page - 1]) for one in seen],
        IN_PASSAGE: [any(_says(passage, one) for passage in passages) for one in seen],
    }
    return Found(seen, was, len(texts), seconds)


def _says(passage: Passage, seen: Seen) -> bool:
    """Whether a passage says it that begins on its page or the one before; a row may have names for its cells."""
    bare = "\n".join(values(line) or line for line in passage.text.split("\n"))
    return passage.page in (seen.page - 1, seen.page) and (seen.is_in(passage.text) or seen.is_in(bare))


def _told(found: Sequence[Found]) -> Summary:
    missed = [
        f"{one.document}, page {one.page}: {one.says}"
        for document in found
        for one, was in zip(document.seen, document.was[IN_PASSAGE], strict=True)
        if not was
    ]
    return {
        "documents": len(found),
        "pages a second": sum(one.pages for one in found) / sum(one.seconds for one in found),
        "sentences": sum(len(one.seen) for one in found),
        **{where: sum(sum(one.was[where]) for one in found) for where in (ON_PAGE, IN_PASSAGE)},
        **{f"share {where}": mean(_shares(found, where)) for where in (ON_PAGE, IN_PASSAGE)},
        "missed": missed,
    }


def _shares(found: Sequence[Found], where: str) -> list[float]:
    return [sum(one.was[where]) / len(one.seen) for one in found]


def _words(text: str) -> str:
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", _HYPHEN.sub("", text)).casefold()))
