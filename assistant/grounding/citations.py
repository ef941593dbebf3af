"""Ties the sentences of an answer to the passages that say the same.

A judge of support reads each sentence, as a reply to the question, beside the few passages nearest to it. What it finds
supported, in full or partly, is cited, numbered by first use; numbers that the model wrote are hints on where to look.
A sentence that no passage says is marked and stays, and an answer of such sentences alone counts as unknown.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event

import numpy as np
from numpy.typing import NDArray

from assistant.errors import ModelError, SequiturError
from assistant.flow.timing import timed
from assistant.judges.addresses import addressed
from assistant.protocols import Embedder, Parts, SupportJudge
from assistant.text.markers import Marked, read
from assistant.text.overlap import coverage
from assistant.text.sentences import around, quote, sentences
from assistant.types import (
    Answer,
    Citation,
    Claim,
    Passage,
    Sentence,
    Span,
    Turn,
    Verdict,
)

_LOG = logging.getLogger(__name__)
NOT_LOOKED_AT = "Whether the reply answers the question was not looked at: "
SET_ASIDE = "A reply was set aside: looked at again, it didn't answer the question as its sources tell."
NOT_CHECKED = "The sentences were not checked against the passages: "

# A block of code, from fence to fence.
_BLOCK = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_LAST_BAR = re.compile(r"\s*\|$")
# Words of a bare phrase, at most; scripts that put no spaces between words have about two characters a word.
_PHRASE = 2
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
# Passages that the judge reads beside one sentence, the nearest: each alone, and the first of them together, too. Of a
# long reply it reads fewer beside each sentence, one at least, and about so many in all; so many words of each.
_READ, _TOGETHER, _ALL, _WORDS = 3, 2, 60, 80
_ORDER = ("not", "partly", "supported")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that may support a sentence, and the span in it that is nearest to the sentence.

    `nearness` is the cosine of that span, in [-1, 1], plus the share of the sentence's words that the passage has.
    """

    passage: Passage
    span: Span
    nearness: float


@dataclass(frozen=True, slots=True)
class Finding:
    """What a sentence was read beside, one passage or two, and what the judge said."""

    evidence: tuple[Evidence, ...]
    verdict: Verdict


