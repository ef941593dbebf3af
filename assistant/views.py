"""Views of a turn: as JSON for programs, whose keys are kept stable, and as one line for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from assistant.types import Turn

# What a running step does, for a person who waits.
DOING = {
    "facts": "Looking at your facts",
    "intent": "Looking at your facts",
    "glance": "Looking for first sources",
    "question": "Working out the question",
    "passages": "Searching the library",
    "draft": "Thinking of what to look for",
    "document": "Writing down what was found",
    "quality": "Judging the passages",
    "digests": "Reading the passages",
    "answer": "Writing the answer",
    "fallback": "Asking each passage alone",
    "citations": "Checking every sentence",
    "admit": "Checking every sentence",
    "offers": "Checking every sentence",
}


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
        "iterations": [asdict(iteration) for iteration in turn.iterations],
        "queries": [asdict(query) for query in turn.queries],
        "passages": [asdict(passage) for passage in turn.passages],
        "dropped": [asdict(one) for one in turn.dropped],
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


def headline(turn: Turn) -> str:
    """One line on what a turn does, or did: "Read 4 passages, used 2 facts, 14 s"."""
    if turn.status == "running":
        return DOING.get(turn.step, "Thinking")
    seconds = f"{turn.seconds:.0f} s" if turn.seconds >= 1 else f"{turn.seconds:.1f} s"
    if turn.intent != "question":
        return f"Answered without the library, {seconds}"
    read, used = len(turn.passages), len(turn.used_facts)
    stopped = "Stopped. " if turn.status == "stopped" else ""
    return f"{stopped}Read {_count(read, 'passage')}, used {_count(used, 'fact')}, {seconds}"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
