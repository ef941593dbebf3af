"""A conversation as Markdown: what a person reads of it is what was said, line by line."""

from __future__ import annotations

from markdown_it import MarkdownIt

from assistant.store.export import block_quote, document
from assistant.types import Answer, Turn


def shown(markdown: str) -> str:
    """The document as HTML."""
    return MarkdownIt("commonmark").render(markdown)


def test_the_lines_of_a_message_stay_lines() -> None:
    turn = Turn("One\nTwo\n===\n- Three\n\nFour", status="done", answer=Answer("Yes."))
    html = shown(document("T", [turn]))
    assert "<p>One<br />\nTwo<br />\n===<br />\n- Three</p>\n<p>Four</p>" in html


def test_line_breaks_of_a_reply_are_kept() -> None:
    assert shown(block_quote("One  \nTwo\n\n```\na = 1\n\n```")) == (
        "<blockquote>\n<p>One<br />\nTwo</p>\n<pre><code>a = 1\n\n</code></pre>\n</blockquote>\n"
    )
