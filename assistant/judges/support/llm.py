"""Support by the language model: it is asked yes or no about whole passages, or their sentences nearest to the claim.

It reads each claim alone, with the same veto in code as the trained judge, which is far faster. Its probability of yes
is the support; it knows no "partly".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from threading import Event

from assistant.judges.stand_ins import Instead, logged
from assistant.judges.support.trained import lacking
from assistant.prompting.render import render
from assistant.protocols import LLM, Embedder, Progress, SupportJudgeOf
from assistant.settings import Settings
from assistant.text.sentences import quote, sentences
from assistant.types import Claim, Passage, Verdict

# Sentences shown of each passage.
SHOWN = 2
# This many words in a row count as quoted if a passage has them. Fewer may lack what negates or limits them.
QUOTED = 12
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def judge(
    settings: Settings,
    embedder: Embedder | None,
    progress: Progress,  # noqa: ARG001 - it is loaded for itself
    instead: Instead = logged,  # noqa: ARG001 - it is loaded for itself
) -> SupportJudgeOf:
    """The language model of the turn, shown what is nearest by this embedder."""
    return lambda llm: ByLLM(llm, settings.turn.support_threshold, embedder)


class ByLLM:
    """The language model's judgement; from `threshold` on its probability of yes counts as support.

    With an `embedder` it is shown only the nearest sentences of each passage, with which it judges better.
    """

    def __init__(self, llm: LLM, threshold: float, embedder: Embedder | None = None) -> None:
        self._llm, self._threshold, self._embedder = llm, threshold, embedder

    @property
    def threshold(self) -> float:
        """The probability of yes from which on a claim counts as supported."""
        return self._threshold

    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
        """One verdict for each claim: no if there is a veto, yes to a long quotation; the model judges the rest.

        After `stop` the rest is not supported, since the model then gives even odds to what it hasn't read.
        """
        claims = [self._with_shown_evidence(claim) for claim in claims]
        known_verdicts = [_verdict_without_model(claim) for claim in claims]
        open_claims = [claim for claim, verdict in zip(claims, known_verdicts, strict=True) if verdict is None]
        prompts = [render("support", sentence=claim.sentence, evidence=_evidence(claim)) for claim in open_claims]
        choices = self._llm.choose(prompts, ("yes", "no"), stop) if prompts else []
        unread = stop.is_set()
        verdicts = (Verdict(0.0, "not") if unread else self._verdict(choice.probabilities["yes"]) for choice in choices)
        return [next(verdicts) if verdict is None else verdict for verdict in known_verdicts]

    def _with_shown_evidence(self, claim: Claim) -> Claim:
        """The claim with what the model is shown for evidence; what has no text is left out."""
        evidence = (self._excerpt(claim.sentence, passage) for passage in claim.evidence if passage.text.strip())
        return replace(claim, evidence=tuple(evidence))

    def _excerpt(self, sentence: str, passage: Passage) -> Passage:
        if self._embedder is None:
            return passage
        texts = [quote(passage.text, span) for span in sentences(passage.text)]
        vectors = self._embedder.encode([sentence, *(replace(passage, text=text).titled for text in texts)])
        nearest = (vectors[1:] @ vectors[0]).argsort(kind="stable")[::-1][:SHOWN]
        return replace(passage, text=" ".join(texts[index] for index in sorted(nearest)))

    def _verdict(self, probability: float) -> Verdict:
        return Verdict(probability, "supported" if probability >= self._threshold else "not")


def _verdict_without_model(claim: Claim) -> Verdict | None:
    """What is known without asking the model."""
    if not claim.evidence or not claim.sentence.strip():
        return Verdict(0.0, "not")
    if veto := lacking(claim):
        return Verdict(0.0, "not", veto)
    sentence, evidence = (" ".join(_WORD.findall(text.lower())) for text in (claim.sentence, _evidence(claim)))
    is_quoted = sentence.count(" ") + 1 >= QUOTED and f" {sentence} " in f" {evidence} "
    return Verdict(1.0, "supported") if is_quoted else None


def _evidence(claim: Claim) -> str:
    return " ".join(passage.titled for passage in claim.evidence)
