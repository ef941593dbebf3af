"""Quotes the sentence of the passages that answers the question, where the model's own words were no answer.

A small model may misread a passage; a quotation can't. The relevance estimator ranks the sentences. Its estimate of the
best one, together with the judge of support, which reads that sentence alone as a reply to the question, decides
whether it answers: both together decide better than either, and better than a second look of the language model
(docs/results/support.md). A quotation needs no other check, since it is what the passage says.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Event

from assistant.grounding.citations import with_citations
from assistant.grounding.evidence import nearest_evidence
from assistant.grounding.support import Finding
from assistant.judges.addresses import mean_of_log_odds
from assistant.protocols import Embedder, Estimator, Parts, SupportJudge
from assistant.settings import TurnSettings
from assistant.steps.answer import is_from_passages
from assistant.strategies.shared.strategy import is_unanswered
from assistant.text.sentences import quote, sentences
from assistant.types import Answer, Claim, Passage, Span, Turn, Verdict

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Quotable:
    """A sentence as a passage of its own, the id of the passage it is from, and how likely it answers.

    That is a probability by the estimator, and one by the judge of support.
    """

    passage: Passage
    source_id: str
    relevance: float
    support: float | None = None

    @property
    def likely(self) -> float:
        """Both probabilities combined, in (0, 1)."""
        return mean_of_log_odds(self.relevance, *([] if self.support is None else [self.support]))


def is_due(turn: Turn, parts: Parts) -> bool:
    """Whether a chat turn was to be answered from its passages, and its answer is unknown so far."""
    return is_unanswered(turn) and turn.choices.form == "chat" and is_from_passages(turn, parts)


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds the most relevant sentence as the `answer`, if it is likely enough to answer.

    That is from `turn.quote_threshold` on, and for a document of the person's own from `turn.own_quote_threshold` on.
    """
    best = _best(turn, parts, stop)
    knobs = parts.settings.turn
    if best is None or stop.is_set() or best.likely < _threshold(best, knobs):
        yield turn
        return
    yield _quoted(turn, best, parts.embedder).with_event("quoted")


def best_sentence(
    question: str, passages: Sequence[Passage], estimator: Estimator, judge: SupportJudge | None, stop: Event
) -> Quotable | None:
    """The sentence that the estimator finds most relevant; None if there is no sentence, or `stop` was set.

    Raises:
        SequiturError: a judge can't be used; one that fails may raise anything.
    """
    candidates = [
        (passage.id, replace(passage, id=f"{passage.id} {n}", text=quote(passage.text, span)))
        for passage in passages
        for n, span in enumerate(sentences(passage.text))
    ]
    estimates = estimator.estimate(question, [sentence for _, sentence in candidates], stop)
    best = max(zip(estimates, candidates, strict=True), key=lambda pair: pair[0].score, default=None)
    if best is None or stop.is_set():
        return None
    relevance, (source_id, sentence) = best
    if judge is None:
        return Quotable(sentence, source_id, relevance.confidence)
    [verdict] = judge.judge([Claim(sentence.text, (sentence,), question)], stop)
    return Quotable(sentence, source_id, relevance.confidence, verdict.probability)


def _threshold(best: Quotable, knobs: TurnSettings) -> float:
    return knobs.own_quote_threshold if best.passage.own else knobs.quote_threshold


def _quoted(turn: Turn, best: Quotable, embedder: Embedder) -> Turn:
    """The turn with the sentence as its answer, cited where it stands.

    The judge of support isn't asked again, beside the whole passage: the passage says it, word for word.
    """
    text = best.passage.text
    source = [passage for passage in turn.passages if passage.id == best.source_id]
    [evidence] = nearest_evidence([text], source, [frozenset()], embedder)
    finding = Finding(tuple(evidence), Verdict(best.likely, "supported"))
    answer = replace(turn, answer=Answer(text), sentences=(), citations=())
    return with_citations(answer, text, [Span(0, len(text))], [finding])


def _best(turn: Turn, parts: Parts, stop: Event) -> Quotable | None:
    if parts.estimator is None or stop.is_set():
        return None
    try:
        judge = parts.support(parts.llm) if parts.support else None
        return best_sentence(turn.question, turn.shown, parts.estimator(parts.llm), judge, stop)
    except Exception:  # noqa: BLE001 - a model may fail in any way, and the turn goes on without this one
        _LOG.exception("no sentence could be looked for")
        return None
