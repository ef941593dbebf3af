"""Addresses: is this a reply to what was asked, and is it what the text tells?

A sentence can stand in a passage word for word and still answer another question, and a small model says "yes" where
its passage says "no". It notices neither while it writes, but mostly does when it is shown its own reply beside the
text and asked. It is shown only the sentences of the text that are nearest to its reply, since it overlooks less where
there is less to read. The judge of support reads the whole text, and its errors are others: the mean of the two
log-odds tells right replies from wrong ones better than either (docs/results/support.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import exp, log
from threading import Event

from assistant.prompting.render import render
from assistant.protocols import LLM, Embedder, Parts, SupportJudge
from assistant.settings import TurnSettings
from assistant.text.overlap import echoes
from assistant.text.sentences import around, quote, sentences
from assistant.types import Citation, Claim, Passage, Span, Turn, Verdict

# Words of each cited passage that are shown around what was quoted from it, and passages at most.
WORDS, MOST = 80, 3
# A claim that comes without a question replies to this one.
ANY = "What does the text say?"
# Nobody is surer than that.
_EDGE = 0.01
_VERDICT = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)


class Addresses:
    """The second look as a judge of support, so that it is measured as the others are.

    A claim is a reply to its question, and its passages are the text. It knows no "partly".
    """

    def __init__(self, llm: LLM, judge: SupportJudge | None, embedder: Embedder, threshold: float) -> None:
        self._llm, self._judge, self._embedder, self._threshold = llm, judge, embedder, threshold

    @property
    def threshold(self) -> float:
        """The probability under which a reply is set aside."""
        return self._threshold

    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
        """One verdict a claim, "supported" from the threshold on."""
        found = probabilities([nearest(claim, self._embedder) for claim in claims], self._llm, stop)
        if self._judge:
            read = self._judge.judge(claims, stop)
            found = [together(seen, verdict.probability) for seen, verdict in zip(found, read, strict=True)]
        return [Verdict(one, "supported" if one >= self._threshold else "not") for one in found]


def addressed(turn: Turn, reply: str, parts: Parts, stop: Event) -> bool:
    """Whether the reply answers the turn's question as its citations tell, as far as the two judges see.

    Nobody is asked of one that only says the question again.

    Raises:
        SequiturError: one of them can't be asked.
    """
    if echoes(turn.question, reply):
        return False
    judge = parts.support(parts.llm) if parts.support else None
    look = Addresses(parts.llm, judge, parts.embedder, _threshold_for(reply, parts.settings.turn))
    [verdict] = look.judge([Claim(reply, evidence(turn.citations, turn.passages), turn.question)], stop)
    return verdict.state == "supported"


def _threshold_for(reply: str, turn: TurnSettings) -> float:
    """A small model says yes to nearly every closed question, so that a reply which begins so has to be surer."""
    return max(turn.addresses_threshold, turn.verdict_threshold) if _VERDICT.match(reply) else turn.addresses_threshold


def together(*probabilities: float) -> float:
    """The probability whose log-odds are the mean of these probabilities' log-odds."""
    inside = [min(max(one, _EDGE), 1 - _EDGE) for one in probabilities]
    return 1 / (1 + exp(-sum(log(one / (1 - one)) for one in inside) / len(inside)))


def probabilities(claims: Sequence[Claim], llm: LLM, stop: Event) -> list[float]:
    """How likely each claim answers its question as its evidence tells, as the language model sees it, in [0, 1].

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


def nearest(claim: Claim, embedder: Embedder) -> Claim:
    """The claim beside what is nearest to it alone: for each of its sentences one of the evidence's, by cosine."""
    texts = [[quote(passage.text, span) for span in sentences(passage.text)] for passage in claim.evidence]
    places = [(n, text) for n, some in enumerate(texts) for text in some]
    said = [f"{claim.question} {quote(claim.sentence, span)}".strip() for span in sentences(claim.sentence)]
    if not places or not said:
        return claim
    vectors = embedder.encode([*said, *(text for _, text in places)])
    near = sorted(set((vectors[: len(said)] @ vectors[len(said) :].T).argmax(axis=1).tolist()))
    kept: dict[int, list[str]] = {}
    for n, text in (places[at] for at in near):
        kept.setdefault(n, []).append(text)
    return replace(claim, evidence=tuple(replace(claim.evidence[n], text=" ".join(some)) for n, some in kept.items()))


def evidence(citations: Sequence[Citation], passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The cited passages, each cut down to what it says around the first quotation from it; no further sources."""
    first = {one.passage_id: one for one in reversed(citations) if not one.further}
    shown = [passage for passage in passages if passage.id in first][:MOST]
    return tuple(_stretch(one, Span(first[one.id].start, first[one.id].end)) for one in shown)


def backing(reply: str, passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The passages that say a short reply word for word, each cut down to what stands around it.

    Of one that none of them says so, the first passages as far as they are read.
    """
    places = [(one, one.text.casefold().find(reply.strip(" .").casefold())) for one in passages]
    said = [(one, at) for one, at in places if at >= 0] or [(one, 0) for one in passages]
    return tuple(_stretch(one, Span(at, at + len(reply))) for one, at in said[:MOST])


def _stretch(passage: Passage, place: Span) -> Passage:
    return replace(passage, text=quote(passage.text, around(passage.text, place, WORDS)))
