"""Leaves out of a turn what clashes with the person's facts, such as peanut butter for somebody with a peanut allergy.

First it is removed from the text that the model reads, since a small model copies whatever its passages list, and then
from the reply. Of a list only the clashing items are left out, of any other text the whole sentence. What the model
says by itself ends before the first sentence that clashes, since what follows goes on from it ("These dishes are
quick"). The person is told what was left out because of which fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from threading import Event

from assistant.errors import SequiturError
from assistant.flow.timing import timed
from assistant.protocols import Parts, SuitabilityJudge
from assistant.steps import cite
from assistant.steps.closed_book import unbacked
from assistant.text.markers import read
from assistant.text.sentences import quote, sentences
from assistant.types import LeftOut, Turn
from assistant.wording.replies import fixed

# What introduces a list, and what joins its last two items.
_LEADS = (": ", " such as ", " including ")
_LAST = (" and ", " or ")
# A longer last item likely includes the rest of the sentence, which can't be removed. Any longer one likely is a
# clause: 99 of 100 items of lists taken apart by hand have no more words (tests/data/suitability_lists.jsonl).
_LAST_ITEM, _ITEM = 5, 7


def passages(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Removes from `digests` what clashes with a fact, and adds it to `left_out`."""
    if not turn.facts or parts.suitability is None or stop.is_set():
        yield turn
        return
    try:
        sieve = _Sieve(parts.suitability, [fact.text for fact in turn.facts], turn.question, stop)
        cut = [(digest, *sieve.sift(digest.text)) for digest in turn.digests]
    except SequiturError as error:
        yield turn.with_event("suitability_failed", error)
        return
    digests = tuple(replace(digest, text=text) if out else digest for digest, text, out in cut)
    left = tuple(replace(one, passage_id=digest.passage_id) for digest, _, out in cut for one in out)
    yield replace(turn, digests=digests, left_out=left)