def settle(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `sentences` and `citations` to a chat answer that claims to know; without support it becomes unknown.

    Then language model and judge look at the reply beside what was cited: one that doesn't answer the question so is
    unknown, too. Where a judge can't be used, nothing is checked by it, and an event says why.
    """
    if turn.choices.form == "factoid" or turn.answer is None or turn.answer.unknown or stop.is_set():
        yield turn
        return
    reply = read(turn.answer.text).text
    for turn in timed("citations", _cite, turn, parts, stop):
        yield turn
    if turn.citations and parts.settings.turn.addresses_threshold and not stop.is_set():
        yield from timed("addresses", partial(_look_again, reply), turn, parts, stop)


def _look_again(reply: str, turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    try:
        passed = addressed(turn, reply, parts, stop)
    except SequiturError as error:
        yield turn.told(f"{NOT_LOOKED_AT}{error}")
        return
    if turn.answer and not passed and not stop.is_set():
        turn = replace(turn.told(SET_ASIDE), answer=replace(turn.answer, unknown=True))
    yield turn


def _cite(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    marked = read(turn.answer.text if turn.answer else "", most=len(turn.passages))
    spans = _stretches(marked.text)
    texts = _claims([quote(marked.text, span) for span in spans])
    hinted = [_hinted(marked, span, turn.passages) for span in spans]
    evidence = gather(texts, turn.passages, hinted, parts.embedder)
    try:
        found = _judged(texts, evidence, turn, parts, stop)
    except Exception as error:  # noqa: BLE001 - a model may fail in any way, and the answer is there without it
        yield _written(turn.told(_why(error)), marked.text, spans, [None] * len(spans))
        return
    if not stop.is_set():
        turn = _written(turn, marked.text, spans, found)
        turn = replace(turn, answer=replace(turn.answer or Answer(""), unknown=not turn.citations))
    yield turn


def _why(error: Exception) -> str:
    """The event that tells why nothing was checked."""
    if isinstance(error, SequiturError):
        return f"{NOT_CHECKED}{error}"
    _LOG.error("the judge of support failed", exc_info=error)
    return f"{NOT_CHECKED}the judge failed ({error})."


def _stretches(text: str) -> list[Span]:
    """The sentences of a reply; a block of code counts as one, since a marker inside it would be a part of the code."""
    blocks = [Span(*match.span()) for match in _BLOCK.finditer(text)]
    outside = (one for one in sentences(text) if not any(one.start < b.end and b.start < one.end for b in blocks))
    return sorted((*blocks, *outside), key=lambda span: span.start)


def is_claim(sentence: str) -> bool:
    """Whether a sentence says something that a passage could support: not a question, a heading or a bare phrase."""
    return _says(sentence) and (len(sentence.split()) > _PHRASE or len(_UNSPACED.findall(sentence)) > 2 * _PHRASE)


def _says(sentence: str) -> bool:
    return not sentence.rstrip("*_ ").endswith(("?", ":"))


def _claims(texts: Sequence[str]) -> list[str]:
    """The sentences that are claims, "" for others; of an answer that is but a phrase, that."""
    found = [text if is_claim(text) else "" for text in texts]
    return found if any(found) else [text if _says(text) else "" for text in texts]


def gather(
    texts: Sequence[str], passages: Sequence[Passage], hinted: Sequence[frozenset[str]], embedder: Embedder
) -> list[list[Evidence]]:
    """For each text, the few passages most likely to support it, best first; none for an empty text.

    A passage is as near as its nearest sentence is in meaning and the whole of it in words, since of two that speak of
    the same matter the one with the sentence's own words was read. One that the model pointed at comes first.
    """
    places = [(passage, span) for passage in passages for span in sentences(passage.text)]
    if not places or not any(texts):
        return [[] for _ in texts]
    vectors = embedder.encode([*texts, *(f"{p.title}: {quote(p.text, span)}" for p, span in places)])
    similarity = vectors[: len(texts)] @ vectors[len(texts) :].T
    most = max(1, min(_READ, _ALL // sum(map(bool, texts))))
    return [
        _nearest(text, row, places, hints)[:most] if text else []
        for text, row, hints in zip(texts, similarity, hinted, strict=True)
    ]


def _nearest(
    text: str, row: NDArray[np.float32], places: list[tuple[Passage, Span]], hints: frozenset[str]
) -> list[Evidence]:
    best: dict[str, Evidence] = {}
    for score, (passage, span) in zip(row.tolist(), places, strict=True):
        if passage.id not in best or score > best[passage.id].nearness:
            best[passage.id] = Evidence(passage, span, score)
    found = [replace(one, nearness=one.nearness + coverage(text, one.passage.titled)) for one in best.values()]
    return sorted(found, key=lambda one: (one.passage.id not in hints, -one.nearness))


def _hinted(marked: Marked, span: Span, passages: Sequence[Passage]) -> frozenset[str]:
    """The passages that the markers in or right behind a sentence point at; a number out of range points nowhere."""
    numbers = [n for place, listed in marked.hints if span.start < place <= span.end + 1 for n in listed]
    return frozenset(passages[n - 1].id for n in numbers if 1 <= n <= len(passages))


def _judged(
    texts: Sequence[str], evidence: Sequence[Sequence[Evidence]], turn: Turn, parts: Parts, stop: Event
) -> list[Finding | None]:
    """The best that the judge says of each sentence; None for one that claims nothing.

    The nearest passage is read first, the next only for sentences that are not supported yet, and two together last.
    """
    judge, given = _judge(parts) if any(texts) else None, " ".join(turn.used_facts)
    beside = [_beside(found) for found in evidence]
    found: list[list[Finding]] = [[] for _ in texts]
    for place in range(_READ + 1):
        open_ = [n for n, some in enumerate(beside) if len(some) > place and not _is_supported(found[n])]
        if judge is None or not open_ or stop.is_set():
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


def _judge(parts: Parts) -> SupportJudge:
    if parts.support is None:
        raise ModelError("no judge is set.")
    return parts.support(parts.llm)


def _best(found: Sequence[Finding]) -> Finding:
    """The finding that says most for a sentence; one passage that says as much as two is enough."""
    return max(
        found,
        key=lambda one: (_ORDER.index(one.verdict.state), -len(one.evidence), one.verdict.probability),
        default=Finding((), Verdict(0.0, "not")),
    )


def _written(turn: Turn, text: str, spans: Sequence[Span], found: Sequence[Finding | None]) -> Turn:
    """The turn with its answer written anew: markers behind the sentences that have support.

    Those of a table's row stand inside its last cell, since what follows the last bar is not shown, and those of a
    block of code beneath it.
    """
    numbers: dict[str, int] = {}
    cited: list[Citation] = []
    pieces: list[str] = []
    result: list[Sentence] = []
    last = 0
    for span, finding in zip(spans, found, strict=True):
        sentence = quote(text, span)
        here = _citations(finding, sentence, numbers) if finding else []
        cited.extend(here)
        result.append(_sentence(sentence, finding, here))
        last, before = span.start + len(_LAST_BAR.sub("", sentence)), last
        markers = "".join(f" [{citation.n}]" for citation in here)
        pieces.append(text[before:last] + (_beneath(markers) if _BLOCK.match(sentence) else markers))
    answer = replace(turn.answer or Answer(""), text="".join(pieces) + text[last:])
    return replace(turn, answer=answer, sentences=tuple(result), citations=tuple(cited))


def _sentence(text: str, finding: Finding | None, cited: Sequence[Citation]) -> Sentence:
    """The sentence as it was found; code that no passage says is no claim."""
    if finding is None or (_BLOCK.match(text) and not cited):
        return Sentence(text, "unchecked", finding.verdict.probability if finding else None)
    verdict = finding.verdict
    return Sentence(text, verdict.state, verdict.probability, tuple(one.n for one in cited))


def _beneath(markers: str) -> str:
    """The markers as a paragraph of their own."""
    return f"\n\n{markers.strip()}\n" if markers else ""


def _citations(finding: Finding, sentence: str, numbers: dict[str, int]) -> list[Citation]:
    """What a sentence is cited with; `numbers` grows by the passages that have none yet."""
    if finding.verdict.state == "not":
        return []
    partly, support = finding.verdict.state == "partly", finding.verdict.probability
    return [
        Citation(
            n=numbers.setdefault(one.passage.id, len(numbers) + 1),
            passage_id=one.passage.id,
            start=one.span.start,
            end=one.span.end,
            sentence=sentence,
            quote=quote(one.passage.text, one.span),
            support=support,
            partly=partly,
        )
        for one in finding.evidence
    ]
