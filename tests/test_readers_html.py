"""Web pages as they are found: layout in tables, headings alone, old encodings, tags that never close."""

from pathlib import Path

import pytest

from assistant.library.readers import read
from assistant.library.readers.shared.text import TITLE_CHARS


def page(folder: Path, markup: str, name: str = "a.html") -> list[tuple[str, str]]:
    (folder / name).write_text(markup, encoding="utf-8")
    return [(block.full_title, block.text) for block in read(folder / name)]


def texts(folder: Path, markup: str) -> list[str]:
    return [text for _, text in page(folder, markup)]


@pytest.mark.parametrize("name", ["windows-1251", "koi8-r", "iso-8859-5"])
def test_the_encoding_that_a_page_declares_is_used(tmp_path, name):
    markup = f'<html><head><meta charset="{name}"></head><p>Овсянка полезна.</p></html>'
    (tmp_path / "a.html").write_bytes(markup.encode(name))
    assert read(tmp_path / "a.html")[0].text == "Овсянка полезна."


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [
        ("windows-1251", "utf-8"),  # saved anew by something that left the declaration
        ("utf-8", "cp1252"),
        ("iso-8859-1", "cp1252"),
        ("unheard-of", "cp1252"),
        ("base64", "cp1252"),
        ("a\0b", "cp1252"),
        ("utf-16", "cp1252"),
    ],
)
def test_the_bytes_of_a_page_count_more_than_what_it_declares(tmp_path, declared, encoding):
    markup = (
        f'<meta http-equiv="Content-Type" content="text/html; charset={declared}"><p>Müller’s café – 5 €</p>'
        + " " * 200
    )
    (tmp_path / "a.html").write_bytes(markup.encode(encoding))
    assert read(tmp_path / "a.html")[0].text == "Müller’s café – 5 €"


def test_nested_tables_of_layout_are_read_once(tmp_path):
    markup = "<p>Oats are a cereal.</p><p>Rice is another.</p>"
    for _ in range(3):
        markup = f"<table><tr><td>{markup}</td></tr></table>"
    assert texts(tmp_path, markup) == ["Oats are a cereal.", "Rice is another."]


def test_a_table_beside_a_menu_is_read_row_by_row(tmp_path):
    data = "<table><tr><th>Tea</th><td><p>5</p></td><td></td></tr><tr><td></td><td></td></tr></table>"
    assert texts(tmp_path, f"<table><tr><td>Home</td><td>{data}after</td></tr></table>") == [
        "Home",
        "Tea | 5 |",
        "after",
    ]


def test_lists_and_headings_in_cells_are_read_as_such(tmp_path):
    markup = "<table><tr><td>loose<ul><li>one</li><li>two</li></ul></td><td><h2>Part</h2><p>Text.</p></td></tr></table>"
    assert page(tmp_path, f"<title>Page</title>{markup}") == [
        ("Page", "loose"),
        ("Page", "one"),
        ("Page", "two"),
        ("Page - Part", "Text."),
    ]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        (
            "<div><h2>Winter</h2>Closed.</div><div><h2>Summer</h2>Open <b>daily</b>.</div>",
            [("Page - Winter", "Closed."), ("Page - Summer", "Open daily.")],
        ),
        ("<p>Intro<h2>A</h2>one<br><h2>B</h2>two", [("Page", "Intro"), ("Page - A", "one"), ("Page - B", "two")]),
        ("<ul><li>one<ul><li>two</ul>three</ul>four", [("Page", text) for text in ("one", "two", "three", "four")]),
        ("<table><tr><td>Tea<td><p>5</p>a cup</table>", [("Page", "Tea | 5 a cup")]),
        ("<dl><dt>Oats<dd>A <p>good</p> cereal</dl>", [("Page", "Oats: A good cereal")]),
    ],
)
def test_text_outside_a_tag_of_its_own_is_read_where_it_stands(tmp_path, markup, expected):
    assert page(tmp_path, f"<title>Page</title>{markup}") == expected


def test_rows_and_cells_that_never_close_are_read_once(tmp_path):
    markup = "<table><tr><td>Tea<td>5<tr><td>Oats<td><b>1</b>2</table><p>After.</p>"
    assert texts(tmp_path, markup) == ["Tea | 5", "Oats | 12", "After."]


def test_cells_outside_rows_are_read(tmp_path):
    assert texts(tmp_path, "<table><td>Tea</td><td>5</td></table><p>After.</p>") == ["Tea", "5", "After."]


@pytest.mark.parametrize(
    ("name", "markup"),
    [
        ("a.html", "<h1>Shop</h1><h2>Closed on Mondays</h2><h2>Prices</h2><p>Tea is 5.</p><h3>Card only</h3>"),
        ("a.md", "# Shop\n\n## Closed on Mondays\n\n## Prices\n\nTea is 5.\n\n### Card only\n"),
    ],
)
def test_a_heading_without_a_paragraph_is_kept_and_the_documents_is_not(tmp_path, name, markup):
    assert page(tmp_path, markup, name) == [
        ("Shop", "Closed on Mondays"),
        ("Shop - Prices", "Tea is 5."),
        ("Shop - Prices", "Card only"),
    ]


