"""Writes a conversation as Markdown, which the text of users, models and documents can't break.

Everything that was said stands in block quotes, which end whatever was left open in them (a code fence, a list, a
table); HTML, images and links are disarmed. CommonMark 0.31, sections 2.4 and 5.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from assistant.types import Turn
from assistant.wording.replies import LABEL, reply
from assistant.wording.views import Source, instead, missing, sources

_SPECIAL = str.maketrans({char: f"\\{char}" for char in r"\`*_{}[]()<>#+=-.!|~&"})
# In a reply, lists, emphasis and code are meant; HTML, images, links and link definitions are not. Entities disarm
# them, where a backslash would itself be undone by a backslash before it.
_DISARMED = {"&": "&amp;", "<": "&lt;", "![": "&#33;[", "](": "]&#40;", "]:": "]&#58;"}
_UNSAFE = re.compile("|".join(map(re.escape, _DISARMED)))


def document(title: str, turns: Iterable[Turn]) -> str:
    """The conversation: a heading, and each turn with utterance, reply, sources and unsupported sentences."""
    parts = [f"# {escaped(title) or 'Conversation'}", *(part for turn in turns for part in _turn(turn))]
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """`text` on one line, escaped so that every character is shown as it is."""
    return " ".join(text.split()).translate(_SPECIAL)


def quoted(text: str) -> str:
    """`text` as a block quote."""
    return "\n".join(f"> {line}" for line in re.split(r"\r\n|[\r\n\u2028\u2029]", text.strip()))


def _turn(turn: Turn) -> Iterator[str]:
    yield "**You**"
    yield quoted("\n".join(escaped(line) + "  " for line in turn.utterance.splitlines()))
    yield "**Sequitur**"
    if turn.answer and turn.answer.text.strip():
        yield quoted(_tamed(reply(turn.answer)))
    if instead(turn) == "own" and LABEL not in reply(turn.answer):
        yield f"*{LABEL}*"
    if what := missing(turn):
        yield f"*{escaped(what)}*"
    if turn.citations:
        yield "Sources"
        yield "\n".join(map(_source, sources(turn)))
    if unsaid := "\n".join(_not_found(turn)):
        yield "Not found in the sources"
        yield unsaid


def _tamed(text: str) -> str:
    return _UNSAFE.sub(lambda match: _DISARMED[match[0]], text)


def _source(source: Source) -> str:
    partly = ", says a part" if source.partly else ""
    where = f"<{source.link}>" if source.link else escaped(source.source)
    place = f" ({where})" if where else ""
    return f"- \\[{source.n}\\] {escaped(source.title)}{place}{partly}: “{escaped(source.quote)}”"


def _not_found(turn: Turn) -> Iterator[str]:
    return (f"- {escaped(sentence.text)}" for sentence in turn.sentences if sentence.state == "not")
