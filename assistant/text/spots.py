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
MIN_SHARE = 0.5
# What Unicode calls the directions of Hebrew and Arabic letters.
LEFTWARD = ("R", "AL")


@dataclass(frozen=True, slots=True)
class QuoteLocation:
    """The places of the words that say a quote, in order, and which share of the quote's words they are, in [0, 1]."""

    places: tuple[int, ...] = ()
    share: float = 0.0


def locate_quote(quote: str, words: Sequence[str]) -> QuoteLocation:
    """Where the quote stands: letter by letter if it does so anywhere, else where most of its words are, in order.

    Args:
        quote: a text, as a reader of documents gave it.
        words: those of a page, in order.
    """
    letters = [folded(word) for word in words]
    quote_words = [word for word in map(folded, quote.split()) if word]
    if not quote_words:
        return QuoteLocation()
    exact = _exact_spots("".join(quote_words), letters)
    return exact or _nearest_spots(list(map(_direction_free, quote_words)), list(map(_direction_free, letters)))


def folded(word: str) -> str:
    """The letters and digits of a word, as they are compared: in one case, ligatures and full width undone."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", word).casefold()))


def _direction_free(word: str) -> str:
    """The word; if written from right to left, the same for it and its reverse, since some pages hold it reversed."""
    leftward = word and unicodedata.bidirectional(word[0]) in LEFTWARD
    return min(word, word[::-1]) if leftward else word


def _exact_spots(quote: str, words: Sequence[str]) -> QuoteLocation | None:
    """All of the quote, wherever the page and the quote have spaces and hyphens; it begins and ends where words do."""
    ends = list(accumulate(map(len, words)))
    page, starts = "".join(words), {0, *ends}
    position = page.find(quote)
    while position >= 0 and not (position in starts and position + len(quote) in starts):
        position = page.find(quote, position + 1)
    if position < 0:
        return None
    first, last = bisect_right(ends, position), bisect_right(ends, position + len(quote) - 1)
    return QuoteLocation(tuple(n for n in range(first, last + 1) if words[n]), 1.0)


def _nearest_spots(quote: list[str], words: Sequence[str]) -> QuoteLocation:
    start, end = _densest(Counter(quote), words, len(quote) + len(quote) // FOREIGN)
    blocks = SequenceMatcher(None, quote, words[start:end], autojunk=False).get_matching_blocks()
    places = tuple(start + block.b + n for block in blocks for n in range(block.size))
    return QuoteLocation(places, len(places) / len(quote))


def _densest(quote_counts: Counter[str], words: Sequence[str], size: int) -> tuple[int, int]:
    """The first stretch of `size` words that has the most of the quote's words, each as often as the quote has it."""
    window_counts: Counter[str] = Counter()
    best_start, best_overlap, overlap = 0, 0, 0
    for n, word in enumerate(words):
        window_counts[word] += 1
        overlap += window_counts[word] <= quote_counts[word]
        if n >= size:
            leaving_word = words[n - size]
            overlap -= window_counts[leaving_word] <= quote_counts[leaving_word]
            window_counts[leaving_word] -= 1
        if overlap > best_overlap:
            best_start, best_overlap = max(n - size + 1, 0), overlap
    return best_start, best_start + size
