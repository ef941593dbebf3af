"""Cuts off replies that repeat themselves: an LLM wrapped around an LLM.

A small model that has nothing more to say writes the same text again and again until its token limit. A reply counts
as repeating itself in two cases. Either a run of words follows itself immediately, with at least `WORDS` repeated words
(a shorter run has to repeat until its copies have as many), or the same `WORDS` words have occurred `TIMES` times and
occur once more, whatever stands between. A refrain, a table, a list whose lines begin alike or a "very, very good" is
neither: other words stand between, or the repeated part is shorter.
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

# Chosen on the passages of SQuAD: by these numbers none of them repeats itself.
WORDS, TIMES = 12, 3
# A number that opens a line counts its items and says nothing of them. Scripts without spaces have a word a character.
# What follows a word shows that it is whole.
_HAN = r"\u3040-\u30ff\u3400-\u9fff"
_MARKS = re.escape(string.punctuation)
_WORD = re.compile(rf"^\s*\d+[.)]\s|([{_HAN}]|[^\s{_MARKS}{_HAN}]+)(?=.)", re.MULTILINE | re.DOTALL)
_CLOSING = re.compile(r"[^\w\s]*(?:[^\w\n]+(?=\n))?")
_END_MARKS = ".!?。！？"


def without_repetition(text: str) -> str:
    """The text up to where it begins to repeat itself; all of it if it doesn't."""
    matches = [match for match in _WORD.finditer(text) if match[1]]
    words = [match[1].casefold() for match in matches]
    ends_by_words: dict[tuple[str, ...], list[int]] = {}
    for end in range(WORDS, len(words) + 1):
        earlier_ends = ends_by_words.setdefault(tuple(words[end - WORDS : end]), [])
        if (
            earlier_ends
            and words[earlier_ends[-1] : end] == words[max(2 * earlier_ends[-1] - end, 0) : earlier_ends[-1]]
        ):
            period = end - earlier_ends[-1]
            start = _start(words, end - max(period, WORDS) - period, period)
            return _cut_after(text, matches[start].start(), matches[start + period - 1].end())
        if len(earlier_ends) == TIMES:
            return _cut_after(text, matches[earlier_ends[-1]].start(), matches[end - WORDS - 1].end())
        earlier_ends.append(end)
    return text


class RepetitionCutter(Wrapper):
    """Ends replies of `llm` where they begin to repeat themselves, with `finish` "repeated".

    A stream is closed at that point, so that the model stops writing; the replies of a batch are cut once complete.
    """

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """As the model does it, up to the first repetition."""
        with closing(self._llm.stream(messages, options, stop)) as growing:  # type: ignore[type-var]
            for completion in growing:
                shortened = _cut(completion)
                yield shortened
                if shortened.finish == "repeated":
                    return

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """As the model does it, each reply up to its first repetition."""
        return [_cut(completion) for completion in self._llm.complete(batch, options, stop)]


def _cut(completion: Completion) -> Completion:
    text = without_repetition(completion.text)
    return completion if text == completion.text else replace(completion, text=text, finish="repeated")


def _start(words: list[str], start: int, period: int) -> int:
    """Where the repeated run first begins: as far to the front as its words agree."""
    while start > 0 and words[start - 1] == words[start - 1 + period]:
        start -= 1
    return start


def _cut_after(text: str, start: int, end: int) -> str:
    """The text up to `end`, without a sentence that the run from `start` had only begun again."""
    closing_mark = _CLOSING.match(text, end)
    shortened = text[: closing_mark.end() if closing_mark else end]
    *earlier_sentences, last_sentence = sentences(shortened)
    if (
        earlier_sentences
        and earlier_sentences[-1].end > start
        and shortened[-1] not in _END_MARKS
        and not text[len(shortened) :].startswith("\n")
    ):
        return shortened[: earlier_sentences[-1].end]
    return shortened[: last_sentence.end].rstrip(" ,;:([*-")
