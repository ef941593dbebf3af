"""The library that comes with Sequitur: the World Factbook with its countries ranked, and the everyday shelf.

A file of the shelf (`shelf/*.md`) holds `# Subject`, a remark, and per passage `## Title` and one paragraph. Between
these may stand `<!-- keywords: ... -->`: words that the passage is found by, and that are never shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from assistant.errors import LibraryError
from assistant.library import factbook, rankings
from assistant.library.entry import Entry
from assistant.library.shelves import FOREVER, library_folder, locked
from assistant.library.writer import Writer, writing
from assistant.protocols import Progress
from assistant.retrieve import jvm
from assistant.retrieve.bm25 import FORMAT, KEYWORDS, read_manifest
from assistant.settings import Settings
from assistant.types import Passage

NAME = "starter"
SHELF = Path(__file__).with_name("shelf")
SHELF_SOURCE = "Everyday shelf (written for Sequitur; no professional advice)"
_HEADING, _KEYWORDS, _END = "\n## ", "<!-- keywords:", "-->"


def ensure_starter(settings: Settings, progress: Progress) -> Path:
    """The folder of the starter library, which is built where it is missing, broken or of other contents.

    Raises:
        LibraryError: it can't be built; the message says what to do.
    """
    # where there is no Java, every index would look broken, and a broken one is built anew
    jvm.start()
    folder, version = library_folder(NAME, settings), content_version()
    if not _is_built(folder, version):
        with locked(folder, FOREVER):
            if not _is_built(folder, version):
                _build(folder, version, progress)
    return folder


def content_version() -> str:
    """A hash of everything that the starter library is made from."""
    code_files = [Path(factbook.__file__), Path(rankings.__file__)]
    source_files = [factbook.TOPICS, rankings.RANKINGS, *code_files, *_shelf_files(SHELF)]
    parts = [FORMAT, KEYWORDS, factbook.content_version(), *(file.read_text(encoding="utf-8") for file in source_files)]
    return sha256(json.dumps(parts).encode()).hexdigest()


def shelf_entries(folder: Path = SHELF) -> Iterator[Entry]:
    """The passages of the everyday shelf, numbered within their file, with their keywords."""
    for file in _shelf_files(folder):
        sections = file.read_text(encoding="utf-8").split(_HEADING)[1:]
        for n, section in enumerate(sections, 1):
            title, _, body = section.partition("\n")
            comment, end, text = body.partition(_END)
            keywords = comment.strip().removeprefix(_KEYWORDS).strip() if end else ""
            paragraph = " ".join((text if end else body).split())
            yield Entry(Passage(f"shelf-{file.stem}-{n:03}", title.strip(), paragraph, source=SHELF_SOURCE), keywords)


def _shelf_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.md"))


def _is_built(folder: Path, version: str) -> bool:
    try:
        return bool(read_manifest(folder).get("version") == version)
    except LibraryError:
        return False


def _build(folder: Path, version: str, progress: Progress) -> None:
    countries = factbook.countries()
    total = len(countries) + 1
    with writing(_emptied(folder)) as writer:
        writer.clear()
        everyday_entries, ranking_entries = list(shelf_entries()), list(rankings.ranked_entries())
        _add(writer, "shelf", everyday_entries)
        _add(writer, "factbook", ranking_entries)
        count = len(ranking_entries)
        for done, country in enumerate(countries, 1):
            entries = list(factbook.country_entries(country))
            _add(writer, "factbook", entries)
            count += len(entries)
            progress(done, total)
        documents = {
            "shelf": {"name": "Everyday shelf", "passages": len(everyday_entries)},
            "factbook": {"name": factbook.SOURCE, "passages": count},
        }
        writer.commit({"version": version, "documents": documents})
    progress(total, total)


def _add(writer: Writer, document: str, entries: Sequence[Entry]) -> None:
    keywords = {entry.passage.id: entry.keywords for entry in entries}
    writer.add(document, [entry.passage for entry in entries], keywords)


def _emptied(folder: Path) -> Path:
    """The folder, without an index that can't be read: a readable one serves until its successor is committed."""
    try:
        folder.mkdir(exist_ok=True)
        read_manifest(folder)
    except LibraryError:
        for file in folder.iterdir():
            file.unlink()
    except OSError as error:
        raise LibraryError(f"{folder} can't be made ({error.strerror}); free space or set data_dir.") from error
    return folder
