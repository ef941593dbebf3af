"""Ends replies that go round: an LLM around an LLM.

A small model that has nothing more to say writes the same again and again until its room runs out. A text goes round
where a stretch of words comes twice in immediate succession, and at least `WORDS` words of the second come as they
came before; a stretch of fewer words has to come so often that they are as many. It also goes round where `WORDS` words
have come `TIMES` times and come again, whatever stands between. A refrain, a table, a list whose lines begin alike or a
"very, very good" do neither: other words stand between, or what comes again is shorter.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from threading import Event

from assistant.llm.wrapper import Wrapper
from assistant.text.sentences import sentences
from assistant.types import Completion, Messages, Options

# Chosen on the passages of SQuAD, none of which goes round by them.
WORDS, TIMES = 12, 3
# A number that opens a line counts its items and says nothing of them. Scripts without spaces have a word a character.
# What follows a word shows that it is whole.
_HAN = r"\u3040-\u30ff\u3400-\u9fff"
_MARKS = re.escape(string.punctuation)
_WORD = re.compile(rf"^\s*\d+[.)]\s|([{_HAN}]|[^\s{_MARKS}{_HAN}]+)(?=.)", re.MULTILINE | re.DOTALL)
_CLOSING = re.compile(r"[^\w\s]*(?:[^\w\n]+(?=\n))?")
_ENDS = ".!?。！？"


def first_round(text: str) -> str:
    """The text up to where it begins to go round, all of it where it doesn't."""
    found = [match for match in _WORD.finditer(text) if match[1]]
    words = [match[1].casefold() for match in found]
    seen: dict[tuple[str, ...], list[int]] = {}
    for end in range(WORDS, len(words) + 1):
        before = seen.setdefault(tuple(words[end - WORDS : end]), [])
        if before and words[before[-1] : end] == words[max(2 * before[-1] - end, 0) : before[-1]]:
            period = end - before[-1]
            start = _start(words, end - max(period, WORDS) - period, period)
            return _rounded(text, found[start].start(), found[start + period - 1].end())
        if len(before) == TIMES:
            return _rounded(text, found[before[-1]].start(), found[end - WORDS - 1].end())
        before.append(end)
    return text


class Straight(Wrapper):
    """Passes everything on to `llm`, and ends its replies after their first round, with `finish` "repeated".

    A stream is left then, so that nothing more is written; the replies of a batch are cut when they are there.
    """

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """As the model does it, up to the first round's end."""
        with closing(self._llm.stream(messages, options, stop)) as growing:  # type: ignore[type-var]
            for completion in growing:
                cut = _cut(completion)
                yield cut
                if cut.finish == "repeated":
                    return

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """As the model does it, each up to its first round's end."""
        return [_cut(completion) for completion in self._llm.complete(batch, options, stop)]


def _cut(completion: Completion) -> Completion:
    text = first_round(completion.text)
    return completion if text == completion.text else replace(completion, text=text, finish="repeated")


def _start(words: list[str], start: int, period: int) -> int:
    """Where the first round begins: as far ahead as the words agree."""
    while start > 0 and words[start - 1] == words[start - 1 + period]:
        start -= 1
    return start


def _rounded(text: str, start: int, end: int) -> str:
    """The text up to `end`, without the sentence that the round that began at `start` has begun anew."""
    closing_mark = _CLOSING.match(text, end)
    kept = text[: closing_mark.end() if closing_mark else end]
    *before, last = sentences(kept)
    if before and before[-1].end > start and kept[-1] not in _ENDS and not text[len(kept) :].startswith("\n"):
        return kept[: before[-1].end]
    return kept[: last.end].rstrip(" ,;:([*-")
