"""Asks each passage alone, and weighs the answers by the relevance of their passages (RE-RAG, equations 3 to 6).

P(a|q) = sum_j P_RE(c_j|q) P_G(a|q,c_j), where P_RE is the softmax over the relevance estimator's scores; post-fusion
gives every passage the same weight. For short answers P_G is the model's likelihood of each answer after each passage,
if the backend can score ("thorough decoding" of RAG, Lewis et al. 2020, section 2.5). Otherwise an answer has
probability 0 after passages that gave another one ("fast decoding"). For chat answers, whose lengths differ, P_G is the
geometric mean of the tokens' probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import exp, inf
from threading import Event

from assistant.judges.relevance.rerank import with_relevance
from assistant.judges.relevance.weights import marginal, weights
from assistant.judges.uncertainty import PromptedAnswer
from assistant.prompting.sentence_selection import best_sentences
from assistant.protocols import Parts
from assistant.strategies.post_fusion import replies
from assistant.strategies.shared.pool import NO_ANSWER, following, vote
from assistant.types import Answer, Candidate, Completion, Digest, Passage, Relevance, Turn

TITLE = "One by one, weighed by relevance"
SUMMARY = "Asks each passage alone; the more relevant a passage seems, the more its answer counts."

# The answer from a passage, and the prompt that asked for it.
Asked = tuple[Candidate, PromptedAnswer]
# Passages in one batch of prompts; the pool is shown after each batch.
BATCH = 4
# How many answers of the pool may become the reply, one after the other.
SPEAKERS = 2


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `pool`, with its weights, and `answer`; shows the likeliest answer so far meanwhile."""
    if turn.confidence is None:
        turn = with_relevance(turn, turn.passages, parts, stop)
    passages = _weighed_passages(turn, parts)
    turn = replace(turn, digests=(*turn.digests, *_digests(turn, passages[len(turn.passages) :], parts)))
    passages = replace(turn, passages=passages).shown  # only these are asked
    if not passages:
        yield replace(turn, answer=NO_ANSWER)
        return
    answers: list[Asked] = []
    for start in range(0, len(passages), BATCH):
        batch = replace(turn, passages=passages[start : start + BATCH])
        answers += replies(batch, parts, stop)
        turn = _pooled(turn, passages, answers, parts)
        yield turn
        if stop.is_set():
            return
    turn = _thorough(turn, passages, answers, parts, stop)
    yield from _spoken(turn, _speakers(turn.pool)[:1])


