"""One file for each format. A reader module names its `SUFFIXES`; its `read(path)` yields the blocks of a document.

`RECORDS` is true where each block is a passage with an id of its own. A document that can't be read raises
`LibraryError` with the reason alone ("it is encrypted"): whoever reports it names the file. Adding a format is adding
a file here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from traceback import walk_tb
from typing import Protocol, cast, runtime_checkable

from assistant.errors import LibraryError
from assistant.protocols import Progress, silent
from assistant.registry import variants
from assistant.text.chunks import Block

_LOG = logging.getLogger(__name__)
# Lucene takes 32,766 bytes; a longer id would make it refuse the whole upload.
ID_CHARS = 1000
# What is said once in a file may be read many times over: a text that many cells share, a chapter that is listed twice.
CHARS_MOST, BLOCKS_MOST = 50_000_000, 1_000_000


class Reader(Protocol):
    """What a module in this folder looks like."""

    SUFFIXES: tuple[str, ...]
    RECORDS: bool

    def read(self, path: Path) -> Iterator[Block]:
        """The document's blocks, in order.

        Raises:
            LibraryError: the document can't be read; the message is the reason.
        """
        ...


@runtime_checkable
class PagedReader(Reader, Protocol):
    """A reader that also tells how many pages it has read."""

    def read_with_progress(self, path: Path, progress: Progress) -> Iterator[Block]:
        """The same as `read`; `progress` is told pages.

        Raises:
            LibraryError: as `read`.
        """
        ...


def reader_of(path: Path) -> Reader | None:
    """The reader for this file, by its name, or None where there is none."""
    name = path.name.lower()
    ends = [suffix for suffix in _readers() if name.endswith(suffix)]
    return _readers()[max(ends, key=len)] if ends else None


def suffixes() -> list[str]:
    """The endings of file names that can be read."""
    return sorted(_readers())


def read(path: Path, progress: Progress = silent) -> list[Block]:
    """All blocks of a document; `progress` is told its pages, where it has some.

    Raises:
        LibraryError: the document can't be read, or holds no text; the message is the reason.
    """
    reader = reader_of(path)
    if reader is None:
        raise LibraryError(f"this kind of file can't be read; readable are {', '.join(suffixes())}")
    try:
        unbounded_blocks = (
            reader.read_with_progress(path, progress) if isinstance(reader, PagedReader) else reader.read(path)
        )
        blocks = [block for block in _bounded(unbounded_blocks) if block.text.strip()]
    except LibraryError:
        raise
    except OSError as error:
        raise LibraryError(f"it can't be opened ({error.strerror or error})") from error
    except RecursionError as error:
        raise LibraryError("its parts are nested too deeply; save it anew in a simpler format") from error
    except SyntaxError as error:  # lxml's and expat's
        raise LibraryError("its XML can't be read: it is damaged, nested too deeply, or has too long a text") from error
    except Exception as error:
        raise LibraryError(_reason(error, path.suffix.lower())) from error
    if not blocks:
        raise LibraryError("it holds no text")
    if any(len(block.id) > ID_CHARS for block in blocks):
        raise LibraryError(f"it has an id of more than {ID_CHARS:,} characters")
    return blocks


def _reason(error: Exception, suffix: str) -> str:
    """Why a file couldn't be read that made a reader raise what it doesn't expect.

    What a damaged file makes the libraries of its format raise can't be told beforehand. What our own code raises is a
    bug of ours.
    """
    module = [frame.f_globals["__name__"] for frame, _ in walk_tb(error.__traceback__)][-1]
    if module.partition(".")[0] == __name__.partition(".")[0]:
        _LOG.error("reading a %s file failed", suffix, exc_info=error)  # its name is its owner's
        return "it can't be read, and may be damaged; the log has the details"
    # Without a traceback and the message, which may say what is in the file.
    _LOG.warning("reading a %s file ended with %s in %s", suffix, type(error).__name__, module)
    return f"it is damaged, or not a {suffix} file that can be read; save it anew with the program that it comes from"


def _bounded(blocks: Iterator[Block]) -> Iterator[Block]:
    chars = 0
    for number, block in enumerate(blocks, 1):
        chars += len(block.text)
        if chars > CHARS_MOST or number > BLOCKS_MOST:
            raise LibraryError(
                f"it holds more than {CHARS_MOST:,} characters, or {BLOCKS_MOST:,} paragraphs; split it up"
            )
        yield block


@cache
def _readers() -> dict[str, Reader]:
    readers = [cast("Reader", variants.module("readers", name)) for name in variants.names("readers")]
    return {suffix: reader for reader in readers for suffix in reader.SUFFIXES}
