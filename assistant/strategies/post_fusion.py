"""Asks each passage in a prompt of its own; of the answers that are not unknown, the most frequent one wins.

The k prompts go to the model as one batch (post-fusion, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.judges.uncertainty import PromptedAnswer, unknown
from assistant.prompting.budget import fit
from assistant.protocols import Parts
from assistant.strategies.shared.pool import NO_ANSWER, elect, following, vote
from assistant.strategies.shared.reading import FACTOID_MAX_TOKENS
from assistant.text.sentences import finished_text, without_title
from assistant.types import Answer, Candidate, Messages, Options, Passage, Turn

TITLE = "One by one, by vote"
SUMMARY = "Asks each passage alone, and takes the answer that most of them give."
CHAT_MAX_TOKENS = 64
# How many answers of the pool may become the reply, one after the other.
SPEAKERS = 2


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `pool`, with its votes, and `answer`, its winner."""
    turn = replace(turn, pool=vote(ask_each(turn, parts, stop), turn.choices.form, parts.embedder))
    if stop.is_set():
        yield turn
        return
    speakers = _speakers(turn, parts)
    yield replace(turn, answer=Answer(speakers[0], origin="pool") if speakers else NO_ANSWER)


def retry(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - nothing more is asked
    """The answer with the most votes after the winner, used if no passage supports the winner."""
    for text in following(turn.answer, _speakers(turn, parts)):
        yield replace(turn, answer=Answer(text, origin="pool"), sentences=(), citations=())


def _speakers(turn: Turn, parts: Parts) -> list[str]:
    """The answers that may become the reply, in order: the winner of the vote, then the others by their votes.

    What says the same as the winner comes last.
    """
    winner = elect(turn.pool, turn.choices.form, parts.embedder)
    if winner is None:
        return []
    others = [candidate for candidate in turn.pool if not candidate.unknown and candidate.text != winner.text]
    others.sort(key=lambda candidate: (candidate.group == winner.group, -candidate.votes))
    return [winner.text, *(candidate.text for candidate in others)][:SPEAKERS]


def ask_each(turn: Turn, parts: Parts, stop: Event) -> list[Candidate]:
    """The answer that each passage alone gives, in the order of the passages."""
    return [candidate for candidate, _ in replies(turn, parts, stop)]


def replies(turn: Turn, parts: Parts, stop: Event) -> list[tuple[Candidate, PromptedAnswer]]:
    """The answer that each passage alone gives, in the order of the passages, and the prompt that asked for it."""
    chat_max_tokens = min(CHAT_MAX_TOKENS, parts.settings.turn.max_answer_tokens)
    max_tokens = chat_max_tokens if turn.choices.form == "chat" else FACTOID_MAX_TOKENS
    prompts = [_prompt(turn, passage, parts, max_tokens) for passage in turn.shown]
    completions = parts.llm.complete(prompts, Options(max_tokens=max_tokens), stop) if prompts else []
    triples = zip(prompts, completions, turn.shown, strict=True)
    answers = [PromptedAnswer(prompt, completion, (passage,), turn.question) for prompt, completion, passage in triples]
    unknowns = unknown(answers, turn.choices.form, parts, stop)
    return [
        (Candidate(_text(answer, turn), answer.passages[0].id, unknown=is_unknown), answer)
        for answer, is_unknown in zip(answers, unknowns, strict=True)
    ]


def _text(answer: PromptedAnswer, turn: Turn) -> str:
    return without_title(finished_text(answer.completion, turn.choices.form), answer.passages)


def _prompt(turn: Turn, passage: Passage, parts: Parts, max_tokens: int) -> Messages:
    values = {"passage": passage, "facts": turn.told_facts, "question": turn.question}
    values |= {"examples": parts.settings.turn.answer_examples}
    return fit(f"{turn.choices.form}/post_fusion", parts.llm, max_tokens, **values)[0]
