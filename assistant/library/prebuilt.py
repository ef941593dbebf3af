"""Libraries from the indexes that the makers of Pyserini publish: fetched by name, checked, and kept as they are.

Which there are, where they lie and what their MD5 sums are, the installed Pyserini knows. An index becomes a library in
one step, once it is whole; what came of it before an interruption is not fetched again.
"""

from __future__ import annotations

import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import file_digest, md5
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

from assistant.errors import LibraryError, TextlessIndexError
from assistant.library.shelves import PREBUILT, is_library, library_folder, locked
from assistant.library.writer import writing
from assistant.llm.downloads import Remote, SourceError, download, need_space
from assistant.llm.sources import size_of
from assistant.protocols import Progress, silent
from assistant.retrieve import jvm
from assistant.retrieve.anserini import Anserini
from assistant.settings import Settings

NEAR = 3  # names that are told where one is not known
_SLIM = "-slim"
Bar = Callable[[str], AbstractContextManager[Progress]]


@dataclass(frozen=True, slots=True)
class Prebuilt:
    """What Pyserini tells of an index: what it holds, where its archive is, and the archive's bytes and MD5."""

    name: str
    about: str
    passages: int
    addresses: tuple[str, ...]
    size: int
    md5: str

    @property
    def library(self) -> str:
        """What the library is called; names of libraries have no dots."""
        return self.name.replace(".", "_")


def prebuilt(name: str) -> Prebuilt:
    """The index of this name.

    Raises:
        LibraryError: there is none, or it is known to store no texts; the message names others.
    """
    table = jvm.call(known)
    if name not in table:
        raise LibraryError(f"Pyserini has no index '{name[:70]}'; perhaps one of: {', '.join(_near(name, table))}.")
    if name.endswith(_SLIM):
        whole = name.removesuffix(_SLIM)
        raise LibraryError(f"The index '{name}' stores no texts to answer from; take '{whole}'.")
    told = table[name]
    size, urls = int(told["size compressed (bytes)"]), tuple(told["urls"])
    return Prebuilt(name, str(told["description"]), int(told["documents"]), urls, size, str(told["md5"]))


def _near(name: str, table: Iterable[str]) -> list[str]:
    """Names that may have been meant: those that hold this one, else those that look like it, else two usual ones."""
    holding = [one for one in table if name.lower() in one][:NEAR]
    return holding or get_close_matches(name, table, NEAR, cutoff=0.5) or ["msmarco-v1-passage", "beir-v1.0.0-nq.flat"]


def fetch(found: Prebuilt, settings: Settings, bar: Bar = lambda _: nullcontext(silent)) -> bool:
    """Make the library of this index be there; whether it had to be fetched.

    Args:
        found: which.
        settings: say where libraries are.
        bar: begins to show how far something is, under a title; it is told bytes of the archive.

    Raises:
        LibraryError: it can't be fetched or unpacked, is not what was published, stores no texts, doesn't fit on the
            disk, or there is another library of its name.
    """
    folder = library_folder(found.library, settings)
    with locked(folder), _disk(folder):
        if is_library(folder):
            _check_is_same(folder, found)
            return False
        _check_can_unpack()
        arriving = folder.with_name(f".{folder.name}.arriving")
        with bar("Fetching") as progress:
            archive = _fetched(found, arriving, progress)
        with bar("Unpacking") as progress:
            index = _unpacked(archive, arriving / "unpacked", found, progress)
        _adopt(index, found, arriving)
        index.replace(folder)
        shutil.rmtree(arriving)
    return True


def known() -> dict[str, dict[str, Any]]:
    """What Pyserini tells of each index by its name. Importing it asks Java and no network; call it in `jvm.call`."""
    from pyserini.prebuilt_index_info import TF_INDEX_INFO  # noqa: PLC0415

    table: dict[str, dict[str, Any]] = TF_INDEX_INFO
    return table


def _check_is_same(folder: Path, found: Prebuilt) -> None:
    mark = folder / PREBUILT
    if not mark.exists() or mark.read_text(encoding="utf-8") != found.md5:
        raise LibraryError(
            f"There is another library '{folder.name}'; delete that first with: python -m assistant index --library "
            f"{folder.name} --delete"
        )


def _fetched(found: Prebuilt, arriving: Path, progress: Progress) -> Path:
    """The archive, from the first of its addresses that gives it."""
    import httpx2  # noqa: PLC0415 - a fifth of a second

    troubles = []
    for address in found.addresses:
        remote = Remote(f"{found.library}.tar.gz", address, found.size, "")
        try:
            need_space(arriving, 2 * found.size - size_of(arriving))  # what is unpacked takes about as much again
            archive = download(remote, arriving, Event(), progress)
        except httpx2.HTTPStatusError as error:
            troubles.append(f"{urlsplit(address).hostname} answers {error.response.status_code}")
        except (SourceError, ConnectionError) as error:
            troubles.append(str(error).partition("\n")[0])
        else:
            _check_is_published(archive, found)
            return archive
    raise LibraryError(f"The index '{found.name}' can't be fetched: {'; '.join(dict.fromkeys(troubles))}.")


def _check_can_unpack() -> None:
    if not hasattr(tarfile, "data_filter"):
        raise LibraryError(
            "This Python can't unpack an archive so that nothing is written elsewhere; use 3.11.4 or a later one."
        )


def _check_is_published(archive: Path, found: Prebuilt) -> None:
    with archive.open("rb") as file:
        digest = file_digest(file, lambda: md5(usedforsecurity=False)).hexdigest()
    if digest != found.md5:
        archive.unlink()
        raise LibraryError(
            f"What came as the index '{found.name}' has another MD5 than was published; nothing of it was kept."
        )


def _unpacked(archive: Path, into: Path, found: Prebuilt, progress: Progress) -> Path:
    """The folder of the index. Nothing is written outside of `into`, whatever the names in the archive are."""
    shutil.rmtree(into, ignore_errors=True)
    try:
        with archive.open("rb") as file, tarfile.open(fileobj=file, mode="r:gz") as members:
            for member in members:
                members.extract(member, into, filter="data")
                progress(file.tell(), found.size)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        shutil.rmtree(into.parent)
        raise LibraryError(
            f"The archive of the index '{found.name}' can't be unpacked ({error}); nothing of it was kept."
        ) from error
    folders = sorted({one.parent for one in into.rglob("segments_*")})
    if len(folders) != 1:
        shutil.rmtree(into.parent)
        raise LibraryError(f"The archive of '{found.name}' holds {len(folders)} indexes, where there has to be one.")
    return folders[0]


def _adopt(index: Path, found: Prebuilt, arriving: Path) -> None:
    """Let the last commit of the index say what every library's says: its format, and its documents."""
    try:
        Anserini(index)
    except TextlessIndexError as error:
        shutil.rmtree(arriving)
        raise LibraryError(
            f"The index '{found.name}' stores no texts of its passages, or in a form that can't be read here; take "
            "another, such as msmarco-v1-passage. Nothing of it was kept."
        ) from error
    with writing(index) as writer:
        writer.commit({"documents": {found.library: {"name": found.about, "passages": found.passages}}})
    (index / PREBUILT).write_text(found.md5, encoding="utf-8")


@contextmanager
def _disk(folder: Path) -> Iterator[None]:
    """What the disk refuses, as a sentence."""
    try:
        yield
    except ConnectionError:
        raise
    except OSError as error:
        raise LibraryError(
            f"{folder.parent} can't be written ({error.strerror}); free space or set data_dir, and call this again: "
            "what came is kept."
        ) from error
