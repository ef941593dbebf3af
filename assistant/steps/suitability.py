"""Leaves out of a turn what clashes with the person's facts, such as peanut butter for somebody with a peanut allergy.

It is first removed from the text that the model reads, since a small model copies whatever its passages list, and then
from the reply. If nothing of a reply is left, a sentence that answers is quoted from what is left of the passages. From
a list only the clashing items are left out, from any other text the whole sentence. A reply from the model's own
knowledge ends before the first sentence that clashes, since later ones may refer to it ("These dishes are quick"). The
person is told what was left out because of which fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from statistics import median
from threading import Event

from assistant.errors import SequiturError
from assistant.flow.timing import timed
from assistant.prompting.render import render
from assistant.protocols import LLM, Parts, SuitabilityJudge
from assistant.steps import cite
from assistant.steps import quote as quote_step
from assistant.steps.closed_book import unbacked
from assistant.text.markers import extract_markers
from assistant.text.sentences import normalise, quote, sentences
from assistant.types import Answer, OmittedText, Options, Turn
from assistant.wording.replies import fixed

# What introduces a list, and what joins its last two items.
_INTRODUCTIONS = (": ", " such as ", " including ")
_CONJUNCTIONS = (" and ", " or ")
# A longer last item likely includes the rest of the sentence, which can't be removed. Any other item that is longer is
# likely a clause: 99 of 100 items of lists taken apart by hand are shorter (tests/data/suitability_lists.jsonl).
_MAX_LAST_ITEM_WORDS, _MAX_ITEM_WORDS = 5, 7
_EVEN_ODDS = 0.5
_FIRST_ITEM = Options(max_tokens=24, stop=("\n",))


def passages(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Removes from `digests` what clashes with a fact, and adds it to `left_out`."""
    if not turn.facts or parts.suitability is None or stop.is_set():
        yield turn
        return
    try:
        sieve = Sieve(parts.suitability, parts.llm, [fact.text for fact in turn.facts], turn.question, stop)
        sifted = [(digest, *sieve.sift(digest.text)) for digest in turn.digests]
    except SequiturError as error:
        yield turn.with_event("suitability_failed", error)
        return
    digests = tuple(replace(digest, text=text) if left_out else digest for digest, text, left_out in sifted)
    all_left_out = tuple(
        replace(item, passage_id=digest.passage_id) for digest, _, left_out in sifted for item in left_out
    )
    yield replace(turn, digests=digests, left_out=all_left_out)


