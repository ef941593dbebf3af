"""Searches for several queries and fuses what they find."""

from __future__ import annotations

from dataclasses import replace
from string import punctuation

from assistant.protocols import Parts
from assistant.retrieve.fusion import fuse
from assistant.text.overlap import coverage
from assistant.text.sentences import in_full
from assistant.types import Query, Turn


def search_text(turn: Turn) -> str:
    """What is searched for: a follow-up as it was meant, and as it was said as well where the rewrite lost words.

    Words of both would count twice otherwise, and hide the one that was put in for "there". The pronoun "us", which is
    the US to Lucene, is left out.
    """
    lost = turn.rewritten and coverage(in_full(turn.utterance), turn.question) < 1
    text = f"{turn.utterance} {turn.question}" if lost else turn.question
    return " ".join(word for word in text.split(" ") if word.strip(punctuation) != "us")


def search_and_fuse(turn: Turn, parts: Parts, *queries: Query) -> Turn:
    """The turn with these `queries`, and the `passages` that they found together, the best first."""
    knobs = parts.settings.retrieve
    rankings = {query.name: parts.retriever.search(query.text, knobs.fusion_depth) for query in queries}
    return replace(turn, queries=queries, passages=tuple(fuse(rankings, turn.choices.k, knobs.rrf_k)))
