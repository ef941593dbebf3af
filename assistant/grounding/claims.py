"""Splits a reply into sentences, and finds those that make a claim, which a passage could support."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assistant.text.markers import BLOCK, INLINE
from assistant.text.sentences import sentences
from assistant.types import Span

# The most words of a bare phrase; scripts without spaces between words have about two characters a word.
_MAX_PHRASE_WORDS = 2
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def segments(text: str) -> list[Span]:
    """The sentences of a reply. None ends within code, since a marker there would become a part of the code.

    A code block counts as one sentence.
    """
    blocks = [Span(*match.span()) for match in BLOCK.finditer(text)]
    outside = (
        span
        for span in _sentences(text)
        if not any(span.start < block.end and block.start < span.end for block in blocks)
    )
    return sorted((*blocks, *outside), key=lambda span: span.start)


def _sentences(text: str) -> list[Span]:
    code = [match.span() for match in INLINE.finditer(text)]
    spans = list[Span]()
    for span in sentences(text):
        is_within_code = any(start < span.start < end for start, end in code)
        begin = spans.pop().start if is_within_code and spans else span.start
        spans.append(Span(begin, span.end))
    return spans


def is_claim(sentence: str) -> bool:
    """Whether a sentence says something that a passage could support: not a question, a heading or a bare phrase."""
    return _is_statement(sentence) and (
        len(sentence.split()) > _MAX_PHRASE_WORDS or len(_UNSPACED.findall(sentence)) > 2 * _MAX_PHRASE_WORDS
    )


def claims(texts: Sequence[str]) -> list[str]:
    """The texts that are claims, and "" for the others; if there are only bare phrases, these count as claims."""
    claim_texts = [text if is_claim(text) else "" for text in texts]
    return claim_texts if any(claim_texts) else [text if _is_statement(text) else "" for text in texts]


def _is_statement(sentence: str) -> bool:
    return not sentence.rstrip("*_ ").endswith(("?", ":"))
