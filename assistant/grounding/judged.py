"""Which sentences of a reply have support, as the judge says that reads each beside the passages nearest to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event

from assistant.grounding.align import READ, Evidence
from assistant.protocols import SupportJudge
from assistant.text.sentences import around, quote
from assistant.types import Claim, Turn, Verdict

# Passages that the judge reads together, and words that it reads of each.
_TOGETHER, _WORDS = 2, 80
_ORDER = ("not", "partly", "supported")


@dataclass(frozen=True, slots=True)
class Finding:
    """What a sentence was read beside, one passage or two, and what the judge said."""

    evidence: tuple[Evidence, ...]
    verdict: Verdict


def judged(
    texts: Sequence[str], evidence: Sequence[Sequence[Evidence]], turn: Turn, judge: SupportJudge, stop: Event
) -> list[Finding | None]:
    """The best that the judge says of each sentence; None for one that claims nothing.

    The nearest passage is read first, the next only for sentences that are not supported yet, and two together last.
    """
    given = " ".join(turn.told_facts)
    beside = [_beside(found) for found in evidence]
    found: list[list[Finding]] = [[] for _ in texts]
    for place in range(READ + 1):
        open_ = [n for n, some in enumerate(beside) if len(some) > place and not _is_supported(found[n])]
        if not open_ or stop.is_set():
            break
        claims = [_claim(texts[n], beside[n][place], turn.question, given) for n in open_]
        for n, verdict in zip(open_, judge.judge(claims, stop), strict=True):
            found[n].append(Finding(beside[n][place], verdict))
    return [_best(one) if text else None for text, one in zip(texts, found, strict=True)]


def _is_supported(found: Sequence[Finding]) -> bool:
    return any(one.verdict.state == "supported" for one in found)


def _claim(text: str, beside: Sequence[Evidence], question: str, given: str) -> Claim:
    """The sentence with the stretch of each passage around what is nearest to it.

    The rest of the passage may name what the sentence names, as the title does, but it supports nothing.
    """
    passages = [one.passage for one in beside]
    near = [quote(one.passage.text, around(one.passage.text, one.span, _WORDS)) for one in beside]
    shown = tuple(replace(passage, text=text) for passage, text in zip(passages, near, strict=True))
    return Claim(text, shown, question, " ".join([given, *(passage.text for passage in passages)]))


def _beside(evidence: Sequence[Evidence]) -> list[tuple[Evidence, ...]]:
    """What a sentence is read beside, in order: each passage alone, and the first ones together."""
    together = [tuple(evidence[:_TOGETHER])] if len(evidence) >= _TOGETHER else []
    return [*((one,) for one in evidence), *together]


def _best(found: Sequence[Finding]) -> Finding:
    """The finding that says most for a sentence; one passage that says as much as two is enough."""
    return max(
        found,
        key=lambda one: (_ORDER.index(one.verdict.state), -len(one.evidence), one.verdict.probability),
        default=Finding((), Verdict(0.0, "not")),
    )
