"""What a turn cites, and how a person cites it elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping

from assistant.types import Passage, Turn

# What TeX reads as a command, and how it is written instead.
_TEX = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
_MARKDOWN = re.compile(r"([\\`*_\[\]<>#])")


def in_documents(turn: Turn) -> list[int]:
    """The places, in the turn's citations, of those that stand in a document of the user's."""
    own_ids = {passage.id for passage in turn.passages if passage.own}
    return [position for position, citation in enumerate(turn.citations) if citation.passage_id in own_ids]


def location_text(passage: Passage) -> str:
    """Title and place of a source, such as "On oats, Growing > Soil, oats.pdf, page 3"."""
    return ", ".join(filter(None, (passage.title, passage.heading, passage.source))) or passage.id


def citation_texts(passage: Passage, quote: str) -> Mapping[str, str]:
    """The citation as text, Markdown and BibTeX; a `quote` is given where there is one."""
    line = " ".join(quote.split())
    quotation = f"> {_MARKDOWN.sub(_escaped, line)}\n>\n> — " if line else ""
    return {
        "text": f"“{line}” — {location_text(passage)}" if line else location_text(passage),
        "Markdown": quotation + _MARKDOWN.sub(_escaped, location_text(passage)),
        "BibTeX": _bibtex(passage),
    }


def _escaped(match: re.Match[str]) -> str:
    return f"\\{match[1]}"


def _bibtex(passage: Passage) -> str:
    fields = {"title": passage.title or passage.source or passage.id, "howpublished": passage.source}
    note_parts = (passage.heading, f"p. {passage.page}" if passage.page else "")
    fields["note"] = ", ".join(filter(None, note_parts))
    lines = [f"  {name} = {{{_tex(value)}}}" for name, value in fields.items() if value]
    key = "".join(char for char in passage.id if char.isascii() and (char.isalnum() or char in "-_")) or "source"
    return f"@misc{{{key},\n" + ",\n".join(lines) + "\n}"


def _tex(text: str) -> str:
    return "".join(_TEX.get(char, char) for char in text)