def reply(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Removes what clashes from the `answer`, whose sentences are then checked and cited again, or from a guess."""
    answer = turn.answer
    if not turn.facts or answer is None or parts.suitability is None or stop.is_set():
        yield turn
        return
    sieve = _Sieve(parts.suitability, [fact.text for fact in turn.facts], turn.question, stop)
    try:
        if answer.unknown:
            text, out = sieve.cut_off(turn.own_answer)
        else:
            text, out = (sieve.cut_off if answer.outcome == "own" else sieve.sift)(read(answer.text).text)
    except SequiturError as error:
        yield turn.with_event("suitability_failed", error)
        return
    turn = replace(turn, left_out=(*turn.left_out, *out))
    if answer.unknown:
        yield replace(turn, own_answer=text)
    elif not out:
        yield turn
    elif not text:
        yield replace(turn, answer=fixed("unsuited"), sentences=(), citations=())
    elif answer.outcome == "own":
        yield replace(turn, answer=unbacked(text))
    else:
        yield from _cited_again(replace(turn, answer=replace(answer, text=text)), parts, stop)


def _cited_again(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """The turn with what is left of its answer cited; as the model's own if no passage says it.

    It is not looked at a second time as a whole: the whole reply has passed that, and this is a part of it.
    """
    text = turn.answer.text if turn.answer else ""
    turn = replace(turn, sentences=(), citations=())
    if cite.is_due(turn, parts):
        for turn in timed("citations", cite.citations, turn, parts, stop):
            yield turn
    if turn.answer and turn.answer.unknown:
        turn = replace(turn.with_event("unsupported"), answer=unbacked(text), sentences=(), citations=())
    yield turn


def _listed(sentence: str) -> tuple[str, list[str], str]:
    """The sentence up to its list, the items of the list, and the punctuation at its end."""
    start = max(sentence.rfind(lead) + len(lead) if lead in sentence else 0 for lead in _LEADS)
    body = sentence[start:].rstrip(" .!?")
    *items, last = (item.strip() for item in body.replace("; ", ", ").split(", "))
    may_join = (items or start) and last == _unjoined(last)
    joint = next((word for word in _LAST if word in last), "") if may_join else ""
    second_last, _, last = last.rpartition(joint) if joint else ("", "", last)
    items += [second_last] if second_last else []
    return sentence[:start], [*items, _joined(joint, last)], sentence[start + len(body) :]


def _holds_beginning(items: Sequence[str]) -> bool:
    """Whether the first item has more words than the others mostly have, as 193 of 200 have that begin a sentence.

    These are the first items of lists taken apart by hand (tests/data/suitability_lists*.jsonl).
    """
    first, *others = (len(_unjoined(item).split()) for item in items)
    return first > median(others)


def _joined(joint: str, item: str) -> str:
    return f"{joint.strip()} {item}" if joint else item


def _unjoined(item: str) -> str:
    return item.removeprefix("and ").removeprefix("or ")


@dataclass(frozen=True, slots=True)
class _Sieve:
    """Removes from texts what clashes with the facts, in reply to the question."""

    judge: SuitabilityJudge
    facts: Sequence[str]
    question: str
    stop: Event

    def cut_off(self, text: str) -> tuple[str, list[LeftOut]]:
        """The text up to the first sentence that clashes, and that sentence as what was left out."""
        spans = sentences(text)
        for span, fact in zip(spans, self._clashing([quote(text, span) for span in spans]), strict=True):
            if fact:
                return text[: span.start].strip(), [LeftOut(quote(text, span), fact)]
        return text, []

    def sift(self, text: str) -> tuple[str, list[LeftOut]]:
        """The text without what clashes, and what was left out of it: of a list only its clashing items."""
        spans = sentences(text)
        pieces, out, end = list[str](), list[LeftOut](), 0
        for span, fact in zip(spans, self._clashing([quote(text, span) for span in spans]), strict=True):
            sentence = quote(text, span)
            kept, left_out = self._cut(sentence, fact) if fact else (sentence, [])
            pieces += [text[end : span.start], kept]
            out += left_out
            end = span.end
        return ("".join(pieces).strip(), out) if out else (text, [])

    def _cut(self, sentence: str, fact: str) -> tuple[str, list[LeftOut]]:
        """What is kept of a sentence that clashes, and what is left out: of a list the items that clash, else all.

        Where no item clashes by itself, the sentence does as a whole, or is no list. Where nothing introduces the list,
        its first item may hold the beginning of the sentence, and all goes with it.
        """
        lead, items, stop = _listed(sentence)
        reasons = self._clashing(items) if len(items) > 1 else []
        kept = [item for item, reason in zip(items, reasons, strict=False) if not reason]
        removed = [item for item, reason in zip(items, reasons, strict=False) if reason]
        loses_more = any(len(_unjoined(one).split()) > (_LAST_ITEM if one == items[-1] else _ITEM) for one in removed)
        is_headless = not lead and bool(removed and reasons[0]) and _holds_beginning(items)
        if not kept or loses_more or is_headless or not removed:
            return "", [LeftOut(sentence, fact)]
        text = f"{lead}{', '.join([_unjoined(kept[0]), *kept[1:]])}{stop}"
        left_out = [LeftOut(_unjoined(item), reason) for item, reason in zip(items, reasons, strict=True) if reason]
        return text[:1].upper() + text[1:], left_out

    def _clashing(self, texts: Sequence[str]) -> list[str]:
        """For each text the fact it clashes with, "" for none."""
        rows = self.judge.clashes(self.facts, texts, self.stop, self.question)
        worst = [max(range(len(self.facts)), key=lambda n: rows[n][column]) for column in range(len(texts))]
        likelihoods = [rows[n][column] for column, n in enumerate(worst)]
        sure = self.judge.threshold
        return [self.facts[n] if likely >= sure else "" for n, likely in zip(worst, likelihoods, strict=True)]
