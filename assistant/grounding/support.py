"""Judges each sentence of a reply beside the passages nearest to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event

from assistant.grounding.evidence import READ, Evidence
from assistant.protocols import SupportJudge
from assistant.text.overlap import repeats
from assistant.text.sentences import around, quote
from assistant.types import Claim, Passage, Turn, Verdict

# How many passages the judge reads together in the last round, and how many words of each passage.
_TOGETHER, _WORDS = 2, 80
# How much less near than the nearest a passage may be and still be read in the first round.
NEAR = 0.5
_ORDER = ("not", "partly", "supported")


@dataclass(frozen=True, slots=True)
class Finding:
    """The one or two passages that a sentence was read beside, and the judge's verdict.

    `further` are the findings of other passages that each support the sentence as well.
    """

    evidence: tuple[Evidence, ...]
    verdict: Verdict
    further: tuple[Finding, ...] = ()

    @property
    def passages(self) -> tuple[Passage, ...]:
        """All passages that support the sentence."""
        return tuple(one.passage for found in (self, *self.further) for one in found.evidence)


def judge_sentences(
    texts: Sequence[str], evidence: Sequence[Sequence[Evidence]], turn: Turn, judge: SupportJudge, stop: Event
) -> list[Finding | None]:
    """The judge's finding for each sentence; None for one that claims nothing.

    The judge reads in rounds: the nearest passages first, each alone, then the other passages for those sentences that
    are not supported yet, and in the last round the two nearest together.
    """
    given = " ".join(turn.told_facts)
    rounds = [_rounds(nearest) for nearest in evidence]
    findings: list[list[Finding]] = [[] for _ in texts]
    for number in range(READ + 1):
        unsettled = [n for n, of_one in enumerate(rounds) if len(of_one) > number and not _supported(findings[n])]
        pairs = [(n, passages) for n in unsettled for passages in rounds[n][number]]
        if not pairs or stop.is_set():
            break
        verdicts = judge.judge([_claim(texts[n], passages, turn.question, given) for n, passages in pairs], stop)
        for (n, passages), verdict in zip(pairs, verdicts, strict=True):
            findings[n].append(Finding(passages, verdict))
    return [_settled(of_one) if text else None for text, of_one in zip(texts, findings, strict=True)]


def _supported(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.verdict.state == "supported"]


def _claim(text: str, evidence: Sequence[Evidence], question: str, given: str) -> Claim:
    """The claim with the text of each passage around the span that is nearest to the sentence.

    The whole passages go into `given`: the sentence may use their names and numbers, but they support nothing.
    """
    passages = [one.passage for one in evidence]
    excerpts = [quote(one.passage.text, around(one.passage.text, one.span, _WORDS)) for one in evidence]
    shown = tuple(replace(passage, text=excerpt) for passage, excerpt in zip(passages, excerpts, strict=True))
    return Claim(text, shown, question, " ".join([given, *(passage.text for passage in passages)]))


def _rounds(evidence: Sequence[Evidence]) -> list[list[tuple[Evidence, ...]]]:
    """What a sentence is read beside, by round: each near passage alone, then each other one, then the first two."""
    if not evidence:
        return []
    threshold = max(one.nearness for one in evidence) - NEAR
    near = [one for n, one in enumerate(evidence) if n == 0 or one.nearness >= threshold]
    rounds: list[list[tuple[Evidence, ...]]] = [[(one,) for one in near]]
    rounds += [[(one,)] for one in evidence if one not in near]
    return [*rounds, [tuple(evidence[:_TOGETHER])]] if len(evidence) >= _TOGETHER else rounds


def _settled(findings: Sequence[Finding]) -> Finding:
    """The best finding for a sentence, with the further ones that support it as well.

    Of several that support it, the first one counts, whose passage is the nearest; a passage that only repeats another
    one's text is left out.
    """
    if not (supported := _supported(findings)):
        return _best(findings)
    distinct = list[Finding]()
    for finding in supported:
        if not any(repeats(_text(finding), _text(other)) for other in distinct):
            distinct.append(finding)
    return replace(distinct[0], further=tuple(distinct[1:]))


def _text(finding: Finding) -> str:
    return " ".join(evidence.passage.text for evidence in finding.evidence)


def _best(findings: Sequence[Finding]) -> Finding:
    """The finding with the best state; of equals that with fewer passages, then that with the higher probability."""
    return max(
        findings,
        key=lambda found: (_ORDER.index(found.verdict.state), -len(found.evidence), found.verdict.probability),
        default=Finding((), Verdict(0.0, "not")),
    )
