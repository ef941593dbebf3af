"""Tab-separated passages as DPR has them (psgs_w100.tsv): `7<TAB>"He said ""yes""."<TAB>A title`.

May be gzipped and have a header line. A line that is not quoted as a whole is read as it stands, as in TREC's files.
Karpukhin et al., "Dense Passage Retrieval for Open-Domain Question Answering", EMNLP 2020.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from assistant.errors import LibraryError
from assistant.library.readers.shared.text import LINE_CHARS, load_lines, tidy, title_line, with_unique_ids
from assistant.text.chunks import Block

SUFFIXES = (".tsv", ".tsv.gz")
RECORDS = True
COLUMNS = 3

# The module takes no more than 131,072 characters otherwise.
csv.field_size_limit(LINE_CHARS)


def read(path: Path) -> Iterator[Block]:
    """The passages in order.

    Raises:
        LibraryError: a line has not three columns, or repeats an id; the message names the line.
    """
    return with_unique_ids(_numbered_passages(path))


def _numbered_passages(path: Path) -> Iterator[tuple[int, Block]]:
    for number, line in enumerate(load_lines(path), 1):
        row = _columns(line)
        if line.strip() and not (number == 1 and row[0] == "id"):
            yield number, _passage(row, number)


def _columns(line: str) -> list[str]:
    with suppress(csv.Error):
        row = next(csv.reader([line], delimiter="\t", strict=True), [])
        if len(row) == COLUMNS:
            return row
    return line.split("\t")


def _passage(row: list[str], number: int) -> Block:
    if len(row) != COLUMNS:
        raise LibraryError(f"line {number}: {len(row)} columns where id, text and title are expected")
    identifier, text = map(tidy, row[:2])
    if not identifier or not text:
        raise LibraryError(f"line {number}: the id or the text is empty")
    return Block(text, title_line(row[2]), id=identifier)
