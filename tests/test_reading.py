"""Documents that were made to keep a worker busy or to fill the memory: each ends soon, and says why it isn't read."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Timer

import pytest

from assistant.errors import LibraryError
from assistant.library import apart, reading, scans
from assistant.library.apart import answer_apart
from assistant.library.passages import passages_of
from assistant.library.readers import read, xlsx
from assistant.library.reading import read_apart, time_limit
from benchmarks.bombs import BOMBS, CELL, workbook, write_bomb
from tests.test_readers import make_pdf

SECONDS = 10.0  # of a processor: by the clock it depends on what else it does
ALLOWED = 2.0  # for a document here: less than elsewhere, since some take all that they may
OVER = 3.0  # a process that may take no more ends within so many
DEEP = "nested more than"


@pytest.fixture(autouse=True)
def without_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds of a processor count here: by the clock, a computer that is busy ends a reading sooner."""
    monkeypatch.setattr(apart, "CLOCK_FACTOR", 100.0)


@pytest.fixture
def bomb(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    yield write_bomb(tmp_path, request.param)
    (tmp_path / request.param).unlink()


def spent() -> float:
    """Seconds of a processor that processes which have ended took."""
    times = os.times()
    return times.children_user + times.children_system


@pytest.mark.skipif(os.name != "posix", reason="counts the seconds of a processor as POSIX has it")
@pytest.mark.parametrize("bomb", BOMBS, indirect=True)
def test_every_bomb_ends_soon(bomb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most need less; what a slow computer can't do in the seconds that it may take ends with these."""
    monkeypatch.setattr(reading, "SECONDS", ALLOWED)
    monkeypatch.setattr(scans, "SECONDS", ALLOWED)
    monkeypatch.setattr(scans, "SECONDS_PER_PAGE", 0.0)
    before = spent()
    try:
        outcome = f"{len(read_apart(bomb, 'd', bomb.name, Event()).passages)} passages"
    except LibraryError as error:
        outcome = str(error)
        assert "\n" not in outcome
    most = SECONDS if bomb.name.startswith("line.") else time_limit(bomb) + OVER
    by_ocr = ALLOWED + OVER if bomb.suffix == ".pdf" else 0.0  # what has no text goes on to a second process
    assert spent() - before < most + by_ocr, outcome


@pytest.mark.parametrize(
    ("name", "share", "reason"),
    [
        ("div.html", 1.0, DEEP),
        ("xml.docx", 0.6, "unpacks to more than 30,000,000 bytes"),
        ("packed.jsonl.gz", 0.3, "characters"),
        ("empty.docx", 0.1, "more than 300,000 paragraphs"),
        ("corners.xlsx", 1.0, "too many rows or columns"),
        ("pages.pdf", 0.5, "more than 20,000 pages"),
        ("gap.xlsx", 1.0, "too many rows or columns"),
        ("packed.xlsx", 0.5, "too many rows or columns"),
        ("cell.xlsx", 0.1, "more than a million characters"),
        ("laughs.xlsx", 1.0, "its XML can't be read"),
        ("shapes.pptx", 0.5, "more than 50,000 shapes"),
        ("parts.eml", 0.1, "more than 20,000 parts"),
        ("type.eml", 0.1, "a header of more than 10,000 characters"),
        ("packed.epub", 0.3, "unpack to more than 30,000,000 bytes"),
    ],
)
def test_the_reason_is_told(
    tmp_path: Path, name: str, share: float, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Already of one that is not much over what is allowed."""
    monkeypatch.setattr(reading, "SECONDS", 60.0)  # a slow computer comes to the reason as well
    with pytest.raises(LibraryError, match=reason):
        read_apart(write_bomb(tmp_path, name, share), "d", name, Event())


@pytest.mark.parametrize(
    "rows",
    [
        f"<row>{CELL * 20_000}</row>",
        f"<row>{CELL * 9_000}</row><row>{CELL * 20_000}",
        "<s:row><s:c/></s:row>" * 60_000,
        "<row\n>" + "<c\t/>" * 60_000,
    ],
    ids=["a row of many cells", "one of two rows", "names with a prefix", "white space"],
)
def test_cells_are_counted_before_they_are_read(tmp_path: Path, rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx, "CELLS_MOST", 50_000)
    monkeypatch.setattr("openpyxl.load_workbook", lambda *_, **__: pytest.fail("the cells were read"))
    (tmp_path / "a.xlsx").write_bytes(workbook(rows))
    with pytest.raises(LibraryError, match="too many rows or columns"):
        read(tmp_path / "a.xlsx")


def test_what_is_read_apart_arrives_where_no_signal_counts_seconds(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delattr("signal.SIGXCPU")  # as on Windows
    (tmp_path / "a.txt").write_text("Oats.")
    [passage] = read_apart(tmp_path / "a.txt", "d", "a.txt", Event()).passages
    assert passage.text == "Oats."


def test_what_is_read_apart_is_what_is_read_here(tmp_path: Path) -> None:
    for name, text in {
        "a.html": "<h1>Oats</h1><p>Oats are a cereal. \ud83c\udf3e</p><p>é".encode("utf-16", "surrogatepass").decode(
            "utf-16"
        ),
        "b.jsonl": '{"id": "7", "title": "Oslo", "contents": "Oslo is a city."}\n',
        "c.md": "# Tea\n\n" + "Tea is a drink. " * 300,
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        here = passages_of(read(tmp_path / name), "d", name)
        assert read_apart(tmp_path / name, "d", name, Event()).passages == here


def test_a_process_apart_whose_asker_was_killed_ends_without_a_word() -> None:
    code = f"from {apart.__name__} import serve; serve(print)"
    ended = subprocess.run([sys.executable, "-c", code], input=b"", capture_output=True, check=True)
    assert (ended.stdout, ended.stderr) == (b"", b"")


def test_what_only_some_formats_need_is_not_loaded_for_others() -> None:
    """Every document is read in a process of its own, which loads all readers anew."""
    code = "import sys; from assistant.library.readers import suffixes; from assistant.library.reading import answer; "
    code += "print('.xlsx' in suffixes(), sys.modules.keys() & {'numpy', 'openpyxl', 'torch'})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "True set()\n"


def test_how_many_pages_are_read_is_told_meanwhile_and_they_can_be_stopped(tmp_path: Path) -> None:
    sentences = "\n".join(f"Oats number {n} are a cereal of the north of many countries." for n in range(40))
    file = make_pdf(tmp_path / "a.pdf", *[sentences] * 400)
    told = list[tuple[int, int]]()
    stop = Event()

    def tell(done: int, total: int) -> None:
        told.append((done, total))
        if len(told) == 3:
            stop.set()

    with pytest.raises(LibraryError, match="was stopped"):
        read_apart(file, "d", "a.pdf", stop, tell)
    assert told == sorted(set(told))
    assert 0 < told[0][0] < told[2][0] < told[2][1] == 400


def test_reading_is_stopped_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Oats are a cereal.\n\n" * 400_000)
    stop = Event()
    Timer(1.0, stop.set).start()
    began = time.perf_counter()
    with pytest.raises(LibraryError, match="was stopped"):
        read_apart(tmp_path / "a.txt", "d", "a.txt", stop)
    assert time.perf_counter() - began < 5


def test_an_answer_counts_though_its_process_is_slow_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lingering.py").write_text(
        "import atexit, time\n\ndef answer(asked, progress):\n    atexit.register(time.sleep, 600)\n    return asked\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert answer_apart("lingering", {"page": 7}, 60.0, Event()) == {"page": 7}


@pytest.mark.skipif(os.name != "posix", reason="limits memory as POSIX has it")
def test_memory_and_time_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("Oats are a cereal.\n\n" * 400_000)
    monkeypatch.setattr(reading, "SECONDS_PER_MEGABYTE", 0.0)
    monkeypatch.setattr(reading, "SECONDS", 1.0)
    with pytest.raises(LibraryError, match="takes too long to read; split it up"):
        read_apart(tmp_path / "a.txt", "d", "a.txt", Event())
    monkeypatch.setattr(reading, "SECONDS", 60.0)
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(b'1\t"' + b"a" * 100_000_000, compresslevel=1))
    with pytest.raises(LibraryError, match=r"takes too much memory|unpacks to more|a line of more"):
        read_apart(tmp_path / "b.tsv.gz", "d", "b.tsv.gz", Event())
