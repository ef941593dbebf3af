"""A turn as JSON for programs: the keys below are kept stable."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from assistant.types import Turn


def as_json(turn: Turn) -> dict[str, Any]:
    """The turn as plain values, in the order a person would read them. Offsets are into the passage's `text`."""
    return {
        "id": turn.id,
        "utterance": turn.utterance,
        "status": turn.status,
        "error": turn.error,
        "intent": turn.intent,
        "question": turn.question,
        "rewritten": turn.rewritten,
        "facts": [asdict(fact) for fact in turn.facts],
        "draft": turn.draft,
        "queries": [asdict(query) for query in turn.queries],
        "passages": [asdict(passage) for passage in turn.passages],
        "digests": [asdict(digest) for digest in turn.digests],
        "pool": [asdict(candidate) for candidate in turn.pool],
        "answer": asdict(turn.answer) if turn.answer else {"text": "", "unknown": True, "origin": "passages"},
        "own_answer": turn.own_answer,
        "sentences": [asdict(sentence) for sentence in turn.sentences],
        "citations": [asdict(citation) for citation in turn.citations],
        "offers": [asdict(offer) for offer in turn.offers],
        "events": list(turn.events),
        "cuts": list(turn.cuts),
        "choices": asdict(turn.choices),
        "model": turn.model,
        "timings": dict(turn.timings),
        "tokens": {
            **asdict(turn.tokens),
            "steps": {step: asdict(tokens) for step, tokens in turn.spent.items()},
        },
    }
