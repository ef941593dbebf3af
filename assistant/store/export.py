"""Writes a conversation as Markdown, which the text of users, models and documents can't break.

Everything that was said stands in block quotes, which end whatever was left open in them (a code fence, a list, a
table); HTML, images and links are disarmed. CommonMark 0.31, sections 2.4 and 5.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from assistant.types import Turn
from assistant.wording.replies import LABEL, reply
from assistant.wording.views import Source, incomplete_notice, sources, unsourced_kind

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


def block_quote(text: str) -> str:
    """`text` as a block quote."""
    return "\n".join(f"> {line}" for line in re.split(r"\r\n|[\r\n\u2028\u2029]", text.strip()))


def _turn(turn: Turn) -> Iterator[str]:
    yield "**You**"
    yield block_quote("\n".join(escaped(line) + "  " for line in turn.utterance.splitlines()))
    yield "**Sequitur**"
    if turn.answer and turn.answer.text.strip():
        yield block_quote(_tamed(reply(turn.answer)))
    if unsourced_kind(turn) == "own" and LABEL not in reply(turn.answer):
        yield f"*{LABEL}*"
    if missing_note := incomplete_notice(turn):
        yield f"*{escaped(missing_note)}*"
    if turn.citations:
        yield "Sources"
        yield "\n".join(map(_source, sources(turn)))
    if unsupported := "\n".join(_not_found(turn)):
        yield "Not found in the sources"
        yield unsupported


def _tamed(text: str) -> str:
    return _UNSAFE.sub(lambda match: _DISARMED[match[0]], text)


def _source(source: Source) -> str:
    partly = ", says a part" if source.partly else ""
    address = f"<{source.link}>" if source.link else escaped(source.source)
    location = f" ({address})" if address else ""
    return f"- \\[{source.n}\\] {escaped(source.title)}{location}{partly}: “{escaped(source.quote)}”"


def _not_found(turn: Turn) -> Iterator[str]:
    return (f"- {escaped(sentence.text)}" for sentence in turn.sentences if sentence.state == "not")
