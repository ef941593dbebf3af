"""`bench tables`: how many rows of real tables in PDFs are found, beside what people marked.

The PDFs and the marks are those of the table competition of ICDAR 2013 (Göbel et al.): for each `NAME.pdf` a file
`NAME-str.xml` with the cells of its tables.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Annotated
from xml.etree import ElementTree as ET

import typer

from assistant.commands.experiment import print_summary
from assistant.errors import DataError
from assistant.experiment.options import AsJson
from assistant.library.readers import read
from assistant.library.readers.pdf import pages_of

MARKS = "-str.xml"
# A row as it is compared: its document, its page, and the letters of its cells.
Row = tuple[str, int, tuple[str, ...]]


def tables(
    folder: Annotated[Path, typer.Argument(help="Where the PDFs lie, each with its marks beside it.")],
    as_json: AsJson = False,
) -> None:
    """Find the tables of PDFs, and count the rows that have just the cells that people marked.

    Rows of one cell aren't counted. Half of the documents, every second one by name, are those whose rows were looked
    at while this was made.
    """
    marks = sorted(path for path in folder.rglob(f"*{MARKS}") if _pdf(path).is_file())
    if not marks:
        raise DataError(f"There are no PDFs with marks of their tables (*{MARKS}) in {folder}.")
    summary = {}
    for name, paths in (("looked at", marks[::2]), ("not looked at", marks[1::2])):
        start = process_time()
        marked_rows = [row for path in paths for row in marked(path)]
        found_rows = [row for path in paths for row in _found_rows(_pdf(path))]
        seconds = process_time() - start
        count = sum(len(list(ET.parse(path).iter("table"))) for path in paths)  # noqa: S314 - a file that one has chosen
        matches = (Counter(marked_rows) & Counter(found_rows)).total()
        text_rows = sum(block.unit for path in paths for block in read(_pdf(path)))
        summary[f"{len(paths)} {name}"] = {
            "tables": count, "rows": len(marked_rows), "found whole": matches, "rows that were found": len(found_rows),
            "in the text": text_rows, "seconds": seconds,
        }  # fmt: skip
    print_summary({"documents": summary}, as_json)


def marked(path: Path) -> Iterator[Row]:
    """The rows of more than one cell that people marked."""
    for region in ET.parse(path).iter("region"):  # noqa: S314 - as above
        rows: dict[str, list[str]] = defaultdict(list)
        for cell in region.iter("cell"):
            rows[cell.get("start-row", "")].append(cell.findtext("content") or "")
        yield from _comparable_rows(path.stem, int(region.get("page", "0")), rows.values())


def _found_rows(path: Path) -> Iterator[Row]:
    for number, page in enumerate(pages_of(path)[1], 1):
        rows = (row for table in page.tables for row in table)
        yield from _comparable_rows(f"{path.stem}{MARKS.removesuffix('.xml')}", number, rows)


def _comparable_rows(name: str, page: int, rows: Iterable[Sequence[str]]) -> Iterator[Row]:
    for row in rows:
        cells = sorted(filter(None, ("".join(filter(str.isalnum, cell.casefold())) for cell in row)))
        if len(cells) > 1:
            yield name, page, tuple(cells)


def _pdf(marks: Path) -> Path:
    return marks.with_name(f"{marks.name.removesuffix(MARKS)}.pdf")
