"""Searches for several queries and fuses their rankings."""

from __future__ import annotations

from dataclasses import replace
from string import punctuation

from assistant.protocols import Parts
from assistant.retrieve.fusion import fuse
from assistant.text.overlap import coverage
from assistant.text.sentences import with_usa
from assistant.types import Query, Turn


def search_text(turn: Turn) -> str:
    """The query for the turn's question, with the message before it if the rewritten question lost words of it.

    Otherwise the message is left out: words of both would count twice, and outweigh the one that replaced "there".
    The pronoun "us", which Lucene takes for the US, is left out as well.
    """
    message = turn.rest or turn.utterance
    words_lost = turn.rewritten and coverage(with_usa(message), turn.question) < 1
    text = f"{message} {turn.question}" if words_lost else turn.question
    return " ".join(word for word in text.split(" ") if word.strip(punctuation) != "us")


def search_and_fuse(turn: Turn, parts: Parts, *queries: Query) -> Turn:
    """The turn with these `queries`, and with the best `passages` of their fused rankings."""
    knobs = parts.settings.retrieve
    rankings = {query.name: parts.retriever.search(query.text, knobs.fusion_depth) for query in queries}
    return replace(turn, queries=queries, passages=tuple(fuse(rankings, turn.choices.k, knobs.rrf_k)))
