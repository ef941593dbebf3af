"""Ties the sentences of an answer to the sentences of passages that say the same.

Numbers that the model wrote are hints. Each sentence is compared to the sentences of the passages; those that support
it are cited, numbered by first use. A sentence that nothing supports is marked, and an answer without a supported
sentence counts as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations
from threading import Event

import numpy as np
from numpy.typing import NDArray

from assistant.clock import timed
from assistant.figures import Higher, higher, spelt_out
from assistant.retrieve.sides import sides
from assistant.support import Claim, Shown, compares, complete_each_other, coverage, mentions_all, mixes_up, supports
from assistant.text import appended, normalise, quote, sentences
from assistant.types import Answer, Citation, Embedder, Parts, Passage, Sentence, Span, Turn

# [1], [1][2], [1, 2], [1-3], [^1] and their full-width and CJK forms, 【1†source】; not inside `code`, not [0] or x[1].
_MARKER = re.compile(
    r"[ \t]*(?<!\b[a-z])[\[【［]\^?([1-9]\d?(?:\s*[,;、–-]\s*\^?[1-9]\d?)*)(?:†[^\]】］\n]*)?[\]】］]+"
)
_CODE = re.compile(r"```.*?(?:```|$)|`[^`\n]*`", re.DOTALL)
# A block of code, from fence to fence.
_BLOCK = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_LAST_BAR = re.compile(r"\s*\|$")
# Words of a bare phrase, at most; scripts that put no spaces between words have about two characters a word.
_PHRASE = 2
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_AS_MANY = re.compile(r"\bas (?:many|much)\b|\b(?:twice|half|double|times) (?:as|the|that)\b", re.IGNORECASE)
_WEIGHS = re.compile(r"\b(?:compar\w+|differ\w*|better|best|worse|worst|vs|versus|both)\b", re.IGNORECASE)
# How many passages are asked about one sentence, the nearest first.
_ASKED = 2


@dataclass(frozen=True, slots=True)
class Marked:
    """A text without its markers, and for each marker where it stood and the numbers in it."""

    text: str
    hints: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that may support a sentence: the span that is nearest to it, and what the model is shown.

    `nearness` is the cosine of that span, in [-1, 1], plus the share of the sentence's words that the passage has.
    """

    passage: Passage
    span: Span
    shown: str
    nearness: float


@dataclass(frozen=True, slots=True)
class Judged:
    """Evidence and the support, in [0, 1], that it was found to give."""

    evidence: Evidence
    score: float


