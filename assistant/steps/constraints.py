"""Marks facts as used if they rule out something in the passages: "I have coeliac disease" if these mention bread.

Such a fact often shares no words with what it rules out, so that its relevance to the question is low. If the judge of
suitability finds that a passage clashes with the fact, the fact matters all the same, and the model is given it.
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
    """Marks those `facts` as used that clash with a sentence of `digests`.

    If the judge can't be used, nothing is marked; the next step asks it the same and adds the event that says why.
    """
    judge, unused_facts = parts.suitability, [fact.text for fact in turn.facts if not fact.used]
    if not unused_facts or judge is None or not parts.settings.facts.constraints or stop.is_set():
        yield turn
        return
    texts = [quote(digest.text, span) for digest in turn.digests for span in sentences(digest.text)]
    try:
        rows = judge.clashes(unused_facts, texts, stop, turn.question)
    except SequiturError:
        yield turn
        return
    clashing_facts = {
        fact for fact, row in zip(unused_facts, rows, strict=True) if max(row, default=0.0) >= judge.threshold
    }
    yield replace(
        turn, facts=tuple(replace(fact, used=fact.used or fact.text in clashing_facts) for fact in turn.facts)
    )
