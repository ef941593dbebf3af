"""Cuts passages into pieces that fit an encoder's window, beyond which it silently ignores text."""

from __future__ import annotations

from collections.abc import Callable

from assistant.text.chunks import count_words
from assistant.text.sentences import quote, sentences
from assistant.types import Passage

# For encoders that don't count tokens: about the 256 tokens that encoders of the MiniLM family read.
WINDOW_WORDS = 160
# Gives the length of a text in the unit of the window.
Count = Callable[[str], int]


def pieces_of(passage: Passage, window: int, count: Count = count_words) -> list[str]:
    """The texts to encode for a passage: title and text, or pieces of the text with the title, each within the window.

    A title that would fill more than half of the window is left out of the pieces.
    """
    title = passage.full_title
    whole = f"{title}\n{passage.text}"
    if count(whole) <= window:
        return [whole]
    head = f"{title}\n" if count(title) <= window // 2 else "\n"
    return [head + piece for piece in cut(passage.text, window, lambda piece: count(head + piece))]


def cut(text: str, window: int, count: Count = count_words) -> list[str]:
    """The text in pieces that fit the window, made of whole sentences unless a sentence is longer itself."""
    pieces = [""]
    for span in sentences(text):
        for part in _parts(quote(text, span), window, count):
            longer = f"{pieces[-1]} {part}".strip()
            if pieces[-1] and count(longer) > window:
                pieces.append(part)
            else:
                pieces[-1] = longer
    return pieces


def _parts(sentence: str, window: int, count: Count) -> list[str]:
    """The sentence, or its words if it is too long, such as a table, or parts of these."""
    if count(sentence) <= window:
        return [sentence]
    return [part for word in sentence.split() for part in _halved(word, window, count)]


def _halved(word: str, window: int, count: Count) -> list[str]:
    if count(word) <= window or len(word) == 1:
        return [word]
    middle = len(word) // 2
    return [*_halved(word[:middle], window, count), *_halved(word[middle:], window, count)]
