"""A run's folder: its claim and its rows, which are written one by one, so that a killed run can be continued."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any, Generic, TypeVar

from assistant.errors import DataError, disk_errors_as
from assistant.protocols import Progress

T = TypeVar("T")
Row = dict[str, Any]
CLAIM = "run.json"
ROWS = "rows.jsonl"


class Run(Generic[T]):
    """The folder of one run: `run.json` holds its claim, and `rows.jsonl` a line for each row that is done.

    Args:
        folder: created if it does not exist.
        claim: all that determines the rows; a folder whose run was begun with another claim is refused.
        key: gives the key of a row.

    Raises:
        DataError: the folder holds another run or rows of something else, or can't be written.
    """

    def __init__(self, folder: Path, claim: Row, key: Callable[[Row], T]) -> None:
        self.folder = folder
        self._path = folder / ROWS
        self._key = key
        with disk_errors_as(DataError, f"The results can't be written to {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            self._check_claim(json.loads(json.dumps(claim)))
            self.rows = dict(self._read_rows())
            self._write_claim(claim)

    def fill(
        self,
        todo: Iterable[tuple[T, Callable[[], Row]]],
        total: int,
        progress: Progress,
        jobs: int = 1,
        stop: Event | None = None,
    ) -> None:
        """Make the missing rows, `jobs` at a time; each is written, in order, as soon as it is done.

        If making a row fails, `stop` is set, so that the rows under way end early; these are lost.
        """
        missing = {key: make for key, make in todo if key not in self.rows}
        rows = _in_parallel(list(missing.values()), jobs, stop or Event())
        with self._path.open("a", encoding="utf-8") as file, closing(rows):
            for done, key in enumerate(missing, total - len(missing)):
                progress(done, total)
                self.rows[key] = next(rows)
                file.write(jsonl([self.rows[key]]))
                file.flush()
        progress(total, total)

    def write(self, name: str, text: str) -> Path:
        """Write a file of results into the folder."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def _write_claim(self, claim: Row) -> None:
        """Write the claim, once it is certain that the folder holds no rows of another run."""
        path = self.folder / CLAIM
        if not path.exists():
            self.write(f"{CLAIM}.partial", json.dumps(claim, indent=2, ensure_ascii=False) + "\n").replace(path)

    def _check_claim(self, claim: Row) -> None:
        path = self.folder / CLAIM
        try:
            stored_claim: Row = json.loads(path.read_text(encoding="utf-8")) if path.exists() else claim
        except ValueError as error:
            raise DataError(
                f"{path} is broken; remove it to go on, if the rows beside it were made as is asked now, or choose"
                " another folder for --out."
            ) from error
        fields = sorted(name for name in {*stored_claim, *claim} if stored_claim.get(name) != claim.get(name))
        if fields:
            raise DataError(
                f"{self.folder} holds a run with another {' and '.join(fields)}; choose another folder for --out,"
                " or remove that one."
            )

    def _read_rows(self) -> Iterator[tuple[T, Row]]:
        """The rows so far by their keys, without a last one that was cut off by a kill."""
        for number, line in enumerate(_whole_lines(self._path) if self._path.exists() else (), 1):
            try:
                row: Row = json.loads(line)
            except ValueError as error:
                raise DataError(f"{self._path}, line {number}, is broken; remove that line and run again.") from error
            try:
                yield self._key(row), row
            except (KeyError, TypeError) as error:
                raise DataError(
                    f"{self._path}, line {number}, is no row of such a run; choose another folder for --out."
                ) from error


def jsonl(rows: Iterable[Any]) -> str:
    """The text of a JSONL file: one line for each row."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_rows(folder: Path) -> dict[str, Row]:
    """The rows of a finished run, by their ids.

    Raises:
        DataError: the folder holds no rows, or a broken one.
    """
    path = folder / ROWS
    try:
        with path.open("rb") as file:  # as bytes, whose lines end at newlines alone; texts may hold other line breaks
            rows = [json.loads(line) for line in file]
        return {str(row["id"]): row for row in rows}
    except OSError as error:
        raise DataError(f"{folder} holds no run ({error.strerror}); give the --out of another run.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is broken or of another kind of run; give the --out of another run.") from error


def _in_parallel(row_makers: Sequence[Callable[[], Row]], jobs: int, stop: Event) -> Generator[Row]:
    """The rows in order, of which `jobs` are made at a time."""
    if jobs == 1:
        yield from (make() for make in row_makers)
        return
    pool = ThreadPoolExecutor(jobs)
    try:
        yield from pool.map(lambda make: make(), row_makers)
    except BaseException:
        stop.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _whole_lines(path: Path) -> Iterator[bytes]:
    """A file's lines. A last line that was cut off by a kill is removed from the file, which can then be added to."""
    size = 0
    with path.open("rb+") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            size += len(line)
            yield line
        file.truncate(size)
