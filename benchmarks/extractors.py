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
class PageSentence:
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
class Extraction:
    """What an extractor found of a document's sentences: `hits` by where each was sought; its pages, and seconds."""

    sentences: Sequence[PageSentence]
    hits: Mapping[str, Sequence[bool]]
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


def compare_extractors(paths: Iterable[Path], sentences: Path = SENTENCES, files: Path = FILES) -> Summary:
    """What both find of all that was seen in these documents: the mean of their shares, and the difference by document.

    Headings and tables are those that PDFium finds, in both. Seconds are of a processor, for the text alone.

    Raises:
        DataError: a document isn't the file that its sentences were copied from.
    """
    all_sentences = read_models(sentences, PageSentence, "nothing seen on a page")
    files_by_name = {file.document: file for file in read_models(files, File, "no file")}
    sentences_by_path = {
        path: [sentence for sentence in all_sentences if sentence.document == path.name] for path in paths
    }
    for path in (path for path, path_sentences in sentences_by_path.items() if path_sentences):
        _check(path, files_by_name.get(path.name))
    results_by_extractor = {
        name: [
            _run_extractor(path, path_sentences, extract)
            for path, path_sentences in sentences_by_path.items()
            if path_sentences
        ]
        for name, extract in EXTRACTORS.items()
    }
    pdfium_results, pypdf_results = results_by_extractor.values()
    if not pdfium_results:
        return {}
    summary: Summary = {name: _summary(results) for name, results in results_by_extractor.items()}
    for scope in (ON_PAGE, IN_PASSAGE):
        summary[f"more {scope}"] = paired_difference(_shares(pdfium_results, scope), _shares(pypdf_results, scope))
    return summary


def _check(path: Path, file: File | None) -> None:
    if file is None or sha256(path.read_bytes()).hexdigest() != file.sha256:
        raise DataError(f"{path.name} is not the file that its sentences were copied from ({FILES.name}).")


def _run_extractor(path: Path, sentences: Sequence[PageSentence], extract: Callable[[Path], list[str]]) -> Extraction:
    start = process_time()
    texts = extract(path)
    seconds = process_time() - start
    title, pages = pages_of(path)
    extracted_pages = [page._replace(text=text) for page, text in zip(pages, texts, strict=True)]
    passages = passages_of(blocks_of(title, extracted_pages), path.name, path.name)
    hits = {
        ON_PAGE: [sentence.is_in(texts[sentence.page - 1]) for sentence in sentences],
        IN_PASSAGE: [any(_is_in_passage(passage, sentence) for passage in passages) for sentence in sentences],
    }
    return Extraction(sentences, hits, len(texts), seconds)


def _is_in_passage(passage: Passage, sentence: PageSentence) -> bool:
    """Whether the passage has the sentence and begins on its page or the one before; cells may have names."""
    text_without_names = "\n".join(values(line) or line for line in passage.text.split("\n"))
    return passage.page in (sentence.page - 1, sentence.page) and (
        sentence.is_in(passage.text) or sentence.is_in(text_without_names)
    )


def _summary(results: Sequence[Extraction]) -> Summary:
    missed = [
        f"{sentence.document}, page {sentence.page}: {sentence.says}"
        for result in results
        for sentence, was_found in zip(result.sentences, result.hits[IN_PASSAGE], strict=True)
        if not was_found
    ]
    return {
        "documents": len(results),
        "pages a second": sum(result.pages for result in results) / sum(result.seconds for result in results),
        "sentences": sum(len(result.sentences) for result in results),
        **{scope: sum(sum(result.hits[scope]) for result in results) for scope in (ON_PAGE, IN_PASSAGE)},
        **{f"share {scope}": mean(_shares(results, scope)) for scope in (ON_PAGE, IN_PASSAGE)},
        "missed": missed,
    }


def _shares(results: Sequence[Extraction], scope: str) -> list[float]:
    return [sum(result.hits[scope]) / len(result.sentences) for result in results]


def _words(text: str) -> str:
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", _HYPHEN.sub("", text)).casefold()))
