"""Passages in pieces that an encoder reads whole: what is beyond its window it passes over in silence."""

from __future__ import annotations

from collections.abc import Callable

from assistant.text.chunks import count_words
from assistant.text.sentences import quote, sentences
from assistant.types import Passage

# For what counts no tokens itself: about the 256 that encoders of the MiniLM family read.
WINDOW_WORDS = 160
# How long a text is, in the unit that a window has.
Count = Callable[[str], int]


def pieces_of(passage: Passage, window: int, count: Count = count_words) -> list[str]:
    """The texts that a passage is encoded as: itself with its title, or pieces with the title that fit a window.

    A title that would fill more than half of it is left out of the pieces.
    """
    title = passage.full_title
    whole = f"{title}\n{passage.text}"
    if count(whole) <= window:
        return [whole]
    head = f"{title}\n" if count(title) <= window // 2 else "\n"
    return [head + piece for piece in cut(passage.text, window, lambda piece: count(head + piece))]


def cut(text: str, most: int, count: Count = count_words) -> list[str]:
    """A text in pieces of at most that length, of whole sentences where these aren't longer themselves."""
    pieces = [""]
    for span in sentences(text):
        for part in _parts(quote(text, span), most, count):
            longer = f"{pieces[-1]} {part}".strip()
            if pieces[-1] and count(longer) > most:
                pieces.append(part)
            else:
                pieces[-1] = longer
    return pieces


def _parts(sentence: str, most: int, count: Count) -> list[str]:
    """The sentence whole; its words where it runs on for longer, such as a table, and parts of those."""
    if count(sentence) <= most:
        return [sentence]
    return [part for word in sentence.split() for part in _halved(word, most, count)]


def _halved(word: str, most: int, count: Count) -> list[str]:
    if count(word) <= most or len(word) == 1:
        return [word]
    middle = len(word) // 2
    return [*_halved(word[:middle], most, count), *_halved(word[middle:], most, count)]
