"""Quotes a sentence of the passages as the answer, if the model's own words are no answer or a less likely one.

A small model may misread a passage; a quotation can't. The relevance estimator ranks the sentences. Whether the best
one answers is decided by the estimator and the judge of support together; the judge reads the sentence alone, as a
reply to the question. Both together decide better than either, and better than a second look by the language model. For
a person's own documents, which are unlike the encyclopedias that the estimator learned from, the judge alone decides
(docs/results/support.md). If the sentence is likely enough, and the judge finds that a second one makes a better
answer, for instance because two things were asked, both are quoted. A quotation needs no other check, since it is what
the passages say.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Event

from assistant.grounding.citations import with_citations
from assistant.grounding.evidence import Evidence
from assistant.grounding.support import Finding
from assistant.judges.addresses import log_odds, mean_of_log_odds
from assistant.protocols import Estimator, Parts, SupportJudge
from assistant.steps import cite
from assistant.steps.answer import is_from_passages
from assistant.strategies.shared.strategy import is_unanswered
from assistant.text.markers import extract_markers
from assistant.text.sentences import quote, sentences
from assistant.types import Answer, Claim, EventCode, Passage, Span, Turn, Verdict

_LOG = logging.getLogger(__name__)
# How many of the next best sentences are tried as a second one, and how much surer, in log-odds, the judge has to be of
# both together than of the best one alone, so that nothing needless is added.
SECOND_CANDIDATES, MARGIN = 3, 0.5
_SENTENCE_ENDS = (".", "!", "?", "…", '"', "”")


@dataclass(frozen=True, slots=True)
class Quotable:
    """Sentences, each as a passage of its own, the ids of the passages they are from, and how likely they answer.

    `relevance` is the estimator's probability for the best sentence, `support` the judge's for all sentences together.
    """

    sentences: tuple[Passage, ...]
    source_ids: tuple[str, ...]
    relevance: float
    support: float | None = None

    @property
    def likely(self) -> float:
        """How likely it answers, in (0, 1): by both together, or by the judge alone for one's own documents."""
        if self.support is None:
            return mean_of_log_odds(self.relevance)
        is_own = any(sentence.own for sentence in self.sentences)
        return mean_of_log_odds(*([] if is_own else [self.relevance]), self.support)

    @property
    def text(self) -> str:
        """The sentences one after the other; after a piece without an end mark, such as a list item, on a new line."""
        text = ""
        for sentence in self.sentences:
            separator = " " if text.endswith(_SENTENCE_ENDS) else "\n" if text else ""
            text += separator + sentence.text
        return text


def is_due(turn: Turn, parts: Parts) -> bool:
    """Whether a chat turn is answered from its passages, and its answer is unknown or may have a rival in them."""
    if turn.choices.form != "chat" or parts.settings.turn.quote_threshold >= 1:
        return False
    return is_from_passages(turn, parts) and (is_unanswered(turn) or _has_rival(turn))


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds the best quotation as `answer`, if it is likely enough to answer (`turn.quote_threshold`).

    An answer in the model's own words is replaced only by a likelier one.
    """
    best = _best_quotable(turn, parts, stop)
    if best is None or stop.is_set() or not _is_likely_enough(best, turn, parts.settings.turn.quote_threshold):
        yield turn
        return
    candidate = replace(turn, answer=Answer(best.text), sentences=(), citations=())
    quoted_turn = _cited(candidate, best, parts, stop)
    event: EventCode = "quoted" if is_unanswered(turn) else "outdone"
    yield quoted_turn.with_event(event) if quoted_turn.citations and not stop.is_set() else turn


def best_quotable(
    question: str,
    passages: Sequence[Passage],
    estimator: Estimator,
    judge: SupportJudge | None,
    stop: Event,
    threshold: float,
) -> Quotable | None:
    """The sentence that the estimator finds most relevant, with one of the next ones if the judge is surer of both.

    Only a sentence that reaches the `threshold` by itself gets a second one: if several are tried, one of them may well
    make a sentence look like an answer that isn't. None if there is no sentence, or `stop` was set.

    Raises:
        SequiturError: a judge can't be used; one that fails may raise anything.
    """
    candidates = list(_sentences(passages))
    estimates = estimator.estimate(question, [candidate.passage for candidate in candidates], stop)
    ranked = sorted(zip(estimates, candidates, strict=True), key=lambda pair: pair[0].score, reverse=True)
    if not ranked or stop.is_set():
        return None
    relevance = ranked[0][0].confidence
    best, *others = itertools.islice(_distinct(candidate for _, candidate in ranked), 1 + SECOND_CANDIDATES)
    single = _quotable([best], relevance)
    if judge is None:
        return single
    [single] = _judged([single], question, judge, stop)
    if single.likely < threshold or not others or stop.is_set():
        return single
    surest = max(
        _judged([_quotable([best, other], relevance) for other in others], question, judge, stop),
        key=lambda double: double.support or 0.0,
    )
    return surest if log_odds(surest.support or 0.0) > log_odds(single.support or 0.0) + MARGIN else single


def _judged(quotables: Sequence[Quotable], question: str, judge: SupportJudge, stop: Event) -> list[Quotable]:
    verdicts = judge.judge([Claim(one.text, one.sentences, question) for one in quotables], stop)
    return [replace(one, support=verdict.probability) for one, verdict in zip(quotables, verdicts, strict=True)]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence as a passage of its own, the id of the passage it is from, and its number among all sentences."""

    passage: Passage
    source_id: str
    number: int


