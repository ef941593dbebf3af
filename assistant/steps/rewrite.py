"""Makes a follow-up stand alone: "What's so great about the 3rd one?" names what it is about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import Event

from assistant.budget import fit
from assistant.steps.history import recent
from assistant.types import Options, Parts, Turn

# A rewrite that grew beyond this is an answer, not a question.
_LONGEST = 3.0
_ROOM = 60
# Small models take "And bread?" for the same question once more; "What about bread?" they repeat as it is.
_ABOUT = re.compile(r"^(?:what|how) about\b", re.IGNORECASE)


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `question`. A first utterance is its own question; a rewrite that went wrong is not used."""
    if not turn.history:
        yield turn.grow(question=turn.utterance)
        return
    history = recent(turn.history, exchanges=3, chars=400)
    messages, cuts = fit("rewrite", parts.llm, _ROOM, history=history, utterance=_ABOUT.sub("And", turn.utterance))
    [completion] = parts.llm.complete([messages], Options(max_tokens=_ROOM, stop=("\n",)), stop)
    question = _question(completion.text, turn.utterance)
    yield turn.grow(question=question, rewritten=question != turn.utterance, cuts=turn.cuts + cuts)


def _question(written: str, utterance: str) -> str:
    written = written.strip().removeprefix("A:").strip().strip('"')
    too_long = len(written) > max(_LONGEST * len(utterance), len(utterance) + 160)
    return utterance if not written or too_long else written
