"""Each passage in a prompt of its own; the answer is the majority of the pool, "unknown" left out unless all are.

The k prompts go to the model as one batch (post-fusion, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant import citations
from assistant.budget import fit
from assistant.pool import elect, vote
from assistant.strategies.concat import FACTOID_ROOM
from assistant.types import Answer, Candidate, Messages, Options, Parts, Passage, Turn
from assistant.unknown import says_unknown

CHAT_ROOM = 64


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `pool`, with its votes, and `answer`."""
    turn = turn.grow(pool=vote(ask_each(turn, parts, stop), turn.choices.form, parts.embedder))
    if stop.is_set():
        yield turn
        return
    winner = elect(turn.pool, turn.choices.form, parts.embedder)
    text = winner.text if winner else "unknown"
    turn = turn.grow(answer=Answer(text, unknown=winner is None, origin="pool"))
    yield turn
    yield from citations.settle(turn, parts, stop)


def ask_each(turn: Turn, parts: Parts, stop: Event) -> list[Candidate]:
    """What each passage alone gives for an answer, in the order of the passages."""
    room = CHAT_ROOM if turn.choices.form == "chat" else FACTOID_ROOM
    prompts = [_prompt(turn, passage, parts, room) for passage in turn.shown]
    completions = parts.llm.complete(prompts, Options(max_tokens=room), stop) if prompts else []
    return [
        Candidate(completion.text.strip(), passage.id, unknown=says_unknown(completion.text))
        for passage, completion in zip(turn.shown, completions, strict=True)
    ]


def _prompt(turn: Turn, passage: Passage, parts: Parts, room: int) -> Messages:
    values = {"passage": passage, "facts": turn.used_facts, "question": turn.question}
    return fit(f"{turn.choices.form}/post_fusion", parts.llm, room, **values)[0]
