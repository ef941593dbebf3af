"""Support by words in common: an example of how little a judge takes."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

from assistant.judges.support.trained import lacking
from assistant.protocols import Embedder, SupportJudgeOf
from assistant.settings import Settings
from assistant.text.overlap import coverage
from assistant.types import Claim, Verdict


def judge(settings: Settings, embedder: Embedder | None) -> SupportJudgeOf:  # noqa: ARG001 - it needs neither
    """The same for all turns."""
    return lambda _: ByWords()


class ByWords:
    """A sentence is supported where its passages have nearly all of its words, and no number or name is lacking."""

    threshold = 0.9

    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:  # noqa: ARG002 - it is over at once
        """One verdict a claim."""
        return [self._verdict(claim) for claim in claims]

    def _verdict(self, claim: Claim) -> Verdict:
        share = coverage(claim.sentence, " ".join(passage.titled for passage in claim.evidence))
        veto = lacking(claim)
        return Verdict(share, "supported" if share >= self.threshold and not veto else "not", veto)
