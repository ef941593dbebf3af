"""Puts facts in play that rule out what was found: "I have coeliac disease" where the passages speak of bread.

The words of a fact are often far from what it rules out, so that its relevance to the question is small. Where a
passage offers something that clashes with a fact, by the judge of suitability, the fact matters all the same, and the
model is told of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.errors import SequiturError
from assistant.protocols import Parts
from assistant.text.sentences import quote, sentences
from assistant.types import Turn


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Marks in `facts` as used those that clash with a sentence of `digests`.

    Where the judge can't be used nothing is marked; the next step, which asks it the same, says why.
    """
    judge, idle = parts.suitability, [fact.text for fact in turn.facts if not fact.used]
    if not idle or judge is None or not parts.settings.facts.constraints or stop.is_set():
        yield turn
        return
    texts = [quote(digest.text, span) for digest in turn.digests for span in sentences(digest.text)]
    try:
        rows = judge.clashes(idle, texts, stop)
    except SequiturError:
        yield turn
        return
    clashing = {fact for fact, row in zip(idle, rows, strict=True) if max(row, default=0.0) >= judge.threshold}
    yield replace(turn, facts=tuple(replace(fact, used=fact.used or fact.text in clashing) for fact in turn.facts))
