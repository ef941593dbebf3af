"""Downloads files from the Hugging Face hub and other servers, so that a broken connection costs little.

A file is written under a temporary name that depends on its content, continued where a connection broke off, and
renamed in one step once it has the stated size and hash.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from threading import Event

from assistant.protocols import Progress, silent

_GIB = 1 << 30
_SPARE = 64 << 20
# Seconds without a byte after which a connection counts as broken, how often it is renewed without any progress, and
# seconds between these tries.
_SILENCE, _TRIES, PAUSE = 30.0, 3, 1.0
_SHA256_DIGITS = 64


class SourceError(Exception):
    """A source could not give the files; the message says why, in a few words."""


class Stopped(Exception):  # noqa: N818 - nothing went wrong
    """Somebody stopped the download. What has been fetched is kept, and the next download continues from there."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A file of the hub: where it is, its bytes, and its SHA-256, "" where the hub doesn't state it (small files)."""

    name: str
    url: str
    size: int
    sha256: str


def look(repo: str, name: str, revision: str | None, seconds: float) -> Remote:
    """What the hub says of a file.

    Raises:
        SourceError: it doesn't say how large the file is.
        Exception: the hub can't be reached or refuses, in the words of its library.
    """
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url  # noqa: PLC0415 - half a second

    url = hf_hub_url(repo, name, revision=revision, endpoint=constants.ENDPOINT)
    metadata = get_hf_file_metadata(url, timeout=seconds)
    if not metadata.size:
        raise SourceError(f"it doesn't say how large {name} is")
    sha256 = metadata.etag if metadata.etag and len(metadata.etag) == _SHA256_DIGITS else ""
    return Remote(name, url, metadata.size, sha256)


def download(remote: Remote, folder: Path, stop: Event, progress: Progress = silent) -> Path:
    """Fetch the file into the folder; what was fetched of it before is kept. `progress` counts bytes.

    Raises:
        SourceError: the disk is too full, the download broke off too often, or size or hash differ from those stated.
        Stopped: `stop` was set.
        Exception: the hub refuses, in the words of its library.
    """
    target = folder / remote.name
    if _size(target) == remote.size:
        return target
    partial = target.with_name(f"{target.name}.{remote.sha256[:8] or remote.size}.partial")
    partial.parent.mkdir(parents=True, exist_ok=True)
    need_space(folder, remote.size - _size(partial))
    _fill(partial, remote, stop, progress)
    if remote.sha256 and _sha256(partial) != remote.sha256:
        partial.unlink()
        raise SourceError(f"{remote.name} came with another SHA-256 than is stated")
    partial.replace(target)
    return target


def need_space(folder: Path, size: int) -> None:
    """Raise SourceError unless `size` bytes fit onto the folder's disk."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if size + _SPARE > free:
        raise SourceError(
            f"{size / _GIB:.1f} GiB are needed on the disk of {folder} and {free / _GIB:.1f} GiB are free"
        )


def _fill(partial: Path, remote: Remote, stop: Event, progress: Progress) -> None:
    """Fetch the missing part of the file, with a new connection whenever one breaks off."""
    vain_tries = 0
    while (size_before := _size(partial)) != remote.size:
        if size_before > remote.size:
            partial.unlink()
            raise SourceError(f"{remote.name} came longer than is stated")
        trouble = _append(partial, remote, stop, progress)
        vain_tries = 0 if _size(partial) > size_before else vain_tries + 1
        if vain_tries == _TRIES:
            raise SourceError(
                f"{remote.name} was cut short at {_size(partial):,} of {remote.size:,} bytes ({trouble});"
                " the next try goes on from there"
            )
        if trouble and stop.wait(PAUSE):
            raise Stopped


def _append(partial: Path, remote: Remote, stop: Event, progress: Progress) -> str:
    """Fetch as much as one connection gives; why it broke off, or ""."""
    import httpx2  # noqa: PLC0415
    from huggingface_hub import get_session  # noqa: PLC0415

    offset = _size(partial)
    try:
        with get_session().stream("GET", remote.url, headers=_headers(remote.url, offset), timeout=_SILENCE) as reply:
            if reply.is_server_error or reply.status_code == httpx2.codes.TOO_MANY_REQUESTS:
                return f"status {reply.status_code}"
            reply.raise_for_status()
            # one that knows no ranges sends the whole file
            with partial.open("ab" if reply.status_code == httpx2.codes.PARTIAL_CONTENT else "wb") as file:
                for piece in reply.iter_bytes():
                    file.write(piece)
                    progress(file.tell(), remote.size)
                    if stop.is_set():
                        raise Stopped
    except httpx2.TransportError as error:
        return f"{type(error).__name__}: {error}"
    return "" if _size(partial) > offset else "nothing came"


def _headers(url: str, offset: int) -> dict[str, str]:
    from huggingface_hub import constants, get_token  # noqa: PLC0415

    token = get_token() if url.startswith(f"{constants.ENDPOINT}/") else None  # nobody else is shown it
    key = {"Authorization": f"Bearer {token}"} if token else {}
    # what is compressed on the way has other bytes than the file
    return {**key, "Accept-Encoding": "identity", **({"Range": f"bytes={offset}-"} if offset else {})}


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
