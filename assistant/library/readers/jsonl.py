r"""JSON lines as Pyserini has them, a passage a line: `{"id": "7", "title": "Oslo", "contents": "Oslo is ..."}`.

`id` may be a number; `title` may be missing; other keys are ignored. May be gzipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assistant.errors import LibraryError
from assistant.library.readers.shared.text import load_lines, title_line, with_unique_ids
from assistant.text.chunks import Block
from assistant.text.sentences import clean

SUFFIXES = (".jsonl", ".jsonl.gz")
RECORDS = True


def read(path: Path) -> Iterator[Block]:
    """The records in order.

    Raises:
        LibraryError: a line is no such record, or repeats an id; the message names the line.
    """
    numbered_lines = enumerate(load_lines(path), 1)
    return with_unique_ids((number, _record(line, number)) for number, line in numbered_lines if line.strip())


def _record(line: str, number: int) -> Block:
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LibraryError(f"line {number}: not valid JSON ({error})") from error
    if not isinstance(record, dict):
        raise LibraryError(f"line {number}: not a JSON object with id, title and contents")
    identifier = record.get("id")
    if isinstance(identifier, bool) or not isinstance(identifier, str | int) or not str(identifier).strip():
        raise LibraryError(f"line {number}: 'id' is missing or empty")
    contents, title = record.get("contents"), record.get("title") or ""
    if not isinstance(contents, str) or not contents.strip():
        raise LibraryError(f"line {number}: 'contents' is missing or empty")
    if not isinstance(title, str):
        raise LibraryError(f"line {number}: 'title' is not text")
    return Block(clean(contents), title_line(title), id=clean(str(identifier)))
