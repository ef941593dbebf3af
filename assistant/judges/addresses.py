"""Addresses: is this a reply to what was asked, and is it what the text tells?

A sentence can stand in a passage word for word and still answer another question, and a small model says "yes" where
its passage says "no". The language model sees neither while it writes, but mostly does when it is shown its own reply
beside the text and asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

from assistant.prompt import render
from assistant.text import around, quote
from assistant.types import LLM, Citation, Passage, Span, Turn

# Words of each cited passage that are shown around what was quoted from it, and passages at most.
WORDS, MOST = 80, 3


def addressed(turn: Turn, reply: str, llm: LLM, stop: Event) -> float:
    """How likely the reply answers the turn's question as its citations tell, in [0, 1]."""
    messages = render(
        "addresses", evidence=evidence(turn.citations, turn.passages), question=turn.question, reply=reply
    )
    [choice] = llm.choose([messages], ("yes", "no"), stop)
    return choice.probabilities["yes"]


def evidence(citations: Sequence[Citation], passages: Sequence[Passage]) -> str:
    """What the cited passages say around the first quotation from each."""
    first = {one.passage_id: one for one in reversed(citations)}
    shown = [passage for passage in passages if passage.id in first][:MOST]
    return " ".join(_stretch(passage, first[passage.id]) for passage in shown)


def _stretch(passage: Passage, cited: Citation) -> str:
    span = around(passage.text, Span(cited.start, cited.end), WORDS)
    return f"{passage.title}: {quote(passage.text, span)}" if passage.title else quote(passage.text, span)
