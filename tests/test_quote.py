"""Where the model's own words were no answer, the sentence that the estimator ranks highest may be quoted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Event

import pytest

from assistant import turn as flow
from assistant.errors import ModelError
from assistant.protocols import Parts
from assistant.settings import RelevanceSettings
from assistant.steps import quote
from assistant.steps.closed_book import unbacked
from assistant.types import Answer, Choices, Claim, Digest, Passage, Relevance, Turn, TurnEvent, Verdict
from assistant.wording.replies import FIXED
from tests.scripted import FixedRetriever, ScriptedLLM

QUESTION = "Which drink holds no lactose?"
SENTENCE = "Oat drink holds no lactose."

NOT_HELD = Answer(FIXED["not_held"], unknown=True, outcome="not_held")


@dataclass
class Likes:
    """Is sure of what has these words, and of nothing else; keeps the texts that it was asked about."""

    words: str
    sure: float = 0.9
    name: str = "likes"
    calibration: str = ""
    asked: list[list[str]] = field(default_factory=list)

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        self.asked.append([passage.text for passage in passages])
        return [Relevance.of_confidence(self.sure if self.words in passage.text else 0.1) for passage in passages]


class Broken(Likes):
    """Can tell of whole passages, and fails at single sentences."""

    def __init__(self, error: Exception) -> None:
        super().__init__("Oat")
        self.error = error

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        if all(passage.text.count(".") == 1 for passage in passages):
            raise self.error
        return super().estimate(question, passages, stop)


@dataclass
class Says:
    """A judge of support who finds everything so likely."""

    probability: float
    threshold: float = 0.5

    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
        return [Verdict(self.probability, "supported") for _ in claims]


def parts_with(
    parts: Parts,
    estimator: Likes | None,
    *yes: float,
    replies: Sequence[str] = ("unknown",),
    threshold: float = 0.5,
) -> Parts:
    relevance = RelevanceSettings(threshold=0.5, if_unanswerable="refuse")
    llm = ScriptedLLM(list(replies), [{"yes": p, "no": 1 - p} for p in yes])
    turn = parts.settings.turn.model_copy(update={"digest": "extractive", "quote_threshold": threshold})
    settings = parts.settings.model_copy(update={"relevance": relevance, "turn": turn})
    return replace(parts, settings=settings, llm=llm, estimator=(lambda _: estimator) if estimator else None)


def asked(parts: Parts, **choices: object) -> Turn:
    chosen = replace(Choices(strategy="concat", loop="retrieve_then_generate", k=2), **choices)
    *_, turn = flow.run(Turn(QUESTION, choices=chosen), parts, Event())
    return turn


def test_the_sentence_that_is_ranked_highest_is_quoted_and_cited(parts: Parts) -> None:
    estimator = Likes("Oat drink")
    turn = asked(parts_with(parts, estimator, 0.9))
    assert turn.answer == Answer(f"{SENTENCE} [1]")
    assert [(one.passage_id, one.quote) for one in turn.citations] == [("p2", SENTENCE)]
    assert turn.events == (TurnEvent("quoted"),)
    assert "quote" in turn.timings
    # of every passage that is shown, each sentence alone
    assert SENTENCE in estimator.asked[-1]
    assert len(estimator.asked[-1]) == 4


def test_a_sentence_that_is_not_likely_to_answer_leaves_the_turn_as_it_was(parts: Parts) -> None:
    turn = asked(parts_with(parts, Likes("Oat drink"), threshold=1.0))
    assert turn.answer == NOT_HELD
    assert (turn.events, turn.citations) == ((), ())
    replies = ("unknown", "Almond drink.")
    own = asked(parts_with(parts, Likes("Oat drink"), replies=replies, threshold=1.0), below="own")
    assert own.answer == unbacked("Almond drink.")


def test_the_judge_of_support_has_a_say(parts: Parts) -> None:
    likes = parts_with(parts, Likes("Oat drink", sure=0.6), replies=("unknown", "unknown"))
    assert asked(replace(likes, support=lambda _: Says(0.1))).answer == NOT_HELD
    assert asked(replace(likes, support=lambda _: Says(0.9))).answer == Answer(f"{SENTENCE} [1]")


@pytest.mark.parametrize(
    ("own", "sure", "judge", "quoted"),
    [(False, 0.6, 0.3, False), (False, 0.95, 0.3, True), (True, 0.95, 0.3, False), (True, 0.6, 0.55, True)],
)
def test_of_own_documents_the_judge_decides_alone(
    parts: Parts, own: bool, sure: float, judge: float, quoted: bool
) -> None:
    passage = Passage("p", "Notes", SENTENCE, own=own)
    parts = replace(parts_with(parts, Likes("Oat drink", sure=sure)), retriever=FixedRetriever([passage]))
    turn = asked(replace(parts, support=lambda _: Says(judge)))
    assert turn.has_event("quoted") is quoted


@dataclass
class SaysOf(Says):
    """Finds a sentence as likely as is told of it."""

    of: dict[str, float] = field(default_factory=dict)

    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
        return [Verdict(self.of.get(claim.sentence, self.probability), "supported") for claim in claims]


@pytest.mark.parametrize(
    ("own", "judge", "reply", "outdone"),
    [
        (True, 0.95, "A drink of oats.", True),
        (True, 0.85, "A drink of oats.", False),  # the reply is at 0.9
        (False, 0.95, "A drink of oats.", True),
        (False, 0.85, "A drink of oats.", False),
        (True, 0.95, SENTENCE, False),
        (True, 0.95, "A drink of oats. It holds no lactose.", False),
    ],
)
def test_a_sentence_of_the_passages_replaces_a_reply_that_is_a_less_likely_answer(
    parts: Parts, own: bool, judge: float, reply: str, outdone: bool
) -> None:
    passage = Passage("p", "Notes", SENTENCE, own=own)
    likes = parts_with(parts, Likes("Oat drink"), 0.9, replies=(reply,))
    says = SaysOf(0.9, of={SENTENCE: judge} if reply != SENTENCE else {})
    turn = asked(replace(likes, retriever=FixedRetriever([passage]), support=lambda _: says))
    assert turn.has_event("outdone") is outdone
    assert turn.answer
    assert turn.answer.text.startswith(SENTENCE if outdone else reply.split(".", maxsplit=1)[0])
    assert turn.citations


class SaysOfSentences(Says):
    """Finds single sentences likely, and nothing where more is read beside them."""

    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
        alone = [claim.evidence[0].text == claim.sentence for claim in claims]
        return [Verdict(self.probability, "supported") if one else Verdict(0.0, "not") for one in alone]


def test_what_the_passage_says_word_for_word_is_not_judged_beside_all_of_it_again(parts: Parts) -> None:
    likes = parts_with(parts, Likes("Oat drink"))
    turn = asked(replace(likes, support=lambda _: SaysOfSentences(0.9)))
    assert turn.answer == Answer(f"{SENTENCE} [1]")
    [sentence], [citation] = turn.sentences, turn.citations
    assert (sentence.state, citation.passage_id, citation.quote) == ("supported", "p2", SENTENCE)


def test_a_sentence_of_a_summary_is_judged_like_any_other(parts: Parts) -> None:
    passages = tuple(parts.retriever.search(QUESTION, 2))
    digests = tuple(Digest(one.id, SENTENCE if one.id == "p2" else one.text) for one in passages)
    passages = tuple(replace(one, text=one.text.replace("Oat", "Rice")) for one in passages)
    unknown = Turn(QUESTION, question=QUESTION, passages=passages, digests=digests, answer=Answer("?", unknown=True))
    likes = parts_with(parts, Likes("Oat drink"))
    for judge, quoted in ((Says(0.9), True), (SaysOfSentences(0.9), False)):
        *_, turn = quote.run(unknown, replace(likes, support=lambda _, judge=judge: judge), Event())
        assert turn.has_event("quoted") is quoted


def test_it_comes_before_each_passage_is_asked_alone(parts: Parts) -> None:
    turn = asked(parts_with(parts, Likes("Oat drink")), strategy="concat_pf")
    assert turn.answer == Answer(f"{SENTENCE} [1]")
    assert not turn.has_event("fell_back")
    assert "fallback" not in turn.timings


def test_a_reply_that_was_set_aside_is_replaced_as_well(parts: Parts) -> None:
    replies = ("Lactose is the sugar in milk.",)
    turn = asked(parts_with(parts, Likes("Oat drink"), 0.0, 0.9, replies=replies))
    assert turn.answer == Answer(f"{SENTENCE} [1]")
    assert turn.events[-1] == TurnEvent("quoted")
    assert [sentence.text for sentence in turn.sentences] == [SENTENCE]


def test_an_answer_stays_as_it_is(parts: Parts) -> None:
    estimator, replies = Likes("Oat drink"), ("Lactose is the sugar in milk. It is in milk.",)
    turn = asked(parts_with(parts, estimator, 0.9, replies=replies))
    assert turn.answer
    assert turn.answer.text.startswith("Lactose is the sugar in milk. [1]")
    assert len(estimator.asked) == 1
    assert TurnEvent("quoted") not in turn.events


@dataclass
class Ranked(Likes):
    """Finds sentences the more relevant the earlier their words are named."""

    order: Sequence[str] = ()

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        ranks = [next((n for n, words in enumerate(self.order) if words in p.text), 9) for p in passages]
        return [Relevance.of_confidence(0.9 - 0.05 * rank) for rank in ranks]


OAT, RICE, SOYA = "Oat drink costs a euro.", "Rice drink is sweet.", "Soya drink holds protein."


@pytest.mark.parametrize(
    ("of", "reply"),
    [
        ({OAT: 0.5, f"{OAT} {SOYA}": 0.9}, f"{OAT} [1] {SOYA} [2]"),
        ({OAT: 0.5, f"{RICE} {OAT}": 0.9}, f"{RICE} [1] {OAT} [1]"),  # of one passage, as they stand in it
        ({OAT: 0.8, f"{OAT} {SOYA}": 0.82}, f"{OAT} [1]"),  # not that much surer
        ({OAT: 0.5, f"{OAT} {SOYA}": 0.7, f"{RICE} {OAT}": 0.9}, f"{RICE} [1] {OAT} [1]"),
        ({OAT: 0.05, f"{OAT} {SOYA}": 0.9}, FIXED["not_held"]),  # the best one is not likely enough
    ],
)
def test_two_sentences_are_quoted_where_the_judge_is_surer_of_both(
    parts: Parts, of: dict[str, float], reply: str
) -> None:
    found = [Passage("a", "Drinks", f"{RICE} {OAT}"), Passage("b", "More drinks", f"{OAT} {SOYA}")]
    ranked = parts_with(parts, Ranked("", order=(OAT, SOYA, RICE)))
    turn = asked(replace(ranked, retriever=FixedRetriever(found), support=lambda _: SaysOf(0.1, of=of)))
    assert turn.answer
    assert turn.answer.text == reply
    assert [sentence.state for sentence in turn.sentences] == ["supported"] * len(turn.sentences)
    assert all(one.quote in (OAT, RICE, SOYA) for one in turn.citations)


def test_a_line_that_is_no_full_sentence_stands_alone(parts: Parts) -> None:
    lines = "Swimming on Monday", "Judo on Friday."
    found = [Passage(name, "Plan", line) for name, line in zip("ab", lines, strict=True)]
    ranked = parts_with(parts, Ranked("", order=lines))
    says = SaysOf(0.1, of={lines[0]: 0.5, "\n".join(lines): 0.9})
    turn = asked(replace(ranked, retriever=FixedRetriever(found), support=lambda _: says))
    assert turn.answer == Answer("Swimming on Monday [1]\nJudo on Friday. [2]")


def test_short_answers_are_not_quoted(parts: Parts) -> None:
    assert asked(parts_with(parts, Likes("Oat drink")), form="factoid").answer == Answer("unknown", unknown=True)


def test_where_no_passage_seems_to_answer_none_is_quoted(parts: Parts) -> None:
    estimator = Likes("Camels")
    turn = asked(parts_with(parts, estimator))
    assert turn.answer == NOT_HELD
    assert len(estimator.asked) == 1


@pytest.mark.parametrize("error", [ModelError("It is gone."), RuntimeError("no memory")])
def test_without_an_estimator_nothing_is_quoted(parts: Parts, error: Exception) -> None:
    for estimator in (None, Broken(error)):
        turn = asked(parts_with(parts, estimator))
        assert (turn.status, turn.answer, turn.events) == ("done", NOT_HELD, ())


def test_where_nothing_was_found_nothing_is_quoted(parts: Parts) -> None:
    found = replace(parts_with(parts, Likes("Oat drink")), retriever=FixedRetriever([]))
    turn = asked(found)
    assert (turn.answer, turn.events) == (NOT_HELD, ())


def test_a_stop_before_it_leaves_the_turn(parts: Parts) -> None:
    stop, estimator = Event(), Likes("Oat drink")
    stop.set()
    passages = tuple(parts.retriever.search(QUESTION, 2))
    unknown = Turn(QUESTION, question=QUESTION, passages=passages, answer=Answer("unknown", unknown=True))
    assert list(quote.run(unknown, parts_with(parts, estimator), stop)) == [unknown]
    assert estimator.asked == []
