"""Finds where a quote stands among the words of a page, whose spaces, hyphens and ligatures are often others."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

# Words of another column, or of a running foot, may stand among those of the quote: one for so many of it.
FOREIGN = 4
# With a smaller share of its words, the quote is taken to stand elsewhere, and nothing is marked.
ENOUGH = 0.5
# What Unicode calls the directions of Hebrew and Arabic letters.
LEFTWARD = ("R", "AL")


@dataclass(frozen=True, slots=True)
class Spots:
    """The places of the words that say a quote, in order, and which share of the quote's words they are, in [0, 1]."""

    places: tuple[int, ...] = ()
    share: float = 0.0


def spots(quote: str, words: Sequence[str]) -> Spots:
    """Where the quote stands: letter by letter if it does so anywhere, else where most of its words are, in order.

    Args:
        quote: a text, as a reader of documents gave it.
        words: those of a page, in order.
    """
    letters = [folded(word) for word in words]
    wanted = [word for word in map(folded, quote.split()) if word]
    if not wanted:
        return Spots()
    found = _as_it_stands("".join(wanted), letters)
    return found or _most_of_it(list(map(_either_way, wanted)), list(map(_either_way, letters)))


def folded(word: str) -> str:
    """The letters and digits of a word, as they are compared: in one case, ligatures and full width undone."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", word).casefold()))


def _either_way(word: str) -> str:
    """A word that is written from right to left as it is the same read backwards: some pages hold it so."""
    leftward = word and unicodedata.bidirectional(word[0]) in LEFTWARD
    return min(word, word[::-1]) if leftward else word


def _as_it_stands(quote: str, words: Sequence[str]) -> Spots | None:
    """All of the quote, wherever the page and the quote have spaces and hyphens; it begins and ends where words do."""
    ends = list(accumulate(map(len, words)))
    page, starts = "".join(words), {0, *ends}
    at = page.find(quote)
    while at >= 0 and not (at in starts and at + len(quote) in starts):
        at = page.find(quote, at + 1)
    if at < 0:
        return None
    first, last = bisect_right(ends, at), bisect_right(ends, at + len(quote) - 1)
    return Spots(tuple(n for n in range(first, last + 1) if words[n]), 1.0)


def _most_of_it(quote: list[str], words: Sequence[str]) -> Spots:
    start, end = _densest(Counter(quote), words, len(quote) + len(quote) // FOREIGN)
    blocks = SequenceMatcher(None, quote, words[start:end], autojunk=False).get_matching_blocks()
    places = tuple(start + block.b + n for block in blocks for n in range(block.size))
    return Spots(places, len(places) / len(quote))


def _densest(wanted: Counter[str], words: Sequence[str], size: int) -> tuple[int, int]:
    """The first stretch of `size` words that has the most of those that are wanted, each as often as it is wanted."""
    here: Counter[str] = Counter()
    best, most, found = 0, 0, 0
    for n, word in enumerate(words):
        here[word] += 1
        found += here[word] <= wanted[word]
        if n >= size:
            gone = words[n - size]
            found -= here[gone] <= wanted[gone]
            here[gone] -= 1
        if found > most:
            best, most = max(n - size + 1, 0), found
    return best, best + size
