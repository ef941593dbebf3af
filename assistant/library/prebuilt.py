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

SUGGESTIONS_MOST = 3  # names that are told where one is not known
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
    table = jvm.call(index_table)
    if name not in table:
        raise LibraryError(
            f"Pyserini has no index '{name[:70]}'; perhaps one of: {', '.join(_similar_names(name, table))}."
        )
    if name.endswith(_SLIM):
        full_name = name.removesuffix(_SLIM)
        raise LibraryError(f"The index '{name}' stores no texts to answer from; take '{full_name}'.")
    info = table[name]
    size, urls = int(info["size compressed (bytes)"]), tuple(info["urls"])
    return Prebuilt(name, str(info["description"]), int(info["documents"]), urls, size, str(info["md5"]))


def _similar_names(name: str, table: Iterable[str]) -> list[str]:
    """Names that may have been meant: those that hold this one, else those that look like it, else two usual ones."""
    matches = [known_name for known_name in table if name.lower() in known_name][:SUGGESTIONS_MOST]
    return (
        matches
        or get_close_matches(name, table, SUGGESTIONS_MOST, cutoff=0.5)
        or ["msmarco-v1-passage", "beir-v1.0.0-nq.flat"]
    )


def fetch(index: Prebuilt, settings: Settings, bar: Bar = lambda _: nullcontext(silent)) -> bool:
    """Make the library of this index be there; whether it had to be fetched.

    Args:
        index: which.
        settings: say where libraries are.
        bar: begins to show how far something is, under a title; it is told bytes of the archive.

    Raises:
        LibraryError: it can't be fetched or unpacked, is not what was published, stores no texts, doesn't fit on the
            disk, or there is another library of its name.
    """
    folder = library_folder(index.library, settings)
    with locked(folder), _disk_errors_as_library_errors(folder):
        if is_library(folder):
            _check_is_same(folder, index)
            return False
        _check_can_unpack()
        staging = folder.with_name(f".{folder.name}.arriving")
        with bar("Fetching") as progress:
            archive = _archive(index, staging, progress)
        with bar("Unpacking") as progress:
            index_folder = _unpacked(archive, staging / "unpacked", index, progress)
        _adopt(index_folder, index, staging)
        index_folder.replace(folder)
        shutil.rmtree(staging)
    return True


def index_table() -> dict[str, dict[str, Any]]:
    """What Pyserini tells of each index by its name. Importing it asks Java and no network; call it in `jvm.call`."""
    from pyserini.prebuilt_index_info import TF_INDEX_INFO  # noqa: PLC0415

    table: dict[str, dict[str, Any]] = TF_INDEX_INFO
    return table


def _check_is_same(folder: Path, index: Prebuilt) -> None:
    md5_file = folder / PREBUILT
    if not md5_file.exists() or md5_file.read_text(encoding="utf-8") != index.md5:
        raise LibraryError(
            f"There is another library '{folder.name}'; delete that first with: python -m assistant index --library "
            f"{folder.name} --delete"
        )


def _archive(index: Prebuilt, staging: Path, progress: Progress) -> Path:
    """The archive, from the first of its addresses that gives it."""
    import httpx2  # noqa: PLC0415 - a fifth of a second

    troubles = []
    for address in index.addresses:
        remote = Remote(f"{index.library}.tar.gz", address, index.size, "")
        try:
            need_space(staging, 2 * index.size - size_of(staging))  # what is unpacked takes about as much again
            archive = download(remote, staging, Event(), progress)
        except httpx2.HTTPStatusError as error:
            troubles.append(f"{urlsplit(address).hostname} answers {error.response.status_code}")
        except (SourceError, ConnectionError) as error:
            troubles.append(str(error).partition("\n")[0])
        else:
            _check_is_published(archive, index)
            return archive
    raise LibraryError(f"The index '{index.name}' can't be fetched: {'; '.join(dict.fromkeys(troubles))}.")


def _check_can_unpack() -> None:
    if not hasattr(tarfile, "data_filter"):
        raise LibraryError(
            "This Python can't unpack an archive so that nothing is written elsewhere; use 3.11.4 or a later one."
        )


def _check_is_published(archive: Path, index: Prebuilt) -> None:
    with archive.open("rb") as file:
        digest = file_digest(file, lambda: md5(usedforsecurity=False)).hexdigest()
    if digest != index.md5:
        archive.unlink()
        raise LibraryError(
            f"What came as the index '{index.name}' has another MD5 than was published; nothing of it was kept."
        )


def _unpacked(archive: Path, destination: Path, index: Prebuilt, progress: Progress) -> Path:
    """The folder of the index. Nothing is written outside of `destination`, whatever the names in the archive are."""
    shutil.rmtree(destination, ignore_errors=True)
    try:
        with archive.open("rb") as file, tarfile.open(fileobj=file, mode="r:gz") as members:
            for member in members:
                members.extract(member, destination, filter="data")
                progress(file.tell(), index.size)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        shutil.rmtree(destination.parent)
        raise LibraryError(
            f"The archive of the index '{index.name}' can't be unpacked ({error}); nothing of it was kept."
        ) from error
    folders = sorted({segments_file.parent for segments_file in destination.rglob("segments_*")})
    if len(folders) != 1:
        shutil.rmtree(destination.parent)
        raise LibraryError(f"The archive of '{index.name}' holds {len(folders)} indexes, where there has to be one.")
    return folders[0]


def _adopt(index_folder: Path, index: Prebuilt, staging: Path) -> None:
    """Let the last commit of the index say what every library's says: its format, and its documents."""
    try:
        Anserini(index_folder)
    except TextlessIndexError as error:
        shutil.rmtree(staging)
        raise LibraryError(
            f"The index '{index.name}' stores no texts of its passages, or in a form that can't be read here; take "
            "another, such as msmarco-v1-passage. Nothing of it was kept."
        ) from error
    with writing(index_folder) as writer:
        writer.commit({"documents": {index.library: {"name": index.about, "passages": index.passages}}})
    (index_folder / PREBUILT).write_text(index.md5, encoding="utf-8")


@contextmanager
def _disk_errors_as_library_errors(folder: Path) -> Iterator[None]:
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
