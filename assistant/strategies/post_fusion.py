"""Each passage in a prompt of its own; the answer is the majority of the pool, "unknown" left out unless all are.

The k prompts go to the model as one batch (post-fusion, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.judges.uncertainty import Asked, unknown
from assistant.prompting.budget import fit
from assistant.protocols import Parts
from assistant.strategies.shared.pool import NO_ANSWER, elect, following, vote
from assistant.strategies.shared.reading import FACTOID_ROOM
from assistant.text.sentences import finished, without_title
from assistant.types import Answer, Candidate, Messages, Options, Passage, Turn

TITLE = "One by one, by vote"
SUMMARY = "Asks each passage alone, and takes the answer that most of them give."
CHAT_ROOM = 64
# Answers of the pool that may be the reply, one after the other.
SPEAKERS = 2


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `pool`, with its votes, and `answer`, its winner."""
    turn = replace(turn, pool=vote(ask_each(turn, parts, stop), turn.choices.form, parts.embedder))
    if stop.is_set():
        yield turn
        return
    speakers = _speakers(turn, parts)
    yield replace(turn, answer=Answer(speakers[0], origin="pool") if speakers else NO_ANSWER)


def retry(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - everybody was asked already
    """The answer with most votes but the winner, where no passage says what that says."""
    for text in following(turn.answer, _speakers(turn, parts)):
        yield replace(turn, answer=Answer(text, origin="pool"))


def _speakers(turn: Turn, parts: Parts) -> list[str]:
    """The answers that may be the reply, in order: the winner of the vote, then those with most votes."""
    winner = elect(turn.pool, turn.choices.form, parts.embedder)
    if winner is None:
        return []
    others = [one for one in turn.pool if not one.unknown and one.text != winner.text]
    return [winner.text, *(one.text for one in sorted(others, key=lambda one: -one.votes))][:SPEAKERS]


def ask_each(turn: Turn, parts: Parts, stop: Event) -> list[Candidate]:
    """What each passage alone gives for an answer, in the order of the passages."""
    return [candidate for candidate, _ in replies(turn, parts, stop)]


def replies(turn: Turn, parts: Parts, stop: Event) -> list[tuple[Candidate, Asked]]:
    """What each passage alone gives for an answer, in the order of the passages, and how it was asked."""
    most = min(CHAT_ROOM, parts.settings.turn.max_answer_tokens)
    room = most if turn.choices.form == "chat" else FACTOID_ROOM
    prompts = [_prompt(turn, passage, parts, room) for passage in turn.shown]
    completions = parts.llm.complete(prompts, Options(max_tokens=room), stop) if prompts else []
    given = zip(prompts, completions, turn.shown, strict=True)
    asked = [Asked(prompt, completion, (passage,), turn.question) for prompt, completion, passage in given]
    lost = unknown(asked, turn.choices.form, parts, stop)
    return [
        (Candidate(_text(one, turn), one.passages[0].id, unknown=is_lost), one)
        for one, is_lost in zip(asked, lost, strict=True)
    ]


def _text(asked: Asked, turn: Turn) -> str:
    return without_title(finished(asked.completion, turn.choices.form), asked.passages)


def _prompt(turn: Turn, passage: Passage, parts: Parts, room: int) -> Messages:
    values = {"passage": passage, "facts": turn.told_facts, "question": turn.question}
    values |= {"examples": parts.settings.turn.answer_examples}
    return fit(f"{turn.choices.form}/post_fusion", parts.llm, room, **values)[0]
