"""How long a turn takes and what for: first source, first word, whole turn, tokens, the model's share, memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from threading import Event
from time import perf_counter
from typing import Any

from assistant import turn as flow
from assistant.llm.meter import Meter
from assistant.protocols import Parts
from assistant.types import (
    Choices,
    Exchange,
    Fact,
    Turn,
    new_id,
    now,
)
from benchmarks.peak import peak_bytes

FACTS = ("I'm vegetarian.", "I'm lactose intolerant.", "I live in Bergen, Norway.", "I run three times a week.")
CAPITAL = Exchange("What is the capital of Sweden?", "What is the capital of Sweden?", "The capital is Stockholm.")
# Real questions: the starter library, personal facts, follow-ups, one that the library does not hold.
QUESTIONS: tuple[tuple[str, tuple[Exchange, ...]], ...] = (
    ("What is a good diet?", ()),
    ("Which languages are spoken in Switzerland?", ()),
    ("How much protein do I need, and where do I get it?", ()),
    ("How long is the coastline of Norway?", ()),
    ("How can I fall asleep faster?", ()),
    ("What does Chile export?", ()),
    ("How many people live there?", (CAPITAL,)),
    ("How should I start saving money?", ()),
    ("What should I eat before a run?", ()),
    ("Who won the football World Cup in 2022?", ()),
    ("What is the climate of Kenya?", ()),
    ("How do I remember what I study?", ()),
)


@dataclass(frozen=True, slots=True)
class Timing:
    """One turn. Times in seconds from the moment the question was sent; `share` is the part spent inside the LLM.

    `first_source` and `first_word` are -1 where there was none.
    """

    question: str
    first_source: float
    first_word: float
    whole: float
    share: float
    prompt_tokens: int
    completion_tokens: int
    steps: dict[str, float]
    tokens: dict[str, dict[str, int]]


def bench(
    parts: Parts, choices: Choices, each: Callable[[Timing], None] = lambda _: None, limit: int = len(QUESTIONS)
) -> list[Timing]:
    """Ask the first `limit` of `QUESTIONS` once, in order; `each` sees every timing as it is taken."""
    timings = []
    for question, history in QUESTIONS[:limit]:
        timings.append(timed(question, history, parts, choices))
        each(timings[-1])
    return timings


def medians(timings: Sequence[Timing]) -> dict[str, float]:
    """The median of each measure, over the turns that have it; -1 where none has."""
    names = ("first_source", "first_word", "whole", "share", "prompt_tokens", "completion_tokens")
    return {name: median([getattr(t, name) for t in timings if getattr(t, name) >= 0] or [-1]) for name in names}


def peak_memory() -> float:
    """The most memory this process has held, in GB (10^9 bytes)."""
    return peak_bytes() / 1e9


def timed(question: str, history: tuple[Exchange, ...], parts: Parts, choices: Choices) -> Timing:
    """Ask one question, behind what was said before it."""
    meter = Meter(parts.llm)
    known = tuple(Fact(new_id(), text, now(), now()) for text in FACTS)
    turn = Turn(question, history, known, choices)
    first_source = first_word = -1.0
    start = perf_counter()
    for turn in flow.run(turn, replace(parts, llm=meter), Event()):
        if first_source < 0 and turn.passages:
            first_source = perf_counter() - start
        if first_word < 0 and turn.answer and turn.answer.text:
            first_word = perf_counter() - start
    whole = perf_counter() - start
    spent: dict[str, Any] = {step: asdict(tokens) for step, tokens in turn.spent.items()}
    tokens = turn.tokens
    return Timing(
        question, first_source, first_word, whole, meter.seconds / whole, tokens.prompt, tokens.completion,
        dict(turn.timings), spent,
    )  # fmt: skip
