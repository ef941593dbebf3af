"""A reply as HTML: Markdown without HTML, images and links; citation chips; sentences that no passage says marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup, escape

from assistant.types import Citation, Sentence, Turn
from assistant.web.cited import location_text
from assistant.wording.replies import reply

# Two characters that no reply holds (SignWriting's comma and full stop) stand for the two ends of a sentence that
# nothing supports. They are punctuation, beside which Markdown reads asterisks as it does at the end of a sentence.
_BEGIN, _END = "\U0001da87", "\U0001da88"
# A third one stands in the markers of citations, before the citation's place among all: "[2" + _CITED + "0]".
_CITED = "\U0001da89"
_MARKS = re.compile(f"[{_BEGIN}{_END}{_CITED}]")
_MARKER = re.compile(r"(?<!\S)\[(\d{1,2})\]")
_CHIP = re.compile(rf"\[\d{{1,2}}{_CITED}(\d+)\]")
_PLACE = re.compile(rf"{_CITED}\d+(?=\])")
# What begins a line in Markdown must stay at its beginning.
_LINE_START = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)]|#{1,6}|>)\s+)*")
# What of a sentence is marked: all of it, or in a table what it has of each cell.
_WHOLE = re.compile(".+", re.DOTALL)
_CELL = re.compile(r"(?:\\\||[^\s|])(?:\\\||[^|])*?(?=\s*(?:\||$))")
# Text of a model or a document never becomes a link, an image or HTML.
_DISABLED_RULES = ["link", "image", "autolink", "html_inline", "html_block", "reference"]
NO_SOURCE = "No passage says this"
# A citation, on the page and where the reply stands by itself with its sources beneath it.
_BUTTON = (
    '<button type="button" class="chip{weaker}" data-cite="{place}" data-turn="{turn}" title="{title}" '
    'aria-label="Source {label}">{n}</button>'
)
_LINK = '<a class="chip{weaker}" href="#source-{turn}-{n}" title="{title}">{n}</a>'


def html(turn: Turn) -> Markup:
    """The answer of a turn, with a chip for each citation and a mark on each sentence without support."""
    return _html(turn, _BUTTON)


def linked(turn: Turn) -> Markup:
    """The same with chips that lead to `source-TURN-NUMBER` on a page without scripts."""
    return _html(turn, _LINK)


def _html(turn: Turn, chip: str) -> Markup:
    text = _MARKS.sub("", reply(turn.answer))
    places = {passage.id: location_text(passage) for passage in turn.passages}
    env = {"turn": turn.id, "citations": turn.citations, "places": places, "chip": chip}
    rendered = _markdown().render(_with_places(marked(text, turn.sentences), turn.citations), env)
    return Markup(_MARKS.sub("", _PLACE.sub("", rendered)))  # noqa: S704 - escaped by the renderer


def plain(text: str) -> Markup:
    """Any other text that a model wrote."""
    return Markup(_markdown().render(_MARKS.sub("", text)))  # noqa: S704


def _with_places(text: str, citations: Sequence[Citation]) -> str:
    """The text with each citation's place in its marker, which code wrote in this order behind a space.

    So a marker that Markdown shows as code, or not at all, changes nothing for those behind it.
    """
    waiting = list(enumerate(citations))

    def with_place(marker: re.Match[str]) -> str:
        if not waiting or waiting[0][1].n != int(marker[1]):
            return marker[0]
        return f"[{marker[1]}{_CITED}{waiting.pop(0)[0]}]"

    return _MARKER.sub(with_place, text)


def marked(text: str, sentences: Sequence[Sentence]) -> str:
    """`text` with marks around the sentences that have no support."""
    result, position = "", 0
    markable = _markable(text) if sentences else {}
    for sentence in sentences:
        start = text.find(sentence.text, position)
        if start < 0:
            continue
        result += text[position:start]
        pattern = markable.get(text.count("\n", 0, start)) if sentence.state == "not" else None
        result += _around(sentence.text, pattern) if pattern else sentence.text
        position = start + len(sentence.text)
    return result + text[position:]


def _markable(text: str) -> dict[int, re.Pattern[str]]:
    """What is marked of a sentence in each line; code, and the line beneath a table's head, are left out."""
    patterns: dict[int, re.Pattern[str]] = {}
    for token in _markdown().parse(text):
        if token.map and token.type in {"inline", "tr_open"}:
            pattern = _CELL if token.type == "tr_open" else _WHOLE
            patterns = dict.fromkeys(range(*token.map), pattern) | patterns  # a row comes before its cells
    return patterns


def _around(sentence: str, pattern: re.Pattern[str]) -> str:
    content = _LINE_START.sub("", sentence, count=1)
    return sentence.removesuffix(content) + pattern.sub(rf"{_BEGIN}\g<0>{_END}", content)


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table").disable(_DISABLED_RULES)
    markdown.inline.ruler.before("escape", "chip", _chip)
    markdown.inline.ruler.before("escape", "unsupported", _unsupported)
    for char in (_BEGIN, _END):
        markdown.inline.add_terminator_char(char)
    markdown.add_render_rule("chip", _render_chip)
    markdown.add_render_rule("unsupported", _render_unsupported)
    return markdown


def _chip(state: StateInline, silent: bool) -> bool:
    """A marker with the place of its citation is a chip."""
    match = _CHIP.match(state.src, state.pos)
    if not match:
        return False
    if not silent:
        token = state.push("chip", "", 0)
        position = int(match[1])
        citation = state.env["citations"][position]
        location = state.env["places"].get(citation.passage_id, "")
        token.meta = {"place": position, "citation": citation, "turn": state.env["turn"], "stands": location}
    state.pos = match.end()
    return True


def _unsupported(state: StateInline, silent: bool) -> bool:
    char = state.src[state.pos]
    if char not in (_BEGIN, _END):
        return False
    if not silent:
        state.push("unsupported", "", 0).content = char
    state.pos += 1
    return True


def _render_chip(_renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, env: Any) -> str:
    meta = tokens[index].meta
    citation: Citation = meta["citation"]
    return Markup(env["chip"]).format(  # noqa: S704 - one of the two above, and escapes what it is given
        weaker=" partly" if citation.partly else "",
        title=f"{'partly: ' if citation.partly else ''}{citation.quote}{_location_line(meta['stands'])}",
        label=f"{citation.n}{', partly' if citation.partly else ''}: {citation.quote}",
        place=meta["place"],
        turn=meta["turn"],
        n=citation.n,
    )


def _location_line(location: str) -> str:
    return f"\n— {location}" if location else ""


def _render_unsupported(_renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    if tokens[index].content == _END:
        return f'<span class="unseen"> ({escape(NO_SOURCE)})</span></span>'
    return f'<span class="unsupported" title="{escape(NO_SOURCE)}">'
