"""Writes a conversation as Markdown that what users, models and documents wrote can't break.

Everything that was said stands in block quotes, which end whatever was left open in them (a code fence, a list, a
table); HTML, images and links are disarmed. CommonMark 0.31, sections 2.4 and 5.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from assistant.types import Turn

_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+=\-.!|~&])")
# In a reply, lists, emphasis and code are meant; HTML, images, links and link definitions are not. Entities disarm
# them, where a backslash would itself be undone by a backslash before it.
_DISARMED = {"&": "&amp;", "<": "&lt;", "![": "&#33;[", "](": "]&#40;", "]:": "]&#58;"}
_UNSAFE = re.compile("|".join(map(re.escape, _DISARMED)))


def document(title: str, turns: Iterable[Turn]) -> str:
    """The conversation: a heading, then for each turn the utterance, the reply, and the sources it cites."""
    parts = [f"# {escaped(title) or 'Conversation'}", *(part for turn in turns for part in _turn(turn))]
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """`text` on one line, every character of it shown as it is."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def quoted(text: str) -> str:
    """`text` as a block quote."""
    return "\n".join(f"> {line}" for line in re.split(r"\r\n|[\r\n\u2028\u2029]", text.strip()))


def _turn(turn: Turn) -> Iterator[str]:
    yield "**You**"
    yield quoted("\n".join(escaped(line) + "  " for line in turn.utterance.splitlines()))
    yield "**Sequitur**"
    yield quoted(_tamed(turn.answer.text)) if turn.answer else f"*No reply ({escaped(turn.error or turn.status)})*"
    if turn.citations:
        yield "Sources"
        yield "\n".join(_sources(turn))


def _tamed(reply: str) -> str:
    return _UNSAFE.sub(lambda match: _DISARMED[match[0]], reply)


def _sources(turn: Turn) -> Iterator[str]:
    titles = {passage.id: passage.title for passage in turn.passages}
    places = sorted({(one.n, one.start, one.passage_id, one.quote) for one in turn.citations})
    for n, _start, passage_id, quote in places:
        title = titles.get(passage_id) or passage_id
        yield f"- \\[{n}\\] {escaped(title)}: “{escaped(quote)}”"