def _sentences(passages: Sequence[Passage]) -> Iterator[_Candidate]:
    number = itertools.count()
    for passage in passages:
        for n, span in enumerate(sentences(passage.text)):
            sentence = replace(passage, id=f"{passage.id} {n}", text=quote(passage.text, span))
            yield _Candidate(sentence, passage.id, next(number))


def _distinct(candidates: Iterable[_Candidate]) -> Iterator[_Candidate]:
    """The candidates without those that repeat an earlier one word for word."""
    seen_texts = set[str]()
    for candidate in candidates:
        if candidate.passage.text not in seen_texts:
            seen_texts.add(candidate.passage.text)
            yield candidate


def _quotable(candidates: Sequence[_Candidate], relevance: float) -> Quotable:
    """The candidates as one quotation; if all are from the same passage, in the passage's order."""
    if len({candidate.source_id for candidate in candidates}) == 1:
        candidates = sorted(candidates, key=lambda candidate: candidate.number)
    return Quotable(
        tuple(candidate.passage for candidate in candidates),
        tuple(candidate.source_id for candidate in candidates),
        relevance,
    )


def _has_rival(turn: Turn) -> bool:
    """Whether the reply is one sentence, so that a sentence of the passages may answer better.

    A reply of several sentences may say more than one or two sentences of the passages do.
    """
    return turn.answer is not None and turn.answer.likely is not None and len(turn.sentences) == 1


def _is_likely_enough(best: Quotable, turn: Turn, threshold: float) -> bool:
    if best.likely < threshold:
        return False
    if is_unanswered(turn) or turn.answer is None:
        return True
    return extract_markers(turn.answer.text).text != best.text and best.likely > (turn.answer.likely or 0.0)


def _cited(turn: Turn, best: Quotable, parts: Parts, stop: Event) -> Turn:
    """The turn with its answer, the quotation, cited.

    A sentence that its passage contains word for word needs no judge of support. A sentence of a summary, or one from
    which something was left out, is judged like any other.
    """
    sources = {passage.id: passage for passage in turn.passages}
    spans, findings, end = list[Span](), list[Finding](), 0
    for sentence, source_id in zip(best.sentences, best.source_ids, strict=True):
        source, text = sources[source_id], sentence.text
        start = source.text.find(text)
        if start < 0:
            *_, turn = cite.citations(turn, parts, stop)
            return turn
        evidence = Evidence(source, Span(start, start + len(text)), nearness=2.0)
        findings.append(Finding((evidence,), Verdict(best.likely, "supported")))
        spans.append(Span(end, end + len(text)))
        end += len(text) + 1
    return with_citations(turn, best.text, spans, findings)


def _best_quotable(turn: Turn, parts: Parts, stop: Event) -> Quotable | None:
    if parts.estimator is None or stop.is_set():
        return None
    try:
        judge = parts.support(parts.llm) if parts.support else None
        threshold = parts.settings.turn.quote_threshold
        return best_quotable(turn.question, turn.shown, parts.estimator(parts.llm), judge, stop, threshold)
    except Exception:  # noqa: BLE001 - a model may fail in any way, and the turn goes on without this one
        _LOG.exception("no sentence could be looked for")
        return None
