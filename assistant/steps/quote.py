"""Quotes the sentence of the passages that answers the question, where the model's own words were no better answer.

A small model may misread a passage; a quotation can't. The relevance estimator ranks the sentences. Its estimate of the
best one, together with the judge of support, which reads that sentence alone as a reply to the question, decides
whether it answers: both together decide better than either, and better than a second look of the language model. Of a
person's own documents, which are unlike the encyclopedias that the estimator learned from, the judge alone decides
(docs/results/support.md). A quotation needs no other check, since it is what the passage says.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Event

from assistant.grounding.citations import with_citations
from assistant.grounding.evidence import Evidence
from assistant.grounding.support import Finding
from assistant.judges.addresses import mean_of_log_odds
from assistant.protocols import Estimator, Parts, SupportJudge
from assistant.steps import cite
from assistant.steps.answer import is_from_passages
from assistant.strategies.shared.strategy import is_unanswered
from assistant.text.markers import extract_markers
from assistant.text.sentences import quote, sentences
from assistant.types import Answer, Claim, EventCode, Passage, Span, Turn, Verdict

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
        """How likely it answers, in (0, 1): by both together, or by the judge alone for one's own documents."""
        if self.support is None:
            return mean_of_log_odds(self.relevance)
        return mean_of_log_odds(*([] if self.passage.own else [self.relevance]), self.support)


def is_due(turn: Turn, parts: Parts) -> bool:
    """Whether a chat turn was to be answered from its passages, and its answer is unknown so far or has a rival."""
    return turn.choices.form == "chat" and is_from_passages(turn, parts) and (is_unanswered(turn) or _has_rival(turn))


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds the most relevant sentence as the `answer`, if it is likely enough to answer (`turn.quote_threshold`).

    An answer in the model's own words only makes way for a likelier one from the person's own documents.
    """
    best = _best_quotable(turn, parts, stop)
    if best is None or stop.is_set() or not _is_likely_enough(best, turn, parts.settings.turn.quote_threshold):
        yield turn
        return
    candidate = replace(turn, answer=Answer(best.passage.text), sentences=(), citations=())
    quoted_turn = _cited(candidate, best, parts, stop)
    event: EventCode = "quoted" if is_unanswered(turn) else "outdone"
    yield quoted_turn.with_event(event) if quoted_turn.citations and not stop.is_set() else turn


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


def _has_rival(turn: Turn) -> bool:
    """Whether a sentence of the person's own documents may answer better than the reply, which is one sentence as well.

    A reply of several sentences may say more than any single one does.
    """
    is_looked_at = turn.answer is not None and turn.answer.likely is not None
    return is_looked_at and len(turn.sentences) == 1 and any(passage.own for passage in turn.shown)


def _is_likely_enough(best: Quotable, turn: Turn, threshold: float) -> bool:
    if best.likely < threshold:
        return False
    if is_unanswered(turn) or turn.answer is None:
        return True
    is_another = extract_markers(turn.answer.text).text != best.passage.text
    return best.passage.own and is_another and best.likely > (turn.answer.likely or 0.0)


def _cited(turn: Turn, best: Quotable, parts: Parts, stop: Event) -> Turn:
    """The turn with its answer, the best sentence, cited.

    What its passage says word for word needs no judge of support, who would read it beside the whole passage. A
    sentence of a summary, or one of which something was left out, is judged like any other.
    """
    text = best.passage.text
    source = next(passage for passage in turn.passages if passage.id == best.source_id)
    start = source.text.find(text)
    if start < 0:
        *_, turn = cite.citations(turn, parts, stop)
        return turn
    evidence = Evidence(source, Span(start, start + len(text)), nearness=2.0)
    finding = Finding((evidence,), Verdict(best.likely, "supported"))
    return with_citations(turn, text, [Span(0, len(text))], [finding])


def _best_quotable(turn: Turn, parts: Parts, stop: Event) -> Quotable | None:
    if parts.estimator is None or stop.is_set():
        return None
    try:
        judge = parts.support(parts.llm) if parts.support else None
        return best_sentence(turn.question, turn.shown, parts.estimator(parts.llm), judge, stop)
    except Exception:  # noqa: BLE001 - a model may fail in any way, and the turn goes on without this one
        _LOG.exception("no sentence could be looked for")
        return None
