"""The second look: does a reply address the question, and does it say what its sources say?

A sentence can stand in a passage word for word and still answer another question, and a small model may say "yes" where
its passage says "no". The model doesn't notice this while it writes, but mostly does when it is shown its own reply
beside the text and asked. It is shown only the sentences nearest to its reply, since it overlooks less in a short text.
The judge of support reads the whole text and makes different errors: the mean of both log-odds separates right replies
from wrong ones better than either (docs/results/support.md). For a reply that begins with a yes or a no, the model's
answer to the closed question is a third opinion (`judges/closed.py`), and another threshold holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, log
from threading import Event

from assistant.judges.closed import verdict_in, verdict_probabilities
from assistant.prompting.render import render
from assistant.protocols import LLM, Embedder, Parts, SupportJudge
from assistant.text.overlap import echoes
from assistant.text.sentences import quote, sentences, surrounding_sentences
from assistant.types import Citation, Claim, Passage, Span, Turn, Verdict

# How many words around its quotation are shown of each cited passage, and of how many passages at most.
WORDS, MOST = 80, 3
# A claim that comes without a question replies to this one.
ANY = "What does the text say?"
# Probabilities are clipped this far from 0 and 1.
_EDGE = 0.01


class Addresses:
    """The second look as a judge of support, so that it can be measured like the others.

    A claim is a reply to its question, with the text as its evidence. There is no verdict "partly".
    """

    def __init__(
        self, llm: LLM, judge: SupportJudge | None, embedder: Embedder, threshold: float, verdict_threshold: float
    ) -> None:
        self._llm, self._judge, self._embedder = llm, judge, embedder
        self._threshold, self._verdict_threshold = threshold, verdict_threshold

    @property
    def threshold(self) -> float:
        """The probability below which a reply is set aside; one that begins with a yes or a no has its own."""
        return self._threshold

    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
        """One verdict for each claim, "supported" from its threshold on."""
        nearest_claims = [with_nearest_evidence(claim, self._embedder) for claim in claims]
        opinions = [[probability] for probability in probabilities(nearest_claims, self._llm, stop)]
        if self._judge:
            for claim_opinions, verdict in zip(opinions, self._judge.judge(claims, stop), strict=True):
                claim_opinions.append(verdict.probability)
        closed_indices = [n for n, claim in enumerate(claims) if verdict_in(claim)]
        for n, probability in zip(
            closed_indices, verdict_probabilities([claims[n] for n in closed_indices], self._llm, stop), strict=True
        ):
            opinions[n].append(probability)
        return [
            self._verdict(claim, mean_of_log_odds(*claim_opinions))
            for claim, claim_opinions in zip(claims, opinions, strict=True)
        ]

    def _verdict(self, claim: Claim, probability: float) -> Verdict:
        threshold = self._verdict_threshold if verdict_in(claim) else self._threshold
        return Verdict(probability, "supported" if probability >= threshold else "not")


def addresses_question(turn: Turn, reply: str, parts: Parts, stop: Event) -> Verdict:
    """Whether the reply answers the turn's question as its citations do, by the language model and the judge.

    A reply that only repeats the question doesn't; model and judge aren't asked about it.

    Raises:
        SequiturError: the model or the judge can't be asked.
    """
    if echoes(turn.question, reply):
        return Verdict(0.0, "not")
    judge = parts.support(parts.llm) if parts.support else None
    turn_settings = parts.settings.turn
    second_look = Addresses(
        parts.llm, judge, parts.embedder, turn_settings.addresses_threshold, turn_settings.verdict_threshold
    )
    [verdict] = second_look.judge([Claim(reply, cited_excerpts(turn.citations, turn.passages), turn.question)], stop)
    return verdict


def mean_of_log_odds(*probabilities: float) -> float:
    """The probability whose log-odds are the mean of these probabilities' log-odds."""
    return 1 / (1 + exp(-sum(log_odds(p) for p in probabilities) / len(probabilities)))


def log_odds(probability: float) -> float:
    """The log-odds of a probability, which may be 0 or 1."""
    clipped = min(max(probability, _EDGE), 1 - _EDGE)
    return log(clipped / (1 - clipped))


def probabilities(claims: Sequence[Claim], llm: LLM, stop: Event) -> list[float]:
    """How likely each claim answers its question as its evidence does, by the language model, in [0, 1].

    Raises:
        SequiturError: the language model can't be asked.
    """
    prompts = [
        render(
            "addresses",
            evidence=" ".join(passage.titled for passage in claim.evidence),
            question=claim.question or ANY,
            reply=claim.sentence,
        )
        for claim in claims
    ]
    return [choice.probabilities["yes"] for choice in llm.choose(prompts, ("yes", "no"), stop)] if prompts else []


def with_nearest_evidence(claim: Claim, embedder: Embedder) -> Claim:
    """The claim with its evidence cut to the sentences nearest to it by cosine, one for each sentence of the claim."""
    sentence_lists = [[quote(passage.text, span) for span in sentences(passage.text)] for passage in claim.evidence]
    candidates = [(n, sentence) for n, passage_sentences in enumerate(sentence_lists) for sentence in passage_sentences]
    queries = [f"{claim.question} {quote(claim.sentence, span)}".strip() for span in sentences(claim.sentence)]
    if not candidates or not queries:
        return claim
    vectors = embedder.encode([*queries, *(sentence for _, sentence in candidates)])
    nearest = sorted(set((vectors[: len(queries)] @ vectors[len(queries) :].T).argmax(axis=1).tolist()))
    texts_by_passage: dict[int, list[str]] = {}
    for n, text in (candidates[index] for index in nearest):
        texts_by_passage.setdefault(n, []).append(text)
    return replace(
        claim, evidence=tuple(replace(claim.evidence[n], text=" ".join(texts)) for n, texts in texts_by_passage.items())
    )


def cited_excerpts(citations: Sequence[Citation], passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The cited passages, each cut to the text around its first quotation; `further` citations are left out."""
    first_citations = {citation.passage_id: citation for citation in reversed(citations) if not citation.further}
    cited_passages = [passage for passage in passages if passage.id in first_citations][:MOST]
    return tuple(
        _excerpt(passage, Span(first_citations[passage.id].start, first_citations[passage.id].end))
        for passage in cited_passages
    )


def excerpts_with(reply: str, passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The passages that hold a short reply word for word, each cut to the text around it.

    If none does, the beginnings of the first passages.
    """
    starts = [(passage, passage.text.casefold().find(reply.strip(" .").casefold())) for passage in passages]
    matches = [(passage, start) for passage, start in starts if start >= 0] or [(passage, 0) for passage in passages]
    return tuple(_excerpt(passage, Span(start, start + len(reply))) for passage, start in matches[:MOST])


def _excerpt(passage: Passage, span: Span) -> Passage:
    return replace(passage, text=quote(passage.text, surrounding_sentences(passage.text, span, WORDS)))