def settle(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `sentences` and `citations` to a chat answer that claims to know; without support it becomes unknown."""
    if turn.choices.form == "factoid" or turn.answer is None or turn.answer.unknown or stop.is_set():
        yield turn
    else:
        yield from timed("citations", _cite, turn, parts, stop)


def read(text: str, most: int = 99) -> Marked:
    """Take the markers out of a text, remembering where they stood; code is left alone.

    So is what names several numbers and one beyond `most`, as an interval does ("the range [10, 20]").
    """
    code = [match.span() for match in _CODE.finditer(text)]
    plain, hints, last = "", [], 0
    for match in _MARKER.finditer(text):
        listed = _listed(match.group(1))
        if any(start <= match.start() < end for start, end in code) or (len(listed) > 1 and max(listed) > most):
            continue
        plain += text[last : match.start()]
        hints.append((len(plain), listed))
        last = match.end()
    return Marked(plain + text[last:], tuple(hints))


def _listed(numbers: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in re.split(r"[,;、]", numbers):
        ends = [int(number) for number in re.findall(r"\d+", part)]
        found.extend(range(ends[0], ends[-1] + 1) if len(ends) == 2 else ends)
    return tuple(found)


def _cite(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    marked = read(turn.answer.text if turn.answer else "", most=len(turn.passages))
    spans, names = _stretches(marked.text), _compared(turn.question)
    texts = spelt_out([quote(marked.text, span) for span in spans], names)
    hinted = [_hinted(marked, span, turn.passages) for span in spans]
    evidence = gather(_claims(texts), turn.passages, hinted, parts.embedder)
    outcomes = {*map(normalise, names), "yes", "no"} if compares(turn.question) else set()
    judged = _judge(texts, _able(texts, evidence, names, outcomes), turn.contextual, parts, stop)
    if stop.is_set():
        yield turn
        return
    threshold = parts.settings.turn.support_threshold
    backed = [_best(found) >= threshold for found in judged]
    outcome = higher(texts, names, backed)
    kept = _kept(texts, backed, names, outcome)
    text, spans = _without(marked.text, spans, kept, texts)
    behind = _behind(outcome, judged, threshold) if outcome else []
    judged = [found for found, keep in zip(judged, kept, strict=True) if keep]
    if outcome and not any(_decides(quote(text, span), _of(found)) for span, found in zip(spans, judged, strict=True)):
        text, span = appended(text.rstrip(), str(outcome))
        spans, judged = [*spans, span], [*judged, behind]
    yield written(turn, text, spans, judged, threshold)


def _stretches(text: str) -> list[Span]:
    """The sentences of a reply; a block of code counts as one, since a marker inside it would be a part of the code."""
    blocks = [Span(*match.span()) for match in _BLOCK.finditer(text)]
    outside = (one for one in sentences(text) if not any(one.start < b.end and b.start < one.end for b in blocks))
    return sorted((*blocks, *outside), key=lambda span: span.start)


def _kept(texts: Sequence[str], backed: Sequence[bool], names: Sequence[str], outcome: Higher | None) -> list[bool]:
    """Whether each sentence stays: all but the outcome of a comparison that no passage tells, beside what some tell.

    Nor does one stay that the figures contradict: small models get it wrong, and don't notice it in what they check.
    """
    if not any(backed) or not names:
        return [True for _ in texts]
    told = [known or not compares(text) for text, known in zip(texts, backed, strict=True)]
    return [keep and not (outcome and outcome.contradicts(text)) for text, keep in zip(texts, told, strict=True)]


def _behind(outcome: Higher, judged: list[list[Judged]], threshold: float) -> list[Judged]:
    """What the sentences with the two figures rest on, a passage once."""
    found = [one for place in outcome.places for one in judged[place] if one.score >= threshold]
    return list({one.evidence.passage.id: one for one in found}.values())


def _without(text: str, spans: list[Span], kept: Sequence[bool], spelt: Sequence[str]) -> tuple[str, list[Span]]:
    """The text without the sentences that don't stay, and where the others then are.

    One that goes on with a sentence that is gone is `spelt` out.
    """
    pieces, places, last, gone = "", [], 0, False
    for span, keep, whole in zip(spans, kept, spelt, strict=True):
        if keep:
            pieces += text[last : span.start] if pieces else ""
            sentence = whole if gone else quote(text, span)
            places.append(Span(len(pieces), len(pieces) + len(sentence)))
            pieces += sentence
        last, gone = span.end, not keep
    return pieces + text[last:], places


def _able(
    texts: Sequence[str], evidence: list[list[Evidence]], names: Sequence[str], outcomes: Set[str]
) -> list[list[Evidence]]:
    """The evidence, of a comparison's outcome, or one of the `outcomes`, only what compares all that is compared.

    A small model takes a figure of either side for it ("Norway has more people", or "Norway", since Norway has five
    million), or that one borders on the other.
    """
    return [
        [one for one in found if _weighs_up(one.shown) and mentions_all(f"{one.passage.title} {one.shown}", names)]
        if names and (_decides(text, found) or normalise(text) in outcomes)
        else found
        for text, found in zip(texts, evidence, strict=True)
    ]


def _decides(text: str, evidence: Sequence[Evidence]) -> bool:
    """Whether a sentence says which has more; one that a passage has word for word says what it says of one thing."""
    return compares(text) and not any(text in one.shown for one in evidence)


def _of(judged: Sequence[Judged]) -> list[Evidence]:
    return [one.evidence for one in judged]


def _weighs_up(text: str) -> bool:
    return compares(text) or bool(_AS_MANY.search(text))


def _compared(question: str) -> list[str]:
    """What a question wants to be compared; nothing where its "or" is another one ("eggs or beans, say")."""
    return [side.name for side in sides(question)] if compares(question) or _WEIGHS.search(question) else []


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
    """For each text, the passages most likely to support it, best first; none for an empty text.

    A passage is as near as its nearest sentence is in meaning and the whole of it in words, since of two that speak of
    the same matter the one with the sentence's own words was read. One that the model pointed at comes first.
    """
    places = [(passage, span) for passage in passages for span in sentences(passage.text)]
    if not places or not any(texts):
        return [[] for _ in texts]
    vectors = embedder.encode([*texts, *(f"{p.title}: {quote(p.text, span)}" for p, span in places)])
    similarity = vectors[: len(texts)] @ vectors[len(texts) :].T
    return [
        _nearest(text, row, places, hints) if text else []
        for text, row, hints in zip(texts, similarity, hinted, strict=True)
    ]


def _nearest(
    text: str, row: NDArray[np.float32], places: list[tuple[Passage, Span]], hints: frozenset[str]
) -> list[Evidence]:
    by_passage: dict[str, list[tuple[float, Passage, Span]]] = {}
    for score, (passage, span) in zip(row.tolist(), places, strict=True):
        by_passage.setdefault(passage.id, []).append((score, passage, span))
    found = []
    for scored in by_passage.values():
        top = sorted(scored, key=lambda one: -one[0])[:2]
        in_order = sorted(top, key=lambda one: one[2].start)
        shown = " ".join(quote(passage.text, span) for _, passage, span in in_order)
        score, passage, span = top[0]
        found.append(Evidence(passage, span, shown, score + coverage(text, f"{passage.title} {passage.text}")))
    return sorted(found, key=lambda one: (one.passage.id not in hints, -one.nearness))


def _hinted(marked: Marked, span: Span, passages: Sequence[Passage]) -> frozenset[str]:
    """The passages that the markers in or right behind a sentence point at; a number out of range points nowhere."""
    numbers = [n for place, listed in marked.hints if span.start < place <= span.end + 1 for n in listed]
    return frozenset(passages[n - 1].id for n in numbers if 1 <= n <= len(passages))


def _judge(
    texts: Sequence[str], evidence: list[list[Evidence]], given: str, parts: Parts, stop: Event
) -> list[list[Judged]]:
    """What was asked about each sentence, in order. The next passage is asked only where the one before it failed."""
    threshold = parts.settings.turn.support_threshold
    judged: list[list[Judged]] = [[] for _ in texts]
    for place in range(_ASKED):
        still = [n for n, found in enumerate(judged) if len(evidence[n]) > place and not _best(found) >= threshold]
        asked = [evidence[n][place] for n in still]
        claims = [Claim(texts[n], one.passage.title, one.shown, given) for n, one in zip(still, asked, strict=True)]
        for n, one, score in zip(still, asked, supports(claims, parts.llm, stop), strict=True):
            judged[n].append(Judged(one, score))
    return _together(texts, evidence, judged, parts, stop)


def _together(
    texts: Sequence[str], evidence: list[list[Evidence]], judged: list[list[Judged]], parts: Parts, stop: Event
) -> list[list[Judged]]:
    """What was judged; a sentence without support on what two passages are about is asked about both.

    "Norway has 5.5 million people and Sweden 10.6" follows from a passage on each. Which is more does, too, but a small
    model can't tell.
    """
    threshold = parts.settings.turn.support_threshold
    without = [n for n, found in enumerate(judged) if not _best(found) >= threshold and not compares(texts[n])]
    pairs = {n: pair for n in without if (pair := _pair(texts[n], evidence[n]))}
    claims = [
        Claim(texts[n], one.passage.title, f"{one.shown} {other.passage.title}: {other.shown}")
        for n, (one, other) in pairs.items()
    ]
    for (n, (one, other)), score in zip(pairs.items(), supports(claims, parts.llm, stop), strict=True):
        judged[n] = [Judged(one, score), Judged(other, score)]
    return judged


def _pair(text: str, evidence: Sequence[Evidence]) -> tuple[Evidence, Evidence] | None:
    """The nearest two whose titles each name something of the text that the other's does not, and whose numbers it has.

    A number counts for what it is told of, so that what Portugal imports is not taken for Spain's exports.
    """
    shown = {one.passage.id: Shown(one.passage.title, one.shown) for one in evidence}
    for one, other in combinations(evidence, 2):
        first, second = shown[one.passage.id], shown[other.passage.id]
        if complete_each_other(text, first.title, second.title) and not mixes_up(text, first, second):
            return one, other
    return None


def _best(found: Sequence[Judged]) -> float:
    return max((one.score for one in found), default=-1.0)


def written(turn: Turn, text: str, spans: list[Span], judged: list[list[Judged]], threshold: float) -> Turn:
    """The turn with its answer written anew: markers behind the sentences that have support.

    Those of a table's row stand inside its last cell, since what follows the last bar is not shown, and those of a
    block of code beneath it.
    """
    numbers: dict[str, int] = {}
    cited: list[Citation] = []
    pieces: list[str] = []
    result: list[Sentence] = []
    last = 0
    for span, found in zip(spans, judged, strict=True):
        sentence = quote(text, span)
        here = [_citation(one, sentence, numbers) for one in found if one.score >= threshold]
        cited.extend(here)
        best = _best(found) if found else None
        code = bool(_BLOCK.match(sentence))
        result.append(Sentence(sentence, bool(here) or code or not is_claim(sentence), best, tuple(c.n for c in here)))
        last, before = span.start + len(_LAST_BAR.sub("", sentence)), last
        markers = "".join(f" [{citation.n}]" for citation in here)
        pieces.append(text[before:last] + (_beneath(markers) if code else markers))
    answer = replace(turn.answer or Answer(""), text="".join(pieces) + text[last:], unknown=not cited)
    return turn.grow(answer=answer, sentences=tuple(result), citations=tuple(cited))


def _beneath(markers: str) -> str:
    """The markers as a paragraph of their own."""
    return f"\n\n{markers.strip()}\n" if markers else ""


def _citation(one: Judged, sentence: str, numbers: dict[str, int]) -> Citation:
    passage, span = one.evidence.passage, one.evidence.span
    n = numbers.setdefault(passage.id, len(numbers) + 1)
    return Citation(n, passage.id, span.start, span.end, sentence, quote(passage.text, span), one.score)
