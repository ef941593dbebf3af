"""Keeps what clashes with what the person said of themselves out of a turn: peanut butter, for a peanut allergy.

It is taken out of what the model reads, since a small one copies whatever its passages list, and then out of what it
wrote. Of a list only the items that clash are left out, of any other sentence all of it. The person is told what was
left out and for which fact, and can judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Event

from assistant.errors import SequiturError
from assistant.protocols import Parts, SuitabilityJudge
from assistant.steps import cite
from assistant.steps.closed_book import unbacked
from assistant.text.markers import read
from assistant.text.sentences import quote, sentences
from assistant.types import LeftOut, Turn
from assistant.wording.replies import fixed

# What leads to a list besides a colon, and what joins its last two items.
_LEADS = (": ", " such as ", " including ")
_LAST = (" and ", " or ")
# A last item of more words likely ends with the end of the sentence, which can't go.
_ITEM = 5
# So many items are a list, if the last is joined to them.
_LIST = 3


def passages(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Takes out of `digests` what clashes with a fact that is on, and adds it to `left_out`."""
    if not turn.facts or parts.suitability is None or stop.is_set():
        yield turn
        return
    try:
        sieve = _Sieve(parts.suitability, [fact.text for fact in turn.facts], stop)
        cut = [(digest, *sieve.sift(digest.text)) for digest in turn.digests]
    except SequiturError as error:
        yield turn.with_event("suitability_failed", error)
        return
    digests = tuple(replace(digest, text=text) if out else digest for digest, text, out in cut)
    left = tuple(replace(one, passage_id=digest.passage_id) for digest, _, out in cut for one in out)
    yield replace(turn, digests=digests, left_out=left)


def reply(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Takes the same out of the `answer`, whose sentences are then checked anew."""
    answer = turn.answer
    if not turn.facts or answer is None or answer.unknown or parts.suitability is None or stop.is_set():
        yield turn
        return
    written = read(answer.text).text
    try:
        text, out = _Sieve(parts.suitability, [fact.text for fact in turn.facts], stop).sift(written)
    except SequiturError as error:
        yield turn.with_event("suitability_failed", error)
        return
    turn = replace(turn, left_out=(*turn.left_out, *out))
    if not out:
        yield turn
    elif not text:
        yield replace(turn, answer=fixed("unsuited"), sentences=(), citations=())
    elif answer.outcome == "own":
        yield replace(turn, answer=unbacked(text))
    else:
        turn = replace(turn, answer=replace(answer, text=text), sentences=(), citations=())
        for turn in cite.run(turn, parts, stop):
            yield turn
        if turn.answer and turn.answer.unknown:
            yield replace(turn.with_event("unsupported"), answer=unbacked(text), sentences=(), citations=())


def _listed(sentence: str) -> tuple[str, list[str], str]:
    """What leads to a list, such as a colon; its items; and the punctuation at its end."""
    start = max(sentence.rfind(lead) + len(lead) if lead in sentence else 0 for lead in _LEADS)
    bare = sentence[start:].rstrip(" .!?")
    *items, last = (item.strip() for item in bare.replace("; ", ", ").split(", "))
    may_join = (items or start) and last == _unjoined(last)
    joint = next((one for one in _LAST if one in last), "") if may_join else ""
    before, _, behind = last.rpartition(joint) if joint else ("", "", last)
    return (
        sentence[:start],
        [*items, *([before] if before else []), _joined(joint, behind)],
        sentence[start + len(bare) :],
    )


def _joined(joint: str, item: str) -> str:
    return f"{joint.strip()} {item}" if joint else item


def _unjoined(item: str) -> str:
    return item.removeprefix("and ").removeprefix("or ")


@dataclass(frozen=True, slots=True)
class _Sieve:
    judge: SuitabilityJudge
    facts: Sequence[str]
    stop: Event

    def sift(self, text: str) -> tuple[str, list[LeftOut]]:
        """The text without what clashes, and what that was."""
        spans = sentences(text)
        pieces, out, end = list[str](), list[LeftOut](), 0
        for span, fact in zip(spans, self._clashing([quote(text, span) for span in spans]), strict=True):
            sentence = quote(text, span)
            rest, gone = self._cut(sentence, fact) if fact else (sentence, [])
            pieces += [text[end : span.start], rest]
            out += gone
            end = span.end
        return ("".join(pieces).strip(), out) if out else (text, [])

    def _cut(self, sentence: str, fact: str) -> tuple[str, list[LeftOut]]:
        """What is left of a sentence that clashes, and what was left out: of a list the items that clash, else all.

        A list clashes because of one of its items at least: where none clashes by itself, the likeliest is left out.
        """
        lead, items, stop = _listed(sentence)
        is_list = len(items) >= _LIST and items[-1] != _unjoined(items[-1])
        found = self._clashing(items, one_at_least=is_list) if len(items) > 1 else []
        kept = [item for item, why in zip(items, found, strict=False) if not why]
        ends = found and found[-1] and len(_unjoined(items[-1]).split()) > _ITEM
        if not kept or ends or len(kept) == len(items):
            return "", [LeftOut(sentence, fact)]
        text = f"{lead}{', '.join([_unjoined(kept[0]), *kept[1:]])}{stop}"
        gone = [LeftOut(_unjoined(item), why) for item, why in zip(items, found, strict=True) if why]
        return text[:1].upper() + text[1:], gone

    def _clashing(self, texts: Sequence[str], *, one_at_least: bool = False) -> list[str]:
        """For each text the fact that it clashes with most surely, "" for none; or that of the surest text alone."""
        rows = self.judge.clashes(self.facts, texts, self.stop)
        worst = [max(range(len(self.facts)), key=lambda n: rows[n][place]) for place in range(len(texts))]
        sure = [rows[n][place] for place, n in enumerate(worst)]
        least = min(self.judge.threshold, max(sure)) if one_at_least and texts else self.judge.threshold
        return [self.facts[n] if one >= least else "" for n, one in zip(worst, sure, strict=True)]
