"""The texts that stand for a passage in dense retrieval, each with a vector of its own, of which the best counts.

They are pieces that fit the encoder's window, beyond which it silently ignores text; by `BySentences` the passage's
sentences as well.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from assistant.protocols import Embedder
from assistant.retrieve.encoded import key_of
from assistant.text.chunks import count_words
from assistant.text.sentences import quote, sentences
from assistant.types import Passage

# For encoders that don't count tokens: about the 256 tokens that encoders of the MiniLM family read.
WINDOW_WORDS = 160
# Gives the length of a text in the unit of the window.
Count = Callable[[str], int]


@runtime_checkable
class Encoder(Embedder, Protocol):
    """An `Embedder` that knows what it is for. Passages beyond its window are encoded in pieces; the best one counts.

    Its vectors may have any length.
    """

    @property
    def window(self) -> int:
        """How many tokens of a text it reads, its own marks included."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text, its own marks included."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimension), in the space of the passages that `encode` encodes."""
        ...


class BySentences:
    """An `Encoder` by which a passage is found by each of its sentences as well as whole.

    A lease or a manual says much in few words, and its vector is hardly near to a question about one of them
    (docs/results/documents.md). The name is its own, since what it indexes has other vectors.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.name = f"{embedder.name} by sentences"
        self.window, self.count = _limits(embedder)
        self._embedder = embedder

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimension)."""
        return self._embedder.encode(texts)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimension)."""
        return encoded_queries(self._embedder, texts)


def encoded_queries(embedder: Embedder, queries: Sequence[str]) -> NDArray[np.float32]:
    """Shape (len(queries), dimension), in the space of the passages."""
    return embedder.encode_queries(queries) if isinstance(embedder, Encoder) else embedder.encode(queries)


def texts_of(passage: Passage, embedder: Embedder, known_keys: Container[str] = ()) -> list[str]:
    """The texts to encode for a passage. `known_keys` are those of texts that were encoded before."""
    window, count = _limits(embedder)
    full_text = f"{passage.full_title}\n{passage.text}"
    # what was encoded whole before needs no counting, which takes a tenth as long as encoding does
    texts = [full_text] if key_of(full_text) in known_keys else pieces_of(passage, window, count)
    spans = sentences(passage.text) if isinstance(embedder, BySentences) else []
    if len(spans) < 2:
        return texts
    return [*texts, *(piece for span in spans for piece in text_pieces(quote(passage.text, span), window, count))]


def _limits(embedder: Embedder) -> tuple[int, Count]:
    return (embedder.window, embedder.count) if isinstance(embedder, Encoder) else (WINDOW_WORDS, count_words)


def pieces_of(passage: Passage, window: int, count: Count = count_words) -> list[str]:
    """The texts to encode for a passage: title and text, or pieces of the text with the title, each within the window.

    A title that would fill more than half of the window is left out of the pieces.
    """
    title = passage.full_title
    full_text = f"{title}\n{passage.text}"
    if count(full_text) <= window:
        return [full_text]
    head = f"{title}\n" if count(title) <= window // 2 else "\n"
    return [head + piece for piece in text_pieces(passage.text, window, lambda piece: count(head + piece))]


def text_pieces(text: str, window: int, count: Count = count_words) -> list[str]:
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
