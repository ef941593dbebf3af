"""Support by words alone: the share of a claim's words that its evidence has."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

from assistant.protocols import Embedder, SupportJudgeOf
from assistant.settings import Settings
from assistant.types import Claim, Verdict


def judge(settings: Settings, embedder: Embedder | None) -> SupportJudgeOf:  # noqa: ARG001 - it reads words
    """The judge, whichever model answers."""
    return lambda _llm: ByWords(settings.turn.support_threshold)


class ByWords:
    """The share of words is the probability; from `threshold` on it counts as support."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:  # noqa: ARG002 - it takes no time
        """One verdict a claim, in order."""
        return [self._verdict(claim) for claim in claims]

    def _verdict(self, claim: Claim) -> Verdict:
        said = set(claim.sentence.lower().split())
        there = {word for passage in claim.evidence for word in passage.text.lower().split()}
        share = len(said & there) / max(len(said), 1)
        return Verdict(share, "supported" if share >= self.threshold else "not")
