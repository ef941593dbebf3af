"""`python app.py` where it can't serve: one sentence that says what to do, and exit code 2."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from assistant.commands.common import error_console
from assistant.commands.serve import main

ROOT = Path(__file__).parents[1]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    values = {**os.environ, "SEQUITUR_DATA_DIR": str(folder), "COLUMNS": "300"}
    command = [sys.executable, "app.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=values, capture_output=True, text=True, timeout=120, check=False)


def told(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2
    return one_sentence(done.stderr + done.stdout)


def one_sentence(said: str) -> str:
    assert "Traceback" not in said
    assert len(said.strip().splitlines()) == 1
    return said


@pytest.fixture
def told_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `app.py` says in this process, which has imported what takes a process of its own seconds."""

    def run(folder: Path, *arguments: str) -> str:
        monkeypatch.setenv("SEQUITUR_DATA_DIR", str(folder))
        monkeypatch.setattr(sys, "argv", ["app.py", *arguments])
        monkeypatch.setattr(error_console, "width", 300)
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        return one_sentence("".join(capsys.readouterr()))

    return run


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"Port {port} is in use; choose another with --port" in told(run(tmp_path, "--port", port))


@pytest.mark.parametrize("arguments", [("--share-lan",), ("--host", "0.0.0.0")])
def test_other_computers_are_not_let_in_without_logins(
    tmp_path: Path, told_here: Callable[..., str], arguments: tuple[str, ...]
) -> None:
    assert "users add NAME" in told_here(tmp_path, *arguments, "--port", "0")


def test_a_setting_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[web]\nprot = 1\n")
    assert "web.prot" in told(run(tmp_path, "--settings", str(file)))


def test_a_port_that_is_none(tmp_path: Path) -> None:
    done = run(tmp_path, "--port", "99999")
    assert done.returncode == 2
    assert "Error: Invalid value for '--port'" in done.stderr, "as `python -m assistant serve` says it"
    assert "Traceback" not in done.stderr


def test_a_damaged_database(tmp_path: Path, told_here: Callable[..., str]) -> None:
    (tmp_path / "sequitur.sqlite3").write_bytes(b"no database" * 1000)
    assert "damaged" in told_here(tmp_path, "--port", "0")


def test_a_folder_that_cannot_be_written(tmp_path: Path, told_here: Callable[..., str]) -> None:
    (tmp_path / "file").write_text("")
    assert "data_dir" in told_here(tmp_path / "file", "--port", "0")