def reply(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Removes what clashes from the `answer`, which is then checked and cited again, or from a guess."""
    answer = turn.answer
    if not turn.facts or answer is None or parts.suitability is None or stop.is_set():
        yield turn
        return
    sieve = Sieve(parts.suitability, parts.llm, [fact.text for fact in turn.facts], turn.question, stop)
    try:
        if answer.unknown:
            text, left_out = sieve.cut_off(turn.own_answer)
        else:
            text, left_out = (sieve.cut_off if answer.outcome == "own" else sieve.sift)(
                extract_markers(answer.text).text
            )
    except SequiturError as error:
        yield turn.with_event("suitability_failed", error)
        return
    turn = replace(turn, left_out=(*turn.left_out, *left_out))
    if answer.unknown:
        yield replace(turn, own_answer=text)
    elif not left_out:
        yield turn
    elif not text:
        yield from _quoted_instead(turn, answer, sieve, parts, stop)
    elif answer.outcome == "own":
        yield replace(turn, answer=unbacked(text))
    else:
        yield from _cited_again(replace(turn, answer=replace(answer, text=text)), parts, stop)


def _cited_again(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """The turn with what is left of its answer cited; it counts as the model's own if no passage supports it.

    There is no second look at it, since it is a part of a reply that has passed the second look.
    """
    text = turn.answer.text if turn.answer else ""
    turn = replace(turn, sentences=(), citations=())
    if cite.is_due(turn, parts):
        for turn in timed("citations", cite.citations, turn, parts, stop):
            yield turn
    if turn.answer and turn.answer.unknown:
        turn = replace(turn.with_event("unsupported"), answer=unbacked(text), sentences=(), citations=())
    yield turn


def _quoted_instead(turn: Turn, answer: Answer, sieve: Sieve, parts: Parts, stop: Event) -> Iterator[Turn]:
    """The turn with a sentence quoted from what is left of its passages; a fixed reply if none answers and suits.

    If the answer was the model's own, nothing is quoted: that was tried before, or no passage answers.
    """
    unsuited_turn = replace(turn, answer=fixed("unsuited"), sentences=(), citations=())
    emptied_turn = replace(unsuited_turn, answer=replace(answer, text="", unknown=True))
    if not quote_step.is_due(emptied_turn, parts):
        yield unsuited_turn
        return
    *_, quoted_turn = timed("quote", quote_step.run, emptied_turn, parts, stop)
    quoted = quoted_turn.answer
    try:
        suits = quoted and not quoted.unknown and not sieve.sift(extract_markers(quoted.text).text)[1]
    except SequiturError as error:
        yield unsuited_turn.with_event("suitability_failed", error)
        return
    yield quoted_turn if suits else replace(unsuited_turn, timings=quoted_turn.timings)


def _split_list(sentence: str) -> tuple[str, list[str], str]:
    """The sentence up to its list, the items of the list, and the punctuation at its end."""
    start = max(
        sentence.rfind(introduction) + len(introduction) if introduction in sentence else 0
        for introduction in _INTRODUCTIONS
    )
    body = sentence[start:].rstrip(" .!?")
    *items, last = (item.strip() for item in body.replace("; ", ", ").split(", "))
    may_be_joined = (items or start) and last == _unjoined(last)
    conjunction = next((candidate for candidate in _CONJUNCTIONS if candidate in last), "") if may_be_joined else ""
    second_last, _, last = last.rpartition(conjunction) if conjunction else ("", "", last)
    items += [second_last] if second_last else []
    return sentence[:start], [*items, _joined(conjunction, last)], sentence[start + len(body) :]


def _holds_beginning(items: Sequence[str]) -> bool:
    """Whether the first item contains the beginning of the sentence: it has more words than most other items.

    That holds for 193 of 200 such items in lists taken apart by hand (tests/data/suitability_lists*.jsonl).
    """
    first, *others = (len(_unjoined(item).split()) for item in items)
    return first > median(others)


def _joined(conjunction: str, item: str) -> str:
    return f"{conjunction.strip()} {item}" if conjunction else item


def _unjoined(item: str) -> str:
    return item.removeprefix("and ").removeprefix("or ")


@dataclass(frozen=True, slots=True)
class Sieve:
    """Removes from texts what clashes with the facts, in reply to the question."""

    judge: SuitabilityJudge
    llm: LLM
    facts: Sequence[str]
    question: str
    stop: Event

    def cut_off(self, text: str) -> tuple[str, list[OmittedText]]:
        """The text up to the first sentence that clashes, and that sentence as what was left out."""
        spans = sentences(text)
        for span, fact in zip(spans, self._clashing([quote(text, span) for span in spans]), strict=True):
            if fact:
                return text[: span.start].strip(), [OmittedText(quote(text, span), fact)]
        return text, []

    def sift(self, text: str) -> tuple[str, list[OmittedText]]:
        """The text without what clashes, and what was left out of it: from a list only its clashing items."""
        spans = sentences(text)
        pieces, all_left_out, end = list[str](), list[OmittedText](), 0
        for span, fact in zip(spans, self._clashing([quote(text, span) for span in spans]), strict=True):
            sentence = quote(text, span)
            remainder, left_out = self._cut(sentence, fact) if fact else (sentence, [])
            pieces += [text[end : span.start], remainder]
            all_left_out += left_out
            end = span.end
        return ("".join(pieces).strip(), all_left_out) if all_left_out else (text, [])

    def _cut(self, sentence: str, fact: str) -> tuple[str, list[OmittedText]]:
        """What is kept of a sentence that clashes, and what is left out: the clashing items of a list, else everything.

        If no item clashes by itself, the sentence clashes as a whole, or isn't a list.
        """
        introduction, items, punctuation = _split_list(sentence)
        clashes = self._likeliest_clashes(items) if len(items) > 1 else []
        reasons = self._reasons_of_items(clashes)
        if not introduction and reasons and reasons[0] and not all(reasons) and _holds_beginning(items):
            introduction, items[0] = self._beginning(sentence, items[0])
            if not introduction:
                return "", [OmittedText(sentence, fact)]
            clashes[:1] = self._likeliest_clashes(items[:1])
            reasons = self._reasons_of_items(clashes)
        kept_items = [item for item, reason in zip(items, reasons, strict=False) if not reason]
        removed_items = [item for item, reason in zip(items, reasons, strict=False) if reason]
        loses_more = any(
            len(_unjoined(item).split()) > (_MAX_LAST_ITEM_WORDS if item == items[-1] else _MAX_ITEM_WORDS)
            for item in removed_items
        )
        if not kept_items or loses_more or not removed_items:
            return "", [OmittedText(sentence, fact)]
        text = f"{introduction}{', '.join([_unjoined(kept_items[0]), *kept_items[1:]])}{punctuation}"
        left_out = [OmittedText(_unjoined(item), reason) for item, reason in zip(items, reasons, strict=True) if reason]
        return text[:1].upper() + text[1:], left_out

    def _beginning(self, sentence: str, first: str) -> tuple[str, str]:
        """Splits the first item of a list without an introduction: the beginning of the sentence, and the item itself.

        The beginning is "" if the language model finds none, or can't be asked. What the model writes counts if the
        text ends with it, whatever the articles.
        """
        with suppress(SequiturError):
            [completion] = self.llm.complete([render("list_start", sentence=sentence)], _FIRST_ITEM, self.stop)
            written, words = normalise(completion.text), first.split(" ")
            for n in range(1, len(words)):
                beginning, item = " ".join(words[:n]), " ".join(words[n:])
                if normalise(beginning) and written and normalise(item) == written:
                    return f"{beginning} ", item
        return "", first

    def _reasons_of_items(self, clashes: Sequence[tuple[str, float]]) -> list[str]:
        """For each item of a list the fact it clashes with, "" for none.

        If one item clashes, even odds are enough for the others, since the items of a list are alike.
        """
        threshold = self.judge.threshold
        if any(likelihood >= threshold for _, likelihood in clashes):
            threshold = min(threshold, _EVEN_ODDS)
        return [fact if likelihood >= threshold else "" for fact, likelihood in clashes]

    def _clashing(self, texts: Sequence[str]) -> list[str]:
        """For each text the fact it clashes with, "" for none."""
        clashes = self._likeliest_clashes(texts)
        return [fact if likelihood >= self.judge.threshold else "" for fact, likelihood in clashes]

    def _likeliest_clashes(self, texts: Sequence[str]) -> list[tuple[str, float]]:
        """For each text the fact that it most likely clashes with, and how likely."""
        rows = self.judge.clashes(self.facts, texts, self.stop, self.question)
        return [max(zip(self.facts, column, strict=True), key=itemgetter(1)) for column in zip(*rows, strict=True)]
