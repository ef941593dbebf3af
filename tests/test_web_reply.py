"""Replies as HTML: only text and marks of our own, chips for citations, marks on what has no support."""

from __future__ import annotations

import re
from dataclasses import replace
from textwrap import indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.text.sentences import quote
from assistant.text.sentences import sentences as spans
from assistant.types import Answer, Citation, Sentence, Turn
from assistant.web import reply

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "![p](http://evil.example/p.png)",
    "[l](http://evil.example)",
    "<http://evil.example>",
    "[l]: http://evil.example\n\n[l]",
    "<style>*{display:none}</style>",
    '"><svg onload=alert(1)>',
    "`<b>`",
    "```html\n<iframe src=x>\n```",
    "| a | b |\n|---|---|\n| <i>x</i> | [y](z) |",
    "&lt;b&gt;",
)
ALLOWED = {
    "p", "em", "strong", "ul", "ol", "li", "code", "pre", "blockquote", "br", "hr", "button", "span",
    "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip


def turn(text: str, sentences: tuple[Sentence, ...] = (), citations: tuple[Citation, ...] = ()) -> Turn:
    return Turn("?", id="t", answer=Answer(text), sentences=sentences, citations=citations)


def tags(html: str) -> set[str]:
    return set(re.findall(r"<([a-z0-9]+)", html))


def cited(n: int, quote: str = "Q", passage: str = "p") -> Citation:
    return Citation(n, passage, 0, 1, "S", quote, 1.0)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_text(text: str) -> None:
    html = reply.html(turn(text))
    assert tags(html) <= ALLOWED
    assert not re.search(r"<[^>]*\b(on\w+|href|src|style)=", html)
    assert reply.plain(text).count("<button") == 0


@given(st.text())
def test_no_text_becomes_html(text: str) -> None:
    assert tags(reply.html(turn(text, (Sentence(text, state="not"),)))) <= ALLOWED


def test_markdown_that_is_meant_is_kept() -> None:
    html = reply.html(turn("Eat **well**:\n\n- lentils\n- oats\n\n`code`"))
    assert "<strong>well</strong>" in html
    assert html.count("<li>") == 2
    assert "<code>code</code>" in html


def test_markers_become_chips_in_the_order_of_the_citations() -> None:
    html = reply.html(turn("A. [1] B. [2] [1]", citations=(cited(1, "first"), cited(2), cited(1, "third"))))
    assert re.findall(r'data-cite="(\d)" data-turn="t"', html) == ["0", "1", "2"]
    assert re.findall(r">(\d)</button>", html) == ["1", "2", "1"]
    assert 'aria-label="Source 1: third"' in html


def test_a_number_that_is_no_citation_stays_text() -> None:
    html = reply.html(turn("In [7] and `[1]` and A. [1]", citations=(cited(1),)))
    assert "In [7]" in html
    assert "<code>[1]</code>" in html
    assert html.count("<button") == 1


@pytest.mark.parametrize(
    "first",
    [
        "The king said ``no'' to the first. [1] The queen said ``yes''. [2]",
        "    An indented block. [1]\n\nMore. [2]",
        "| a | b |\n|---|---|\n| x | y | too much [1] |\n\nMore. [2]",
    ],
)
def test_a_citation_in_what_is_shown_as_code_or_not_at_all_leaves_the_later_ones_alone(first: str) -> None:
    html = reply.html(turn(f"{first} The war ended in 1648. [3]", citations=(cited(1), cited(2), cited(3))))
    assert re.findall(r"data-cite=\"(\d)\"", html)[-1] == "2"
    assert html.count("[1]") <= 1
    assert not re.search("[\U0001da87-\U0001da89]", html)


def test_a_number_within_a_word_is_no_marker() -> None:
    html = reply.html(turn("In x[1] is the second. [1] It begins. [1]", citations=(cited(1, "first"), cited(1, "two"))))
    assert "x[1] is the second." in html
    assert re.findall(r'aria-label="Source 1: (\w+)"', html) == ["first", "two"]


def test_a_quote_is_escaped_in_its_attributes() -> None:
    html = reply.html(turn("A. [1]", citations=(cited(1, '"><img src=x onerror=alert(1)>'),)))
    assert "<img" not in html
    assert "&#34;&gt;&lt;img" in html


def test_an_unsupported_sentence_is_marked() -> None:
    sentences = (Sentence("Yes.", state="supported"), Sentence("No.", state="not"), Sentence("Yes.", state="supported"))
    html = reply.html(turn("Yes. [1] No. Yes. [1]", sentences, (cited(1), cited(1))))
    marks = re.findall(r'<span class="unsupported"[^>]*>(.*?)<span class="unseen">', html)
    assert marks == ["No."]


def test_what_a_source_says_in_part_is_told_apart() -> None:
    sentences = (Sentence("Yes.", "supported", 0.9, (1,)), Sentence("Well.", "partly", 0.4, (1,)))
    html = reply.html(turn("Yes. [1] Well. [1]", sentences, (cited(1), replace(cited(1), partly=True))))
    whole, part = re.findall(r"<button[^>]*>", html)
    assert 'class="chip"' in whole
    assert "partly" not in whole
    assert 'class="chip partly"' in part
    assert re.search('title="partly: [^"]+" aria-label="Source 1, partly: ', part)
    assert "unsupported" not in html


def test_what_was_not_checked_is_not_marked() -> None:
    assert "unsupported" not in reply.html(turn("Yes.", (Sentence("Yes.", "unchecked"),)))


def test_the_mark_does_not_break_a_list() -> None:
    sentences = (Sentence("- One thing.", state="not"), Sentence("2. Two.", state="not"))
    html = reply.html(turn("- One thing.\n\n2. Two.", sentences))
    assert re.search(r'<li>\s*<span class="unsupported"[^>]*>One thing\.', html)
    assert re.search(r'<li>\s*<span class="unsupported"[^>]*>Two\.', html)


def test_the_mark_does_not_break_bold_and_italics() -> None:
    texts = ("**No.**", "*Never!*", "__Not at all.__", "**Note:** perhaps.")
    html = reply.html(turn(" ".join(texts), tuple(Sentence(text, state="not") for text in texts)))
    assert html.count('<span class="unsupported"') == len(texts)
    assert re.findall(r"<(?:strong|em)>(.*?)</", html) == ["No.", "Never!", "Not at all.", "Note:"]
    assert not re.search("[*_]", html)


TABLE = """\
| Food here | Protein in it |
| --- | --- |
| Lentils hold it. So do beans. | 9 g \\| 100 g |

Eat well.
"""
CODE = """\
Run it so:

```python of the shop
x = 1 + 2 + 3. And so on.
```

    indented x = 4

* * *

Use `pip install. Now` go.
"""


def unmarked(html: str) -> str:
    return re.sub(r'<span class="unsupported"[^>]*>|<span class="unseen">.*?</span></span>', "", html)


@pytest.mark.parametrize("text", [TABLE, CODE, indent(TABLE, "> ")], ids=["table", "code", "quote"])
def test_the_marks_break_neither_tables_nor_code(text: str) -> None:
    sentences = tuple(Sentence(quote(text, span), state="not") for span in spans(text))
    html = reply.html(turn(text, sentences))
    assert unmarked(html) == reply.plain(text)
    assert html.count("<span") == html.count("</span>") > 0


def test_each_cell_of_a_row_without_support_is_marked() -> None:
    html = reply.html(turn(TABLE, (Sentence("| Lentils hold it.", "supported"), Sentence("So do beans. | 9 g", "not"))))
    assert re.findall(r'<span class="unsupported"[^>]*>(.*?)<span class="unseen">', html) == ["So do beans.", "9 g"]


def test_of_equal_sentences_the_one_without_support_is_marked() -> None:
    html = reply.html(turn("Yes. [1] Yes.", (Sentence("Yes.", "supported"), Sentence("Yes.", "not")), (cited(1),)))
    assert html.index("<button") < html.index("unsupported")


def test_marks_that_were_in_the_text_are_taken_out() -> None:
    text = "a\U0001da87b\U0001da88"
    assert reply.html(turn(text)) == reply.plain(text) == "<p>ab</p>\n"


def test_a_turn_without_answer_is_empty() -> None:
    assert reply.html(Turn("?")) == ""
