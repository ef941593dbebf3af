"""Answers from the model's own knowledge, without any source; the reply is labelled as such.

A small model that doesn't know a name or a number makes one up; this shows in the low probability of some word of it.
To a closed question it says yes, whatever is true. Such answers count as guesses, not as replies, and are offered
beside "not in the library" (docs/results/gates.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import exp
from threading import Event

from assistant.judges.closed import verdict_in
from assistant.prompting.stream import stream
from assistant.prompting.unknown import says_unknown
from assistant.protocols import Parts
from assistant.strategies.shared.reading import FACTOID_MAX_TOKENS
from assistant.text.markers import extract_markers
from assistant.text.overlap import contradiction, echoes
from assistant.text.sentences import finished_text, quote, sentences, words
from assistant.types import Answer, Claim, Completion, Turn

# A reply of at most this many words counts as a name or a number, whatever it looks like.
_MAX_BARE_WORDS = 3
# The `finish` of a completion that isn't complete: more is to come, or it was stopped.
_UNFINISHED = ("", "cancelled")


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds an `answer` from the model's own knowledge, which is unknown if the model doesn't know either.

    A chat answer that only repeats the question counts as unknown. So does one that the model isn't sure of; it becomes
    the turn's `own_answer`.
    """
    form = turn.choices.form
    max_tokens = parts.settings.turn.max_answer_tokens if form == "chat" else FACTOID_MAX_TOKENS
    values = {"facts": turn.told_facts, "question": turn.question}
    for turn, completion in stream(f"{form}/closed_book", turn, parts, stop, max_tokens, **values):
        if completion.read:
            yield turn
            continue
        text = finished_text(completion, form)
        is_complete = completion.finish not in _UNFINISHED
        is_unknown = is_complete and (says_unknown(text) or (form == "chat" and echoes(turn.question, text)))
        if is_unknown or form == "factoid":
            yield replace(turn, answer=Answer(text, is_unknown, "model"))
        elif is_complete and _is_guess(text, turn.question, completion, parts.settings.turn.guess_below):
            yield replace(
                turn, answer=Answer(text, unknown=True, origin="model"), own_answer=extract_markers(text).text
            )
        else:
            yield replace(turn, answer=unbacked(text))


def _is_guess(text: str, question: str, completion: Completion, threshold: float) -> bool:
    """Whether a finished answer is a guess: a yes or no, or an uncertain name or number that the question doesn't have.

    With a `threshold` of 0 no answer is a guess.
    """
    if not threshold:
        return False
    if verdict_in(Claim(text, (), question)):
        return True
    if exp(min(completion.logprobs, default=0.0)) >= threshold:
        return False
    text_sentences = (quote(text, span) for span in sentences(text))
    return len(words(text)) <= _MAX_BARE_WORDS or any(contradiction(sentence, question) for sentence in text_sentences)


def unbacked(text: str) -> Answer:
    """A chat answer without any source, and without the citation markers that the model wrote."""
    return Answer(extract_markers(text).text, origin="model", outcome="own")