def retry(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - nothing more is asked
    """The second likeliest answer, used if no passage supports the likeliest."""
    speakers = {candidate.text: candidate for candidate in _speakers(turn.pool)[:SPEAKERS]}
    yield from _spoken(turn, [speakers[text] for text in following(turn.answer, list(speakers))])


def _spoken(turn: Turn, speakers: Sequence[Candidate]) -> Iterator[Turn]:
    """The turn with the first speaker's answer, if any, and its passage moved from `reserve` to `passages`."""
    for speaker in speakers:
        moved_passages = tuple(passage for passage in turn.reserve if passage.id == speaker.passage_id)
        reserve = tuple(passage for passage in turn.reserve if passage.id != speaker.passage_id)
        answered = replace(turn, answer=Answer(speaker.text, origin="pool"), sentences=(), citations=())
        yield replace(answered, passages=(*turn.passages, *moved_passages), reserve=reserve)


def _weighed_passages(turn: Turn, parts: Parts) -> tuple[Passage, ...]:
    """The passages whose answers are weighed: those that are shown, then those in reserve."""
    count = max(parts.settings.relevance.rerank_top_k, len(turn.passages))
    return (*turn.passages, *turn.reserve)[:count]


def _digests(turn: Turn, reserve: Sequence[Passage], parts: Parts) -> tuple[Digest, ...]:
    """Digests of passages from the reserve, as long as those of the other passages; none if these have none."""
    if not turn.digests:
        return ()
    knobs = parts.settings.turn
    share = knobs.max_context_chars // max(len(turn.passages), 1)
    chars = share if knobs.digest == "relevant" else knobs.max_digest_chars
    return best_sentences(reserve, turn.contextual, parts.embedder, chars)


def _scores(passages: Sequence[Passage]) -> list[float]:
    """s_j of each passage; one without an estimate gets the lowest of the others, and all get 0 if none has any."""
    confidences = [passage.confidence for passage in passages]
    lowest = min((confidence for confidence in confidences if confidence is not None), default=0.5)
    return [Relevance.of_confidence(lowest if value is None else value).score for value in confidences]


def _pooled(turn: Turn, passages: Sequence[Passage], answers: Sequence[Asked], parts: Parts) -> Turn:
    """The turn with the pool so far, weighed by fast decoding, and its likeliest answer."""
    form = turn.choices.form
    pool = vote([candidate for candidate, _ in answers], form, parts.embedder)
    groups = list(dict.fromkeys(candidate.group for candidate in pool if not candidate.unknown))
    log_likelihoods = [_likelihood(answer.completion, form) for _, answer in answers]
    rows = [
        [
            log_likelihood if candidate.group == group else -inf
            for candidate, log_likelihood in zip(pool, log_likelihoods, strict=True)
        ]
        for group in groups
    ]
    return _decided(turn, _shares(pool, groups, _scores(passages[: len(pool)]), rows))


def _thorough(
    turn: Turn,
    passages: Sequence[Passage],
    answers: Sequence[Asked],
    parts: Parts,
    stop: Event,
) -> Turn:
    """The turn with its pool weighed by each answer's likelihood after each passage, where the backend can tell."""
    texts = {candidate.group: candidate.text for candidate in reversed(turn.pool) if not candidate.unknown}
    if turn.choices.form == "chat" or len(texts) < 2 or not parts.llm.can_score:
        return turn
    # passage by passage, so that each is read once
    log_likelihoods = parts.llm.score(
        [(answer.messages, text) for _, answer in answers for text in texts.values()], stop
    )
    if stop.is_set():
        return turn
    rows = [
        [min(log_likelihood, 0.0) for log_likelihood in log_likelihoods[n :: len(texts)]] for n in range(len(texts))
    ]
    return _decided(turn, _shares(turn.pool, list(texts), _scores(passages), rows))


def _shares(
    pool: Sequence[Candidate], groups: Sequence[int], scores: Sequence[float], rows: Sequence[Sequence[float]]
) -> tuple[Candidate, ...]:
    """The pool with P_RE of each passage and each group's share of the probability; `rows` has a row for each group."""
    log_marginals = marginal(scores, rows)
    highest = max(log_marginals, default=-inf)
    odds = [exp(log_marginal - highest) if highest > -inf else 1.0 for log_marginal in log_marginals]
    shares = {group: group_odds / sum(odds) for group, group_odds in zip(groups, odds, strict=True)}
    return tuple(
        replace(candidate, weight=weight, probability=0.0 if candidate.unknown else shares[candidate.group])
        for candidate, weight in zip(pool, weights(scores), strict=True)
    )


def _decided(turn: Turn, pool: tuple[Candidate, ...]) -> Turn:
    speakers = _speakers(pool)
    answer = Answer(speakers[0].text, origin="pool") if speakers else NO_ANSWER
    return replace(turn, pool=pool, answer=answer)


def _speakers(pool: Sequence[Candidate]) -> list[Candidate]:
    """One answer from each group of equal ones, the likeliest group first: the answer of its most relevant passage."""
    answers = [candidate for candidate in pool if not candidate.unknown]
    answers.sort(key=lambda candidate: (-candidate.probability, -candidate.weight))
    return list({candidate.group: candidate for candidate in reversed(answers)}.values())[::-1]


def _likelihood(completion: Completion, form: str) -> float:
    """Log P_G of the completion, at most 0; 0 if the backend gives no probabilities."""
    logs = completion.logprobs
    total = sum(logs) if form == "factoid" else sum(logs) / max(len(logs), 1)
    return min(total, 0.0)
