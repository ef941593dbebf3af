"""Judges each sentence of a reply beside the passages nearest to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event

from assistant.grounding.evidence import READ, Evidence
from assistant.protocols import SupportJudge
from assistant.text.overlap import repeats
from assistant.text.sentences import quote, surrounding_sentences
from assistant.types import Claim, Passage, Turn, Verdict

# How many passages the judge reads together in the last round, and how many words of each passage.
_PASSAGES_TOGETHER, _EXCERPT_WORDS = 2, 80
# How much less near than the nearest passage another may be to be still read in the first round.
NEAR = 0.5
_STATE_ORDER = ("not", "partly", "supported")


@dataclass(frozen=True, slots=True)
class Finding:
    """The judge's verdict on a sentence, and the one or two passages that it was read beside.

    `further` are the findings for other passages, each of which supports the sentence as well.
    """

    evidence: tuple[Evidence, ...]
    verdict: Verdict
    further: tuple[Finding, ...] = ()

    @property
    def passages(self) -> tuple[Passage, ...]:
        """All passages that support the sentence."""
        return tuple(evidence.passage for finding in (self, *self.further) for evidence in finding.evidence)


def judge_sentences(
    texts: Sequence[str], evidence: Sequence[Sequence[Evidence]], turn: Turn, judge: SupportJudge, stop: Event
) -> list[Finding | None]:
    """The judge's finding for each sentence; None for one that claims nothing.

    The judge reads in rounds: first the nearest passages, each alone; then, for sentences that are not supported yet,
    the other passages; and in the last round the two nearest together.
    """
    given_text = " ".join(turn.told_facts)
    rounds = [_rounds(nearest) for nearest in evidence]
    findings: list[list[Finding]] = [[] for _ in texts]
    for round_index in range(READ + 1):
        unsettled = [
            n
            for n, sentence_rounds in enumerate(rounds)
            if len(sentence_rounds) > round_index and not _supported(findings[n])
        ]
        pairs = [(n, sources) for n in unsettled for sources in rounds[n][round_index]]
        if not pairs or stop.is_set():
            break
        verdicts = judge.judge([_claim(texts[n], sources, turn.question, given_text) for n, sources in pairs], stop)
        for (n, sources), verdict in zip(pairs, verdicts, strict=True):
            findings[n].append(Finding(sources, verdict))
    return [
        _final_finding(sentence_findings) if text else None
        for text, sentence_findings in zip(texts, findings, strict=True)
    ]


def _supported(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.verdict.state == "supported"]


def _claim(text: str, evidence: Sequence[Evidence], question: str, given_text: str) -> Claim:
    """The claim whose evidence is the text around the nearest span of each passage.

    The whole passages go into `given`: the sentence may use their names and numbers, but is not supported by them.
    """
    passages = [source.passage for source in evidence]
    excerpts = [
        quote(source.passage.text, surrounding_sentences(source.passage.text, source.span, _EXCERPT_WORDS))
        for source in evidence
    ]
    excerpt_passages = tuple(
        replace(passage, text=excerpt) for passage, excerpt in zip(passages, excerpts, strict=True)
    )
    return Claim(text, excerpt_passages, question, " ".join([given_text, *(passage.text for passage in passages)]))


def _rounds(evidence: Sequence[Evidence]) -> list[list[tuple[Evidence, ...]]]:
    """The evidence by round: each near passage alone, then each other passage alone, then the first two together."""
    if not evidence:
        return []
    threshold = max(source.nearness for source in evidence) - NEAR
    near_sources = [source for n, source in enumerate(evidence) if n == 0 or source.nearness >= threshold]
    rounds: list[list[tuple[Evidence, ...]]] = [[(source,) for source in near_sources]]
    rounds += [[(source,)] for source in evidence if source not in near_sources]
    return [*rounds, [tuple(evidence[:_PASSAGES_TOGETHER])]] if len(evidence) >= _PASSAGES_TOGETHER else rounds


def _final_finding(findings: Sequence[Finding]) -> Finding:
    """The best finding for a sentence, with the further ones that support it as well.

    If several support it, the first one counts, whose passage is the nearest. A passage that only repeats the text of
    another is left out.
    """
    if not (supported_findings := _supported(findings)):
        return _best_finding(findings)
    distinct_findings = list[Finding]()
    for finding in supported_findings:
        if not any(repeats(_text(finding), _text(other)) for other in distinct_findings):
            distinct_findings.append(finding)
    return replace(distinct_findings[0], further=tuple(distinct_findings[1:]))


def _text(finding: Finding) -> str:
    return " ".join(evidence.passage.text for evidence in finding.evidence)


def _best_finding(findings: Sequence[Finding]) -> Finding:
    """The finding with the best state; among equals, the one with fewer passages, then with the higher probability."""
    return max(
        findings,
        key=lambda finding: (
            _STATE_ORDER.index(finding.verdict.state),
            -len(finding.evidence),
            finding.verdict.probability,
        ),
        default=Finding((), Verdict(0.0, "not")),
    )
