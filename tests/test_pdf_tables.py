"""Rows of a PDF's tables, and what is no table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.library.pdf_pages import answer
from assistant.library.pdf_tables import table_range
from assistant.library.readers import read
from assistant.library.readers.pdf import pages_of
from tests.test_readers import make_pdf, pdf_of

PRICES = [
    ["Item", "Weight", "Price"],
    ["Oats", "500 g", "1.20"],
    ["Green tea", "80 g", "3.50"],
    ["Salt", "1 kg", "0.45"],
]
LEFT = (72, 250, 400)
Placed = tuple[float, float, str]


def drawn(path: Path, *texts: Placed) -> Path:
    """A page with these texts, each at its place."""
    shown = " ".join(f"1 0 0 1 {x} {y} Tm ({text}) Tj" for x, y, text in texts)
    return pdf_of(path, f"BT /F1 12 Tf {shown} ET")


def cells(rows: Sequence[Sequence[str]], top: float = 600, apart: float = 20) -> list[Placed]:
    return [(x, top - apart * n, cell) for n, row in enumerate(rows) for x, cell in zip(LEFT, row, strict=True) if cell]


def texts_of(path: Path) -> list[str]:
    return [block.text for block in read(path)]


def test_rows_are_read_with_the_names_of_their_columns_between_the_text_around_them(tmp_path: Path) -> None:
    around = [(72, 700, "These are the prices of the shop."), (72, 400, "All prices are without tax.")]
    path = drawn(tmp_path / "a.pdf", around[0], *cells(PRICES), around[1])
    assert texts_of(path) == [
        "These are the prices of the shop.",
        "Item: Oats; Weight: 500 g; Price: 1.20",
        "Item: Green tea; Weight: 80 g; Price: 3.50",
        "Item: Salt; Weight: 1 kg; Price: 0.45",
        "All prices are without tax.",
    ]


def test_cells_that_are_written_column_by_column_are_still_rows(tmp_path: Path) -> None:
    by_column = sorted(cells(PRICES), key=lambda one: one[0])
    assert "Item: Salt; Weight: 1 kg; Price: 0.45" in texts_of(drawn(tmp_path / "a.pdf", *by_column))


def test_a_cell_of_two_lines_is_one_and_an_empty_one_is_left_out(tmp_path: Path) -> None:
    rows = [*cells(PRICES[:2]), (250, 567, "in a bag"), *cells([["Tea", "", "3.50"], ["Salt", "1 kg", "0.45"]], 540)]
    found = texts_of(drawn(tmp_path / "a.pdf", *rows))
    assert found[:2] == ["Item: Oats; Weight: 500 g in a bag; Price: 1.20", "Item: Tea; Price: 3.50"]


def test_rows_without_names_are_lines(tmp_path: Path) -> None:
    found = texts_of(drawn(tmp_path / "a.pdf", *cells([["1.5", "2", "3"], ["4", "5", "6"], ["7", "8", "9.5"]])))
    assert found == ["1.5 | 2 | 3", "4 | 5 | 6", "7 | 8 | 9.5"]


def prose(x: float, *starts: str) -> list[Placed]:
    return [(x, 600 - 14 * n, f"{start} of the house of bread and tea") for n, start in enumerate(starts)]


@pytest.mark.parametrize(
    "texts",
    [
        [
            *prose(20, "One", "Two", "Three", "Four"),
            *prose(230, "Five", "Six", "Six", "Ten"),
            *prose(430, "A", "B", "C"),
        ],
        [one for one in cells(PRICES) if one[0] != LEFT[1]],
        cells([["1", f"Oats {'. ' * 12}", "3"], ["2", f"Tea {'. ' * 12}", "5"], ["3", f"Salt {'. ' * 12}", "9"]]),
        cells(PRICES[:2]),
        [(20 + 28 * n + across, 700 - 20 * n, "x") for n in range(10) for across in (0, 280)],
    ],
    ids=["columns of text", "two columns", "contents", "two rows", "labels of a figure"],
)
def test_what_is_no_table_stays_text(tmp_path: Path, texts: list[Placed]) -> None:
    path = drawn(tmp_path / "a.pdf", *texts)
    assert not any(page.tables for page in pages_of(path)[1])
    assert not any(block.unit for block in read(path))


def test_a_page_of_one_column_has_no_table(tmp_path: Path) -> None:
    [page] = pages_of(make_pdf(tmp_path / "a.pdf", "Oats are a cereal.\nTea is a drink.\nSalt is a mineral."))[1]
    assert not page.tables


def test_the_lines_of_a_table_are_found_whatever_their_order() -> None:
    lines = [
        "Prices",
        "Item Weight Price",
        "Oats Green tea Salt",
        "500 g 80 g 1 kg",
        "1.20 3.50 0.45",
        "All without tax.",
    ]
    assert table_range(PRICES, lines) == range(1, 5)
    assert not table_range(PRICES, ["Item Weight Price", "Something else", "stands here", "Oats"])


def test_a_row_is_marked_on_its_page(tmp_path: Path) -> None:
    path = drawn(tmp_path / "a.pdf", (72, 700, "These are the prices."), *cells(PRICES))
    said = answer({"path": str(path), "number": 1, "quote": "Item: Green tea; Weight: 80 g; Price: 3.50"})
    assert said["share"] == 1
    assert {round(top, 2) for _, top, *_ in said["boxes"]} == {round(said["boxes"][0][1], 2)}


def test_rows_are_counted_that_people_marked(tmp_path: Path) -> None:
    drawn(tmp_path / "a.pdf", *cells(PRICES))
    marks = [f"<cell start-row='{n}'><content>{cell}</content></cell>" for n, row in enumerate(PRICES) for cell in row]
    wrong = "<cell start-row='9'><content>Oats</content></cell><cell start-row='9'><content>7</content></cell>"
    region = f"<region page='1'>{''.join(marks)}{wrong}</region>"
    (tmp_path / "a-str.xml").write_text(f"<document><table>{region}</table></document>")
    said = CliRunner().invoke(app, ["bench", "tables", str(tmp_path)], terminal_width=200)
    assert "| 1 looked at | 1 | 5 | 4 | 4 | 3 |" in said.output
    refused = CliRunner().invoke(app, ["bench", "tables", str(tmp_path / "none")])
    assert "no PDFs with marks" in str(refused.exception)
