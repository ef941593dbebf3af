"""Every command with every engine ends with the status that it documents, however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from assistant.llm import backends
from assistant.registry import variants
from assistant.settings import load
from tests.fixtures_models import fetched

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[1]
SECONDS = 280.0
# A server is no process of ours, and ends with nothing. Where it makes no difference which library runs the model, one
# engine that has a process of its own stands for all of those.
ENGINES = [name for name in variants.names("backends") if name != "server"]
APART = [name for name in ENGINES if backends.named(name).OWN_PROCESS]
EITHER = pytest.mark.parametrize("engine", [APART[0], *(name for name in ENGINES if name not in APART)])
SETTINGS = (
    '[llm]\nmodel = "smollm2-135m"\ncontext = 1024\n[relevance]\nestimator = "none"\n[turn]\naddresses_threshold = 0\n'
)

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(engine: str, tmp_path: Path, smollm_folder: Path) -> Iterator[Start]:
    """Starts a command with a small real model on the engine; its output goes to `tmp_path / "said"`."""
    fetched("all-MiniLM-L6-v2")
    file = tmp_path / "sequitur.toml"
    file.write_text(SETTINGS)
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        options = ["--settings", str(file), "--backend", engine, "--data-dir", str(load().data_dir)]
        command = [sys.executable, *arguments, *options]
        with (tmp_path / "said").open("w") as said:
            process = subprocess.Popen(
                command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=said, stderr=said, start_new_session=True,
                env={**os.environ, "COLUMNS": "300"},
            )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("redirection", "status", "says"),
    [
        (">&-", 0, ""),
        ("2>&-", 0, ""),
        ("<&- >&- 2>&-", 0, ""),
        (">/dev/full", 2, "Error: The disk is full, so not all was written; free space, and run this again.\n"),
    ],
)
@pytest.mark.parametrize("command", ["-m assistant --help", "app.py --help", "-m assistant facts list"])
def test_where_the_output_cannot_go(command: str, redirection: str, status: int, says: str, tmp_path: Path) -> None:
    values = {**os.environ, "SEQUITUR_DATA_DIR": str(tmp_path)}
    line = f'exec "{sys.executable}" {command} {redirection}'
    done = subprocess.run(["sh", "-c", line], cwd=ROOT, env=values, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, says)


def test_a_file_takes_no_place_of_a_closed_stream() -> None:
    program = (
        "import sys; from assistant.commands.exit_status import end_with;"
        " end_with(lambda: sys.exit(0 if open('/dev/null').fileno() > 2 else 9))"
    )
    done = subprocess.run(["sh", "-c", f'exec "{sys.executable}" -c "{program}" <&- >&- 2>&-'], cwd=ROOT, check=False)
    assert done.returncode == 0


@EITHER
def test_after_an_answer(start: Start, tmp_path: Path) -> None:
    assert _status(start("-m", "assistant", "ask", "Hello, how are you?"), tmp_path) == 0
    assert "Answered without the library" in _said(tmp_path)


@pytest.mark.parametrize("engine", ENGINES)
def test_after_a_stop(start: Start, tmp_path: Path) -> None:
    process = start("-m", "assistant", "chat")
    _wait_for(lambda: "Ask away" in _said(tmp_path), process)
    before = _cpu(process)
    process.stdin.write("Write a long poem about the sea.\n")
    process.stdin.flush()
    _wait_for(lambda: _cpu(process) > before + 0.3, process)  # the turn has begun
    process.send_signal(signal.SIGINT)
    _wait_for(lambda: "Stopped." in _said(tmp_path), process)
    assert _status(process, tmp_path) == 0  # its input has ended


@pytest.fixture
def broken_library(tmp_path: Path) -> Iterator[str]:
    """The name of a library whose index turns out to be none when it is opened, after everything is loaded."""
    folder = load().libraries_dir / f"broken-{tmp_path.name[-40:].lower()}"
    folder.mkdir(parents=True)
    (folder / "segments_1").write_text("no index")
    yield folder.name
    shutil.rmtree(folder)


@EITHER
def test_after_an_error(start: Start, tmp_path: Path, broken_library: str) -> None:
    assert _status(start("-m", "assistant", "ask", "Hello", "--library", broken_library), tmp_path) == 2
    assert "Error: The index in" in _said(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="libraries of a process are looked up in /proc")
@pytest.mark.parametrize(("engine", "loading"), [(APART[0], "libopenvino"), *((name, "smollm2") for name in ENGINES)])
def test_after_an_interrupt_while_it_loads(start: Start, tmp_path: Path, loading: str) -> None:
    process = start("-m", "assistant", "chat")  # which doesn't end by itself before its files are looked at
    _wait_for(lambda: loading in _opened(process).lower(), process, every=0.02)
    process.send_signal(signal.SIGINT)
    assert _status(process, tmp_path) in {130, 0}  # 0 where everything was loaded by then: its input has ended


@pytest.mark.skipif(sys.platform == "win32", reason="there an interrupt can't be put off")
def test_an_interrupt_waits_for_the_import_that_it_meets(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0.3)\nprint('imported')\n"
    )
    code = """
import time
from assistant.commands.exit_status import end_with

def command():
    import slow
    time.sleep(60)
    print("went on")

end_with(command)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment, timeout=50
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "imported\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends the process there")
def test_a_command_that_is_to_ignore_interrupts_goes_on() -> None:
    code = """
import os, signal
from assistant.commands.exit_status import end_with

signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for what it starts in the background
end_with(lambda: (os.kill(os.getpid(), signal.SIGINT), print("went on")))
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=50
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "went on\n", "")


@EITHER
def test_the_page(start: Start, tmp_path: Path) -> None:
    process = start("app.py", "--port", "0")
    _wait_for(lambda: "Ready." in _said(tmp_path), process)
    process.send_signal(signal.SIGINT)
    assert _status(process, tmp_path) == 0


def _status(process: subprocess.Popen[str], tmp_path: Path) -> int:
    process.communicate(timeout=SECONDS)
    said = _said(tmp_path)
    assert "Traceback" not in said
    assert "terminate called" not in said
    return process.returncode


def _said(tmp_path: Path) -> str:
    return (tmp_path / "said").read_text(encoding="utf-8")


def _family(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The command's process and its engine's."""
    own = psutil.Process(process.pid)
    return [own, *own.children(recursive=True)]


def _cpu(process: subprocess.Popen[str]) -> float:
    times = [one.cpu_times() for one in _family(process)]
    return sum(time.user + time.system for time in times)


def _opened(process: subprocess.Popen[str]) -> str:
    """The files that are mapped or open."""
    found = ""
    for one in _family(process):
        with suppress(OSError, psutil.Error):
            found += Path(f"/proc/{one.pid}/maps").read_text(encoding="utf-8")
            found += " ".join(file.path for file in one.open_files())
    return found


def _wait_for(happened: Callable[[], bool], process: subprocess.Popen[str], every: float = 0.1) -> None:
    until = time.monotonic() + SECONDS
    while not happened():
        assert process.poll() is None, "it has ended already"
        assert time.monotonic() < until, "it never happened"
        time.sleep(every)
