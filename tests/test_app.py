"""`python app.py` where it can't serve: one sentence that says what to do, and exit code 2."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    values = {**os.environ, "SEQUITUR_DATA_DIR": str(folder), "COLUMNS": "300", **environment}
    command = [sys.executable, "app.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=values, capture_output=True, text=True, timeout=120, check=False)


def told(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2
    assert "Traceback" not in done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    return done.stderr


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"Port {port} is in use; choose another with --port" in told(run(tmp_path, "--port", port))


@pytest.mark.parametrize("arguments", [("--share-lan",), ("--host", "0.0.0.0")])
def test_other_computers_are_not_let_in_without_logins(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert "users add NAME" in told(run(tmp_path, *arguments, "--port", "0"))


def test_a_setting_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[web]\nprot = 1\n")
    assert "web.prot" in told(run(tmp_path, "--settings", str(file)))


def test_a_port_that_is_none(tmp_path: Path) -> None:
    done = run(tmp_path, "--port", "99999")
    assert done.returncode == 2
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_database(tmp_path: Path) -> None:
    (tmp_path / "sequitur.sqlite3").write_bytes(b"no database" * 1000)
    assert "damaged" in told(run(tmp_path, "--port", "0"))


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "data_dir" in told(run(tmp_path / "file", "--port", "0"))
