"""The baselines of ITRG (its section 3.2), which no turn of a conversation uses.

Those in `BASELINES` answer; `generate` writes the text that generate-then-read answers from. As in the paper, their
prompts don't offer the word "unknown".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from threading import Event

from assistant.loops.shared.iterations import write
from assistant.protocols import Parts, Step
from assistant.strategies.shared.reading import read
from assistant.strategies.shared.reasoning import think
from assistant.types import Iteration, Query, Turn


def closed_book(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`: the question alone (vanilla LM)."""
    yield from map(_from_model, read("closed_book", turn, parts, stop))


def chain_of_thought(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `reasoning` and `answer`: the question alone, thought about first, with one example of a thought."""
    yield from map(_from_model, think("chain_of_thought", turn, parts, stop))


def retrieve_then_read(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`: the passages in one prompt, as `concat`, which may say that it doesn't know."""
    yield from read("retrieve_then_read", turn, parts, stop, passages=turn.shown)


def generate(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds one iteration whose document the model writes from its own knowledge, and `queries` with that document."""
    turn = replace(turn, iterations=(Iteration("", ()),))
    for turn in write("generate", turn, parts, stop):
        yield turn
    yield replace(turn, queries=(Query("document", f"{turn.question} {turn.document}"),))


BASELINES: Mapping[str, Step] = {
    "closed_book": closed_book,
    "chain_of_thought": chain_of_thought,
    "retrieve_then_read": retrieve_then_read,
}
# Baselines whose prompt has no passages.
WITHOUT_PASSAGES = ("closed_book", "chain_of_thought")

# Strategies and baselines that reason before they answer.
REASONING_STRATEGIES = ("chain_of_thought", "pruning", "summary")


def _from_model(turn: Turn) -> Turn:
    return replace(turn, answer=replace(turn.answer, origin="model")) if turn.answer else turn
