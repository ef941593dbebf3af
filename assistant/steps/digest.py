"""Shortens each passage to what the model will read of it: its best sentences, or a summary of these.

The summary is made without the question.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Event

from assistant.errors import ModelError
from assistant.prompting.budget import fit
from assistant.prompting.render import render
from assistant.prompting.sentence_selection import best_sentences, likeliest_sentences
from assistant.protocols import Parts
from assistant.settings import Settings
from assistant.text.sentences import finished_text, sentences, whole_sentences
from assistant.types import Digest, Options, Passage, Turn

_LOG = logging.getLogger(__name__)
_MAX_TOKENS = 100
_MOST_SENTENCES = 3


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `digests`, one for each passage, in the order of the passages (GRG, sections 2.2.3 and 2.2.5).

    If the summarising model can't be loaded, an event says why, and the best sentences are used as they are. Without a
    working relevance estimator, Sentence-BERT chooses the sentences.
    """
    knobs = parts.settings.turn
    digests = (_likeliest(turn, parts, stop) if knobs.digest == "relevant" else ()) or best_sentences(
        turn.passages, turn.contextual, parts.embedder, knobs.max_digest_chars, knobs.digest_order
    )
    shortened = [replace(passage, text=digest.text) for passage, digest in zip(turn.passages, digests, strict=True)]
    if knobs.digest == "llm":
        digests = _replaced(digests, _by_chat(shortened, parts, stop))
    elif knobs.digest == "seq2seq" and not stop.is_set():
        try:
            digests = _replaced(digests, _by_seq2seq(shortened, parts.settings, stop))
        except ModelError as error:
            turn = turn.with_event("summary_failed", error)
    yield replace(turn, digests=digests)


def _likeliest(turn: Turn, parts: Parts, stop: Event) -> tuple[Digest, ...]:
    """The sentences that most likely answer, by the relevance estimator; none without a working estimator.

    It is asked twice: about the question alone, and about the question with the used facts.
    """
    if parts.estimator is None or not turn.passages or stop.is_set():
        return ()
    questions, knobs = list(dict.fromkeys((turn.question, turn.contextual))), parts.settings.turn
    try:
        estimator = parts.estimator(parts.llm)
        return likeliest_sentences(
            turn.passages, questions, estimator, knobs.max_context_chars, stop, knobs.digest_order
        )
    except Exception:  # noqa: BLE001 - a model may fail in any way, and Sentence-BERT can rank instead
        _LOG.exception("the relevance estimator failed")
        return ()


def _by_chat(passages: Sequence[Passage], parts: Parts, stop: Event) -> list[str]:
    prompts = [fit("digest", parts.llm, _MAX_TOKENS, passage=passage)[0] for passage in passages]
    return [
        finished_text(reply, "chat") for reply in parts.llm.complete(prompts, Options(max_tokens=_MAX_TOKENS), stop)
    ]


def _by_seq2seq(passages: Sequence[Passage], settings: Settings, stop: Event) -> list[str]:
    """Summaries by a model that was trained to summarise, which by default is given the passage without a prompt.

    Raises:
        ModelError: the model can't be loaded.
    """
    from assistant.llm.summariser import load  # noqa: PLC0415 - torch

    prompts = [render("digest", passage=passage) for passage in passages]
    message_lists = prompts if settings.turn.summariser_prompted else [prompt[-1:] for prompt in prompts]
    texts = ["\n\n".join(message.content for message in messages) for messages in message_lists]
    return [whole_sentences(text) for text in load(settings).summarise(texts, _MAX_TOKENS, stop)]


def _replaced(digests: Sequence[Digest], summaries: Sequence[str]) -> tuple[Digest, ...]:
    """The digests with these summaries, each cut to its first sentences; an empty summary leaves a digest as it is."""
    return tuple(
        replace(digest, text=_first_sentences(summary) or digest.text)
        for digest, summary in zip(digests, summaries, strict=True)
    )


def _first_sentences(text: str) -> str:
    spans = sentences(text)[:_MOST_SENTENCES]
    return text[: spans[-1].end].strip() if spans else ""