def test_a_heading_that_the_pages_title_says_is_no_paragraph(tmp_path):
    markup = "<head><title>Tea: our shop</title></head><h1>Tea</h1><h2>Prices</h2><p>Tea is 5.</p><h2>hop</h2>"
    assert page(tmp_path, markup) == [("Tea: our shop - Prices", "Tea is 5."), ("Tea: our shop", "hop")]


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [("# Buy oats\n", ["Buy oats"]), ("# List\n\n## Buy oats\n\n## Sell rice\n", ["Buy oats", "Sell rice"])],
)
def test_a_file_of_headings_alone_is_read(tmp_path, markdown, expected):
    assert [text for _, text in page(tmp_path, markdown, "a.md")] == expected


def test_a_heading_that_never_closes_is_no_more_than_its_own_text(tmp_path):
    markup = "<h1>My <b>notes</b></h2><p>First.</p><h2>Part</h2><p>Second.</p>"
    assert page(tmp_path, markup) == [("My notes", "First."), ("My notes - Part", "Second.")]


def test_a_heading_around_another_tag_is_the_title(tmp_path):
    assert page(tmp_path, "<h1><div>My<br>notes</div></h1><p>First.</p>")[-1] == ("My notes", "First.")


def test_a_heading_that_is_too_long_is_cut_in_titles_and_kept_as_text(tmp_path):
    run_on = "It goes on and on. " * 500
    (title, text), (part, last) = page(tmp_path, f"<h1>My notes. {run_on}<h2>Part</h2><p>Last.</p>")
    assert text == f"My notes. {run_on}".strip()
    assert title.startswith("My notes. It goes on")
    assert title.endswith((" on…", " goes…", " and…"))
    assert len(title) <= TITLE_CHARS
    assert (part, last) == (f"{title} - Part", "Last.")


def test_a_title_that_is_too_long_is_cut_and_the_heading_stays(tmp_path):
    markup = f"<head><title>{'word ' * 1000}</title></head><h2>Part</h2><p>Text.</p>"
    [(title, _)] = page(tmp_path, markup)
    assert title.endswith("word… - Part")
    assert len(title) <= TITLE_CHARS + len(" - Part")


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("5,000<sup>2</sup> m<sup>2</sup>", "5,000^2 m2"),
        ("<b>10</b><sup>−6</sup> of the 21<sup>st</sup>", "10^−6 of the 21st"),
        ("In 2020<sup class=r><a href='#n'>[3]</a></sup> it grew<sup>4</sup>.", "In 2020 it grew4."),
        ("10<sup>6<br>and more</sup>", "10^6 and more"),
        ("10<sup>6 or 10<sup>7</sup></sup>", "10^6 or 10^7"),
        (f"10<sup><a href='#n'>1 {'is long ' * 9}</a></sup>.", f"10^1 {'is long ' * 9}."),
        ("<table><tr><td>10<sup>6</sup><td>2<sup><a>1</a></sup></table>", "10^6 | 2"),
        ("<sup>6</sup> tons<script>1</script>", "6 tons"),
    ],
)
def test_exponents_are_told_from_other_digits_and_footnotes_are_left_out(tmp_path, markup, expected):
    assert texts(tmp_path, f"<div>{markup}</div>") == [expected]


def test_a_superscript_that_never_closes_hides_nothing(tmp_path):
    markup = "<p>Oats<sup><a href='#n'>1</a> are <div>a cereal</div> <p>and <a href=x>more</a>.</p>"
    assert " ".join(texts(tmp_path, markup)).endswith("a cereal and more.")


@pytest.mark.parametrize(
    "name",
    "summary details address main header footer aside fieldset legend caption form ul ol dl table figure".split(),
)
def test_words_inside_and_outside_a_tag_that_stands_apart_are_not_joined(tmp_path, name):
    assert " ".join(texts(tmp_path, f"<div>one<{name}>two</{name}>three</div>")).split() == ["one", "two", "three"]


def test_words_around_a_rule_are_not_joined(tmp_path):
    assert texts(tmp_path, "<div>one<hr>two</div>") == ["one two"]


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<dl><dt>Tea</dl><dl><dd>A cereal</dl>", ["Tea", "A cereal"]),
        ("<dl><dt>Tea</dl><p>Said.</p><dl><dt>Oats<dd>A cereal</dl>", ["Tea", "Said.", "Oats: A cereal"]),
        ("<dl><dt>Oats<dd>A cereal</dl><dl><dd>A drink</dl>", ["Oats: A cereal", "A drink"]),
        ("<dl><dt>Tea<div></div><dd>A drink</dl>", ["Tea: A drink"]),
        ("<dl><div><dt>Oats</dt><dt>Rye</dt><dd>A cereal</dd></div></dl>", ["Oats, Rye: A cereal"]),
        ("<dl><dt>Oats<dd>A cereal</dd><p>Said.</p><dd>A food</dl>", ["Oats: A cereal", "Said.", "Oats: A food"]),
    ],
)
def test_a_term_that_nothing_is_said_of_stands_alone(tmp_path, markup, expected):
    assert texts(tmp_path, markup) == expected
