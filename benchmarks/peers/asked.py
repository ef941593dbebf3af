"""A system in a process of its own, and with packages of its own: started, asked, and ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from assistant.errors import DataError, SettingsError
from benchmarks.peers.wire import Document, Stand

SYSTEMS = Path(__file__).parent / "systems"
OURS = "sequitur"
_ROOT = Path(__file__).parents[2]


def list_systems() -> list[str]:
    """The systems that there are: ours, then the others."""
    system_names = sorted(path.stem for path in SYSTEMS.glob("[!_]*.py"))
    return sorted(system_names, key=lambda name: name != OURS)


def command_of(name: str, environments: Path | None) -> list[str]:
    """The command that a system is, with the interpreter of its environment; ours runs in this one.

    Raises:
        SettingsError: there is no such system, or no environment for it.
    """
    if name not in list_systems():
        raise SettingsError(f"There is no system '{name}'; there are: {', '.join(list_systems())}.")
    if name == OURS:
        return _command(Path(sys.executable), name)
    folder = (environments or Path("ENVIRONMENTS")) / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if environments is None or not python.exists():
        script = (SYSTEMS / f"{name}.py").relative_to(_ROOT)
        raise SettingsError(
            f"{name} has no environment; make one, and give the folder above it with --environments: python -m venv"
            f" {folder} && python -m pip --python {folder} install --requirements-from-script {script}"
        )
    return _command(python, name)


def _command(python: Path, name: str) -> list[str]:
    return [str(python), "-m", f"{__package__}.systems.{name}"]


class SystemProcess:
    """A system that answers; started with the first question, and again with the next after it died.

    Args:
        name: of the system's file.
        command: runs it; what it shares with others is added.
        stand: what it asks.
        patience: seconds that it is waited for at most; then it is ended, and the question counts as failed.

    `learning_report` has the versions of its packages, and the seconds that it took to take in the documents.
    """

    def __init__(self, name: str, command: Sequence[str], stand: Stand, patience: float) -> None:
        self.name = name
        self._command, self._stand, self.patience = command, stand, patience
        self._folder = TemporaryDirectory()
        self._process: subprocess.Popen[str] | None = None
        self._documents: tuple[Document, ...] = ()
        self.learning_report: dict[str, Any] = {}

    def ask(self, documents: Sequence[Document], question: str) -> dict[str, Any]:
        """Its reply to a question about these documents, or why there is none.

        Raises:
            DataError: it can't take the documents, so that no question could be answered.
        """
        if self._process is None or self._documents != tuple(documents):
            self._learn(documents)
        return self._exchange({"question": question})

    def close(self) -> None:
        """End it."""
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _learn(self, documents: Sequence[Document]) -> None:
        if self._process is None:
            self._start()
        reply = self._exchange({"documents": [asdict(document) for document in documents]})
        if reason := reply.get("failed"):
            raise DataError(f"{self.name} can't take the documents ({reason}); its own words are above.")
        self._documents, self.learning_report = tuple(documents), reply

    def _start(self) -> None:
        command = [*self._command, json.dumps(asdict(self._stand))]
        self._process = subprocess.Popen(
            command, cwd=self._folder.name, env={**os.environ, "PYTHONPATH": str(_ROOT)}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._lines: Queue[str] = Queue()
        Thread(target=_listen, args=(self._process, self._lines), daemon=True).start()

    def _exchange(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._process  # noqa: S101 - started above
        assert self._process.stdin  # noqa: S101
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=self.patience)
        except BrokenPipeError:
            line = ""
        except Empty:
            self.close()
            return {"failed": f"no reply within {self.patience:.0f} s"}
        if not line:
            self.close()
            return {"failed": "its process ended"}
        reply: dict[str, Any] = json.loads(line)
        return reply


def _listen(process: subprocess.Popen[str], lines: Queue[str]) -> None:
    for line in process.stdout or ():
        lines.put(line)
    lines.put("")
