"""Cuts documents into passages of about 100 words, at paragraphs where possible and never inside a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from assistant.text.sentences import quote, sentences
from assistant.types import full_title

# A paragraph's end closes a chunk from this many words on; no sentence is added beyond the second number.
MIN_CHUNK_WORDS = 70
MAX_CHUNK_WORDS = 120
# What runs on for longer than this is no sentence but a table or a blob, and is cut between words.
MAX_SENTENCE_WORDS = 240
# In a line of more characters no sentences are looked for: it is no prose, and that takes a second for each 150,000.
LINE_CHARS = 100_000
# Scripts without spaces have no words to count; this many characters count as one at least.
WORD_CHARS = 8


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document as a reader gives it: a paragraph, or a record that is a passage of its own.

    `title` is the document's, and `heading` that of the section, with those around it ("Care > Cleaning"); `place` says
    where in the document it is ("page 3"), and `page` which page of a PDF that is, from 1; `id` is the record's own. A
    `unit` is kept whole where a chunk can hold it, such as a term with its definition, or a list; `by` says how it was
    read where that is no matter of course.
    """

    text: str
    title: str
    place: str = ""
    id: str = ""
    page: int = 0
    heading: str = ""
    unit: bool = False
    by: str = ""

    @property
    def full_title(self) -> str:
        """The document's title with the heading."""
        return full_title(self.title, self.heading)


def count_words(text: str) -> int:
    """How many words long `text` is, also in scripts that put no spaces between them."""
    return max(len(text.split()), len(text) // WORD_CHARS)


def chunk(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks, joined and cut to 40-120 words where their sentences allow it.

    Blocks of one section and id that were read alike are cut together; the place of a chunk is where it begins.
    Paragraphs stay apart by a line break. A record of up to 120 words comes out as it went in.
    """
    for _, group in groupby(blocks, key=lambda block: (block.title, block.heading, block.id, block.by)):
        paragraphs = [block for block in group if block.text.strip()]
        if paragraphs:
            yield from _chunks(paragraphs)


def _chunks(paragraphs: list[Block]) -> Iterator[Block]:
    if len(paragraphs) == 1 and count_words(paragraphs[0].text) <= MAX_CHUNK_WORDS:
        yield replace(paragraphs[0], text=paragraphs[0].text.strip())
        return
    current, words = Block("", ""), 0
    for paragraph in paragraphs:
        for n, (sentence, glue) in enumerate(_glued_sentences(paragraph.text)):
            is_inside_unit = paragraph.unit and n > 0
            sentence_words = count_words(sentence)
            room = count_words(paragraph.text) if paragraph.unit and n == 0 else sentence_words
            full = words + room > MAX_CHUNK_WORDS or (glue == "\n" and words >= MIN_CHUNK_WORDS and not is_inside_unit)
            if words and full:
                yield current
                words = 0
            current = (
                replace(current, text=current.text + glue + sentence) if words else replace(paragraph, text=sentence)
            )
            words += sentence_words
    if words:
        yield current


def _glued_sentences(text: str) -> Iterator[tuple[str, str]]:
    """The sentences, each with what stands before it: a line break, or a space if it isn't the first of its line."""
    for line in text.split("\n"):
        yield from ((sentence, " " if n else "\n") for n, sentence in enumerate(_sentences(line)))


def _sentences(text: str) -> Iterator[str]:
    if len(text) > LINE_CHARS:
        yield from _cut(text)
        return
    for span in sentences(text):
        sentence = quote(text, span)
        if count_words(sentence) <= MAX_SENTENCE_WORDS:
            yield sentence
        else:
            yield from _cut(sentence)


def _cut(text: str) -> Iterator[str]:
    """The text in pieces as long as a long sentence, cut between words where there are any."""
    max_chars, start = MAX_SENTENCE_WORDS * WORD_CHARS // 2, 0
    while start < len(text):
        end = start + max_chars
        space = text.rfind(" ", start + 1, end + 1) if end < len(text) else -1
        end = space if space > 0 else end
        if piece := text[start:end].strip():
            yield piece
        start = end
