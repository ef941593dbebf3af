"""What a turn makes of relevance: passages put in order, a set's confidence, answers weighed, and none from nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import log
from pathlib import Path
from threading import Event
from time import perf_counter

import pytest

from assistant import turn as flow
from assistant.errors import ModelError
from assistant.judges.load import relevance as load_estimator
from assistant.judges.relevance.estimators.llm import LlmEstimator
from assistant.judges.relevance.rerank import with_relevance
from assistant.protocols import Parts
from assistant.settings import RelevanceSettings
from assistant.steps.closed_book import unbacked
from assistant.strategies import re_rag
from assistant.types import (
    Answer,
    Choices,
    Completion,
    Confidence,
    Digest,
    Messages,
    Options,
    Passage,
    Query,
    RankedFact,
    Relevance,
    Turn,
    TurnEvent,
)
from assistant.wording.replies import FIXED, LABEL, reply
from assistant.wording.views import as_json, headline, unsourced_kind
from tests.scripted import FixedRetriever, ScriptedLLM

pytest_plugins = ["tests.fixtures_relevance"]
QUESTION = "Which drink holds no lactose?"
# As sure as can be, since the judge of these tests is as sure of the contrary.
NO = {"yes": 0.0, "no": 1.0}

NOT_HELD = Answer(FIXED["not_held"], unknown=True, outcome="not_held")


@dataclass
class Sure:
    """Is as sure of a passage as its id is given a confidence, and counts what it was asked."""

    confidences: dict[str, float]
    name: str = "sure"
    calibration: str = "platt, on 12 passages"
    asked: list[list[str]] = field(default_factory=list)

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        self.asked.append([passage.id for passage in passages])
        return [Relevance.of_confidence(self.confidences.get(passage.id, 0.01)) for passage in passages]


class Broken(Sure):
    def __init__(self, error: Exception) -> None:
        super().__init__({})
        self.error = error

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        raise self.error


def sure(parts: Parts, estimator: object, *replies: object, **knobs: object) -> Parts:
    relevance = RelevanceSettings(**{"threshold": 0.5, "rerank": True, "min_relative_confidence": 0, **knobs})
    # what chooses sentences asks as well, and so do what decides whether a draft is written and what quotes
    turn = parts.settings.turn.model_copy(
        update={"digest": "extractive", "draft_threshold": 1.0, "quote_threshold": 1.0}
    )
    settings = parts.settings.model_copy(update={"relevance": relevance, "turn": turn})
    return replace(parts, settings=settings, llm=ScriptedLLM(list(replies)), estimator=lambda _: estimator)


def asked(parts: Parts, turn: Turn, stop: Event | None = None) -> Turn:
    *_, last = flow.run(turn, parts, stop or Event())
    return last


def choices(**changes: object) -> Choices:
    return replace(Choices(strategy="concat", loop="retrieve_then_generate", k=2), **changes)


# --- the order, and how sure it is -------------------------------------------------------------------------------


def test_the_most_relevant_passages_are_answered_from(parts: Parts) -> None:
    estimator = Sure({"p2": 0.9, "p3": 0.4, "p1": 0.2})
    turn = asked(sure(parts, estimator, "Oat drink holds no lactose."), Turn(QUESTION, choices=choices(k=1)))
    assert [(one.id, one.confidence) for one in turn.passages] == [("p2", pytest.approx(0.9))]
    # p1 was found before p3, which counts as well
    assert [one.id for one in turn.reserve] == ["p1", "p3"]
    assert turn.confidence == Confidence(pytest.approx(0.9), 0.5, "sure", "platt, on 12 passages")
    assert "relevance" in turn.timings
    # more was estimated than is shown
    assert estimator.asked == [["p1", "p2", "p3"]]
    view = as_json(turn)
    assert view["confidence"] == {
        "value": pytest.approx(0.9),
        "threshold": 0.5,
        "estimator": "sure",
        "calibration": "platt, on 12 passages",
        "level": "well",
    }
    assert view["passages"][0]["confidence"] == pytest.approx(0.9)
    assert Turn.from_json(turn.to_json()) == turn


def test_sources_are_shown_before_they_are_estimated(parts: Parts) -> None:
    turns = list(
        flow.run(Turn(QUESTION, choices=choices()), sure(parts, Sure({"p3": 0.9}), "Oat drink.", "Oat drink."), Event())
    )
    first = next(turn for turn in turns if turn.passages)
    assert first.confidence is None
    assert [one.id for one in first.passages] == ["p1", "p2"]
    assert [one.id for one in turns[-1].passages] == ["p3", "p1"]


def test_without_reranking_passages_are_judged_as_they_were_found(parts: Parts) -> None:
    estimator = Sure({"p2": 0.9, "p1": 0.6})
    turn = asked(sure(parts, estimator, "oat drink", rerank=False), Turn(QUESTION, choices=choices()))
    assert [len(ids) for ids in estimator.asked] == [len(turn.passages)]
    assert [passage.id for passage in turn.passages] == estimator.asked[0]
    assert turn.passages[0].confidence == pytest.approx(0.6)
    assert turn.reserve == ()
    assert turn.confidence
    assert turn.confidence.value == pytest.approx(0.9)


def test_the_order_is_by_the_question_and_by_who_asks_it(parts: Parts) -> None:
    class Personal(Sure):
        def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
            self.confidences = {"p2": 0.5, "p3": 0.9} if "vegan" in question else {"p1": 0.8, "p3": 0.2}
            return super().estimate(question, passages, stop)

    estimator = Personal({})
    vegan = RankedFact("1", "I'm vegan.", 0.5, used=True)
    turn = Turn(QUESTION, question=QUESTION, facts=(vegan, replace(vegan, used=False)), choices=choices())
    passages = [Passage(name, "", "") for name in ("p1", "p2", "p3")]
    turn = with_relevance(turn, passages, sure(parts, estimator), Event())
    assert len(estimator.asked) == 2
    assert [(one.id, one.confidence) for one in (*turn.passages, *turn.reserve)] == [
        ("p3", pytest.approx(0.9)),
        ("p1", pytest.approx(0.8)),
        ("p2", pytest.approx(0.5)),
    ]
    assert turn.confidence
    assert turn.confidence.value == pytest.approx(0.9)


@pytest.mark.parametrize("rerank", [True, False])
def test_a_chat_reply_leaves_out_what_is_far_less_likely_than_the_likeliest(parts: Parts, rerank: bool) -> None:
    estimator = Sure({"p1": 0.9, "p2": 0.3, "p3": 0.01})
    parts = sure(
        parts, estimator, "Oat drink holds no lactose.", "oat drink", min_relative_confidence=0.1, rerank=rerank
    )
    turn = asked(parts, Turn(QUESTION, choices=choices(k=3)))
    assert [one.id for one in (*turn.passages, *turn.reserve)] == ["p1", "p2"]
    assert turn.confidence
    assert turn.confidence.value == pytest.approx(0.9)
    short = asked(parts, Turn(QUESTION, choices=choices(k=3, form="factoid")))
    assert {one.id for one in short.passages} == {"p1", "p2", "p3"}


@pytest.mark.parametrize("confidences", [{"p1": 1e-6}, {"p1": 1e-6, "p2": 1e-6, "p3": 0.99}, {}])
def test_one_passage_always_stays(parts: Parts, confidences: dict[str, float]) -> None:
    passages = [Passage(name, "", "") for name in ("p1", "p2", "p3")]
    turn = Turn(QUESTION, question=QUESTION, choices=choices(k=1))
    for rerank in (True, False):
        judged = sure(parts, Sure(confidences), min_relative_confidence=0.99, rerank=rerank)
        assert len(with_relevance(turn, passages, judged, Event()).passages) == 1
        assert with_relevance(turn, passages[:1], judged, Event()).passages
        assert with_relevance(turn, [], judged, Event()).passages == ()


def test_candidates_and_places_are_set(parts: Parts) -> None:
    many = [Passage(f"p{n}", "", f"Text {n}.") for n in range(60)]
    estimator = Sure({"p29": 0.8, "p40": 0.9})
    knobs = {"rerank_depth": 30, "rerank_top_k": 4}
    parts = sure(replace(parts, retriever=FixedRetriever(many)), estimator, "Text 29.", **knobs)
    turn = asked(parts, Turn("Which text?", choices=choices()))
    assert len(estimator.asked[0]) == 30
    assert [one.id for one in turn.passages] == ["p29", "p0"]
    assert [one.id for one in turn.reserve] == ["p1", "p2"]


@pytest.mark.parametrize(("value", "level"), [(0.49, "none"), (0.5, "weak"), (0.74, "weak"), (0.75, "well")])
def test_levels(value: float, level: str) -> None:
    assert Confidence(value, 0.5, "e").level == level


def test_small_talk_asks_nobody(parts: Parts) -> None:
    estimator = Sure({})
    turn = asked(sure(parts, estimator, "Hello!", if_unanswerable="refuse"), Turn("Hello! Hello!"))
    assert turn.intent == "small_talk"
    assert (turn.passages, turn.confidence, estimator.asked) == ((), None, [])


@pytest.mark.parametrize(("confidence", "intent"), [(0.8, "question"), (0.6, "small_talk")])
def test_talk_that_the_library_surely_answers_is_a_question(parts: Parts, confidence: float, intent: str) -> None:
    estimator = Sure({"p2": confidence})
    parts = sure(parts, estimator, "Oat drink holds no lactose.", small_talk_threshold=0.7)
    turn = asked(parts, Turn("Hello! Hello! Hello!", choices=choices()))
    assert turn.intent == intent
    assert len(estimator.asked) == (2 if intent == "question" else 1)
    assert bool(turn.passages) == (intent == "question")


def test_talk_goes_on_where_nobody_can_tell(parts: Parts) -> None:
    for broken in (ModelError("It is gone."), RuntimeError("no memory")):
        turn = asked(sure(parts, Broken(broken), "Hello!"), Turn("Hello! Hello! Hello!", choices=choices()))
        assert (turn.intent, turn.status, turn.events) == ("small_talk", "done", ())
    # not by twenty prompts of the language model
    asking = sure(parts, Sure({"p2": 0.9}), "Hello!")
    by_llm = asking.settings.relevance.model_copy(update={"estimator": "llm"})
    asking = replace(asking, settings=asking.settings.model_copy(update={"relevance": by_llm}))
    assert asked(asking, Turn("Hello! Hello! Hello!", choices=choices())).intent == "small_talk"


def test_a_chat_model_that_estimates_is_counted(parts: Parts) -> None:
    llm = ScriptedLLM(["Oat drink holds no lactose."], [{"true": r, "false": 1 - r} for r in (0.1, 0.9, 0.4)])
    parts = replace(sure(parts, None), llm=llm, estimator=LlmEstimator)
    turn = asked(parts, Turn(QUESTION, choices=choices()))
    assert [one.id for one in turn.passages] == ["p2", "p3"]
    assert turn.spent["relevance"].completion == 3
    assert turn.spent["relevance"].prompt > 100


@pytest.mark.parametrize(
    ("error", "says"),
    [(ModelError("The file is of version 2."), "The file is of version 2."), (RuntimeError("no memory"), "no memory")],
)
def test_an_estimator_that_fails_does_not_end_the_turn(parts: Parts, error: Exception, says: str) -> None:
    turn = asked(
        sure(parts, Broken(error), "Oat drink holds no lactose.", if_unanswerable="refuse"),
        Turn(QUESTION, choices=choices()),
    )
    assert turn.status == "done"
    assert turn.answer
    assert not turn.answer.unknown
    assert turn.events[0].code == "relevance_failed"
    assert says in turn.events[0].detail
    assert [one.id for one in turn.passages] == ["p1", "p2"]
    assert turn.confidence is None


def test_no_passage_is_no_confidence(parts: Parts) -> None:
    parts = sure(replace(parts, retriever=FixedRetriever([])), Sure({}), "unknown", "unknown")
    turn = asked(parts, Turn(QUESTION, choices=choices()))
    assert turn.confidence is None
    assert turn.answer
    assert turn.answer.unknown


# --- under the threshold -----------------------------------------------------------------------------------------


def test_under_the_threshold_nothing_is_made_up(parts: Parts) -> None:
    turn = asked(
        sure(parts, Sure({"p2": 0.3}), if_unanswerable="refuse"), Turn(QUESTION, choices=choices(strategy="concat_pf"))
    )
    assert turn.answer
    assert (turn.answer.text, turn.answer.unknown) == (NOT_HELD.text, True)
    assert turn.events == (TurnEvent("none_relevant", "confidence 0.30, below 0.5"),)
    assert TurnEvent("fell_back") not in turn.events
    assert turn.confidence
    assert turn.confidence.level == "none"


def test_or_the_model_answers_itself_and_says_so(parts: Parts) -> None:
    parts = sure(parts, Sure({"p2": 0.3}), "Oat drink, I believe.", if_unanswerable="own")
    turn = asked(parts, Turn(QUESTION, choices=choices()))
    assert turn.answer
    assert reply(turn.answer) == f"{LABEL}\n\nOat drink, I believe."
    assert turn.answer.origin == "model"
    assert turn.citations == ()
    # its prompt holds no passage
    assert "Lactose is the sugar" not in parts.llm.prompts[0][-1].content


def test_or_the_person_is_asked(parts: Parts) -> None:
    turn = asked(sure(parts, Sure({"p2": 0.3}), if_unanswerable="ask"), Turn(QUESTION, choices=choices()))
    assert turn.answer
    assert turn.answer.text == FIXED["ask"]


def test_a_model_that_does_not_know_either_says_so(parts: Parts) -> None:
    turn = asked(sure(parts, Sure({"p2": 0.1}), "unknown", if_unanswerable="own"), Turn(QUESTION, choices=choices()))
    assert turn.answer
    assert turn.answer.unknown
    assert turn.answer.text == NOT_HELD.text


def test_a_model_that_was_asked_and_does_not_know_has_no_draft_on_offer(parts: Parts) -> None:
    drafted = choices(loop="grg")
    turn = asked(
        sure(parts, Sure({}), "It may be milk.", "unknown", if_unanswerable="own"), Turn(QUESTION, choices=drafted)
    )
    assert turn.answer == replace(NOT_HELD, origin="model")
    assert turn.own_answer == ""
    turn = asked(sure(parts, Sure({}), "It may be milk.", if_unanswerable="refuse"), Turn(QUESTION, choices=drafted))
    assert turn.own_answer == "It may be milk."


def test_a_reply_of_its_own_knowledge_never_cites(parts: Parts) -> None:
    # word for word what a passage says
    turn = asked(
        sure(parts, Sure({}), "Oat drink holds no lactose. [1]", if_unanswerable="own"),
        Turn(QUESTION, choices=choices()),
    )
    assert turn.answer == unbacked("Oat drink holds no lactose.")
    assert (turn.citations, turn.sentences) == ((), ())


def test_chat_replies_come_from_the_model_by_default_and_short_answers_from_the_passages(parts: Parts) -> None:
    turn = asked(sure(parts, Sure({}), "Oat drink, I believe."), Turn(QUESTION, choices=choices()))
    assert turn.answer
    assert (turn.answer.origin, turn.answer.text) == ("model", "Oat drink, I believe.")
    turn = asked(sure(parts, Sure({}), "oat drink"), Turn(QUESTION, choices=choices(form="factoid")))
    assert turn.answer == Answer("oat drink")
    assert turn.events == ()


def test_or_it_is_answered_all_the_same(parts: Parts) -> None:
    turn = asked(
        sure(parts, Sure({"p2": 0.3}), "Oat drink holds no lactose.", if_unanswerable="answer"),
        Turn(QUESTION, choices=choices()),
    )
    assert turn.answer
    assert turn.answer.origin == "passages"
    assert turn.citations
    assert turn.events == ()


def test_at_the_threshold_it_is_answered(parts: Parts) -> None:
    knobs = {"if_unanswerable": "refuse", "threshold": 0.3}
    turn = asked(
        sure(parts, Sure({"p2": 0.31}), "Oat drink holds no lactose.", **knobs), Turn(QUESTION, choices=choices())
    )
    assert turn.answer
    assert not turn.answer.unknown


def test_factoid_answers_abstain_as_well(parts: Parts) -> None:
    for below, text in (("refuse", "unknown"), ("ask", "unknown"), ("own", "oat drink")):
        parts = sure(parts, Sure({}), "oat drink", if_unanswerable=below)
        turn = asked(parts, Turn(QUESTION, choices=choices(form="factoid")))
        assert turn.answer
        assert turn.answer.text == text


def test_the_estimator_can_tell_what_is_unknown(parts: Parts) -> None:
    settings = parts.settings.model_copy(
        update={"turn": parts.settings.turn.model_copy(update={"uncertainty": "relevance", "unknown_threshold": 0.35})}
    )
    for confidence, lost in ((0.3, True), (0.4, False)):
        judged = sure(replace(parts, settings=settings), Sure({"p2": confidence}), "oat drink")
        turn = asked(judged, Turn(QUESTION, choices=choices(form="factoid")))
        assert turn.answer
        assert turn.answer.unknown == lost


def test_the_estimator_is_compared_as_a_way_to_tell(parts: Parts, tmp_path) -> None:
    from assistant.evaluation import uncertainty
    from assistant.evaluation.answers import Experiment, prepare
    from assistant.evaluation.scores import Setting
    from tests.test_evaluation_data import lines

    corpus = lines(tmp_path / "c.jsonl", *({"id": f"p{n}", "contents": "x"} for n in (1, 2, 3)))
    asked = [{"id": str(n), "question": "which drink?", "answers": [a]} for n, a in enumerate(("oat drink", "milk"))]
    experiment = Experiment(corpus, lines(tmp_path / "q.jsonl", *asked), ("concat",), (Setting(2),))
    parts = sure(parts, Sure({"p1": 0.2, "p2": 0.7}), "oat drink", "oat drink")
    material = prepare(experiment)
    task = uncertainty.UncertaintyTests(experiment, material, "scripted")
    run = task.open(tmp_path / "out")
    task.fill(run, parts, lambda done, total: None)
    assert [row["confidence"]["relevance"] for row in run.rows.values()] == pytest.approx([0.7, 0.7])
    del run.rows["0"]["confidence"]["relevance"]
    assert "relevance" not in task.summarise(run.rows)["ways"]


# --- passages that seemed to answer, and gave no answer ----------------------------------------------------------


def unanswered(parts: Parts, below: str, *replies: object, **more: object) -> tuple[Turn, Parts]:
    parts = sure(parts, Sure({"p2": 0.9}), *replies, if_unanswerable=below)
    parts = replace(parts, llm=ScriptedLLM(list(replies), [NO]))  # no quotation answers either
    return asked(parts, Turn(QUESTION, choices=choices(**more))), parts


def test_the_model_is_asked_where_the_passages_gave_no_answer(parts: Parts) -> None:
    turn, parts = unanswered(parts, "own", "unknown", "Almond drink has none.")
    assert turn.answer == unbacked("Almond drink has none.")
    assert (turn.citations, turn.own_answer, turn.events) == ((), "", (TurnEvent("own_knowledge"),))
    assert turn.spent["own"].completion == 4
    assert "Lactose is the sugar" not in parts.llm.prompts[-1][-1].content


@pytest.mark.parametrize(("confidence", "asks"), [(0.5, True), (0.9, False)])
def test_the_model_is_not_asked_where_a_document_of_the_person_s_own_is_as_likely_to_answer_as_any_other(
    parts: Parts, confidence: float, asks: bool
) -> None:
    other, own = Passage("p2", "Drinks", "Oats hold none."), Passage("p3", "Notes", "My drink has none.", own=True)
    parts = replace(parts, retriever=FixedRetriever([other, own]))
    parts = sure(parts, Sure({"p2": 0.9, "p3": confidence}), if_unanswerable="own")
    turn = asked(
        replace(parts, llm=ScriptedLLM(["unknown", "Almond drink has none."], [NO])),
        Turn(QUESTION, choices=choices()),
    )
    assert turn.answer == (unbacked("Almond drink has none.") if asks else NOT_HELD)


def test_what_only_says_the_question_again_is_not_what_the_model_knows(parts: Parts) -> None:
    turn, _ = unanswered(parts, "own", "unknown", QUESTION.rstrip("?") + ".")
    assert turn.answer == replace(NOT_HELD, origin="model")


def test_a_draft_is_not_what_the_model_knows_which_is_asked_for_it(parts: Parts) -> None:
    turn, parts = unanswered(parts, "own", "It is oat drink.", "unknown", "Almond drink has none.", loop="grg")
    assert turn.answer == unbacked("Almond drink has none.")
    assert parts.llm.replies == []


class Unsure(ScriptedLLM):
    """Finds every token but the first one likely, and that one half as likely as the threshold asks for."""

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        for one in super().stream(messages, options, stop):
            yield replace(one, logprobs=(log(0.15), *(log(0.9) for _ in range(one.completion_tokens - 1))))


@pytest.mark.parametrize(
    ("said", "guess"),
    [
        ("The drink of Valio holds none.", True),  # a name
        ("Some 120 drinks do.", True),  # a number
        ("Almond drink", True),  # as short as names are
        ("Drinks made of almonds, oats or rice hold none. Try them.", False),  # nothing that is made up easily
    ],
)
def test_what_the_model_is_not_sure_of_is_a_guess_beside_not_held(parts: Parts, said: str, guess: bool) -> None:
    parts = sure(parts, Sure({"p2": 0.9}), if_unanswerable="own")
    turn = asked(replace(parts, llm=Unsure(["unknown", said], [NO])), Turn(QUESTION, choices=choices()))
    assert turn.answer == (replace(NOT_HELD, origin="model") if guess else unbacked(said))
    assert turn.own_answer == (said if guess else "")
    sure_of_it = replace(parts, llm=ScriptedLLM(["unknown", said], [NO]))
    assert asked(sure_of_it, Turn(QUESTION, choices=choices())).answer == unbacked(said)


def test_a_yes_or_no_of_the_model_s_own_is_a_guess_however_sure_it_is(parts: Parts) -> None:
    said = "Yes, it holds none."
    parts = sure(parts, Sure({"p2": 0.9}), if_unanswerable="own")
    parts = replace(parts, llm=ScriptedLLM(["unknown", said], [NO]))
    turn = asked(parts, Turn(QUESTION, choices=choices()))
    assert turn.answer == replace(NOT_HELD, origin="model")
    assert turn.own_answer == said


def test_where_the_model_does_not_know_either_that_is_said(parts: Parts) -> None:
    turn, _ = unanswered(parts, "own", "unknown", "unknown")
    assert turn.answer == replace(NOT_HELD, origin="model")
    assert unsourced_kind(turn) == ""


@pytest.mark.parametrize("likeliest", ["p1", "p2"])
def test_of_a_persons_own_documents_the_model_is_not_asked(parts: Parts, likeliest: str) -> None:
    mine = [replace(one, own=one.id == "p2") for one in parts.retriever.search(QUESTION, 4)]
    parts = sure(replace(parts, retriever=FixedRetriever(mine)), Sure({likeliest: 0.9}), if_unanswerable="own")
    settings = parts.settings.changed(turn={"quote_threshold": 1.0})  # no quotation answers either
    parts = replace(parts, llm=ScriptedLLM(["It is oat drink.", "unknown", "It is almond drink."]), settings=settings)
    turn = asked(parts, Turn(QUESTION, choices=choices(loop="grg")))
    if likeliest == "p2":
        assert turn.answer == NOT_HELD
        assert (turn.own_answer, turn.events) == ("", ())
    else:
        assert turn.answer == unbacked("It is almond drink.")


@pytest.mark.parametrize("below", ["refuse", "ask", "answer"])
def test_nobody_is_asked_where_the_settings_say_otherwise(parts: Parts, below: str) -> None:
    turn, _ = unanswered(parts, below, "It is almond drink.", "unknown", loop="grg")
    assert turn.answer == NOT_HELD
    assert turn.own_answer == "It is almond drink."


def test_instead_of_what_no_passage_says_the_model_says_what_it_knows(parts: Parts) -> None:
    parts = sure(parts, Sure({"p2": 0.9}), if_unanswerable="own")
    parts = replace(
        parts, llm=ScriptedLLM(["Camels graze in deserts far away. [1]", "Almond drink has none."], [NO] * 4)
    )
    assert asked(parts, Turn(QUESTION, choices=choices())).answer == unbacked("Almond drink has none.")


@pytest.mark.parametrize(("below", "kept"), [("answer", True), ("refuse", False), ("ask", False)])
def test_what_no_passage_says_is_kept_as_the_models_own(parts: Parts, below: str, kept: bool) -> None:
    parts = sure(parts, Sure({"p2": 0.9}), "Camels graze in deserts far away. [1]", if_unanswerable=below)
    parts = replace(parts, llm=ScriptedLLM(parts.llm.replies, [NO] * 4))
    turn = asked(parts, Turn(QUESTION, choices=choices()))
    assert turn.answer
    assert turn.citations == ()
    if kept:
        assert turn.answer == unbacked("Camels graze in deserts far away.")
        assert TurnEvent("unsupported") in turn.events
        assert {sentence.state for sentence in turn.sentences} == {"not"}
        assert headline(turn).startswith("Read 2 passages")
    else:
        assert turn.answer == NOT_HELD


def test_a_stop_while_the_model_is_asked_leaves_no_bare_unknown(parts: Parts) -> None:
    stop = Event()
    parts = sure(parts, Sure({"p2": 0.9}))
    parts = replace(parts, llm=ScriptedLLM(["unknown", "Almond drink has none."], [NO]))
    for turn in flow.run(Turn(QUESTION, choices=choices()), parts, stop):
        if turn.step == "own":
            assert turn.answer is None
            stop.set()
            break
    assert stop.is_set()


def test_what_was_stopped_of_the_models_own_words_keeps_its_label(parts: Parts) -> None:
    stop = Event()
    parts = sure(parts, Sure({"p2": 0.9}), if_unanswerable="own")
    parts = replace(parts, llm=ScriptedLLM(["unknown", "Yes, oat drink holds none at all."], [NO]))
    for turn in flow.run(Turn(QUESTION, choices=choices()), parts, stop):
        if turn.step == "own" and turn.answer:
            stop.set()
    assert turn.status == "stopped"
    assert turn.answer
    assert (turn.answer.outcome, turn.answer.unknown) == ("own", False)
    assert unsourced_kind(turn) == "own"


# --- weighted answers --------------------------------------------------------------------------------------------


def pooled(parts: Parts, *replies: object, confidences: dict[str, float], **changes: object) -> Turn:
    parts = sure(parts, Sure(confidences), *replies)
    passages = tuple(parts.retriever.search(QUESTION, 3))
    turn = Turn(QUESTION, question=QUESTION, passages=passages, choices=choices(form="factoid", k=3, **changes))
    *_, last = re_rag.run(turn, parts, Event())
    return last


def test_a_relevant_passage_outweighs_a_majority(parts: Parts) -> None:
    # odds 9, 1/4, 1/4: weights 18/19, 1/38, 1/38
    turn = pooled(parts, "oat drink", "milk", "milk", confidences={"p1": 0.2, "p2": 0.9, "p3": 0.2})
    assert turn.answer
    assert (turn.answer.text, turn.answer.origin) == ("oat drink", "pool")
    assert [(one.passage_id, one.votes) for one in turn.pool] == [("p2", 1), ("p1", 2), ("p3", 2)]
    assert [one.weight for one in turn.pool] == pytest.approx([18 / 19, 1 / 38, 1 / 38])
    assert [one.probability for one in turn.pool] == pytest.approx([18 / 19, 1 / 19, 1 / 19])
    assert turn.confidence


def test_a_passage_that_nobody_estimated_weighs_as_the_least_of_the_others(parts: Parts) -> None:
    best, second, unjudged = parts.retriever.search(QUESTION, 3)
    passages = (replace(best, confidence=0.2), replace(second, confidence=0.1), unjudged)
    turn = Turn(QUESTION, question=QUESTION, passages=passages, choices=choices(form="factoid", k=3))
    confident = replace(turn, confidence=Confidence(0.2, 0.1, "sure", ""))
    *_, last = re_rag.run(confident, sure(parts, Sure({}), "milk", "milk", "oat drink"), Event())
    weights = {one.passage_id: one.weight for one in last.pool}
    assert weights["p3"] == pytest.approx(weights["p2"])
    assert weights["p1"] > weights["p3"]


@pytest.mark.parametrize("form", ["factoid", "chat"])
def test_a_passage_of_which_nothing_is_read_gives_its_weight_to_no_other(parts: Parts, form: str) -> None:
    parts = sure(parts, Sure({"p1": 0.9, "p2": 0.5, "p3": 0.2}), "oat drink", "milk")
    first, *others = parts.retriever.search(QUESTION, 3)
    left_out = (Digest(first.id, ""), *(Digest(one.id, one.text) for one in others))
    turn = Turn(QUESTION, question=QUESTION, passages=(first, *others), choices=choices(form=form, k=3))
    *_, last = re_rag.run(replace(turn, digests=left_out), parts, Event())
    weights = {one.passage_id: one.weight for one in last.pool}
    assert first.id == "p1"
    assert weights == pytest.approx({"p2": 0.8, "p3": 0.2})  # odds 1 and 1/4
    assert last.answer
    assert last.answer.text == {one.passage_id: one.text for one in last.pool}["p2"]


def test_without_passages_nothing_is_known(parts: Parts) -> None:
    for form in ("factoid", "chat"):
        turn = Turn(QUESTION, question=QUESTION, choices=choices(form=form))
        *_, last = re_rag.run(turn, sure(parts, Sure({})), Event())
        assert last.answer
        assert last.answer.unknown


def test_equal_passages_vote_as_in_post_fusion(parts: Parts) -> None:
    turn = pooled(parts, "oat drink", "milk", "Milk.", confidences={"p1": 0.5, "p2": 0.5, "p3": 0.5})
    assert turn.answer
    assert turn.answer.text == "milk"
    assert [one.probability for one in turn.pool] == pytest.approx([1 / 3, 2 / 3, 2 / 3])


def test_unknown_ones_have_no_share(parts: Parts) -> None:
    turn = pooled(parts, "unknown", "milk", "unknown", confidences={"p1": 0.9, "p2": 0.5, "p3": 0.5})
    assert turn.answer
    assert turn.answer.text == "milk"
    assert [one.probability for one in turn.pool] == pytest.approx([0, 1, 0])
    turn = pooled(parts, "unknown", "unknown", "unknown", confidences={"p1": 0.9})
    assert turn.answer
    assert turn.answer.unknown


class Likely(ScriptedLLM):
    """Knows how likely what it wrote is, and how likely any answer is after any passage."""

    can_score = True

    def complete(self, batch, options, stop) -> list[Completion]:
        return [replace(one, logprobs=(log(0.9),)) for one in super().complete(batch, options, stop)]

    def score(self, batch, stop) -> list[float]:
        # "milk" is all but impossible after the passage about lactose, and certain after the others
        return [
            log(0.9) if ("sugar in milk" in prompt[-1].content) == (text == "oat drink") else log(0.05)
            for prompt, text in batch
        ]


def test_answers_are_scored_after_every_passage_where_that_can_be_done(parts: Parts) -> None:
    base = sure(parts, Sure({"p1": 0.5, "p2": 0.6, "p3": 0.5}))
    parts = replace(base, llm=Likely(["oat drink", "milk", "milk"]))
    turn = Turn(
        QUESTION, question=QUESTION, passages=tuple(parts.retriever.search("", 3)), choices=choices(form="factoid")
    )
    *_, last = re_rag.run(turn, parts, Event())
    # odds 1.5, 1, 1: weights 3/7, 2/7, 2/7
    oat = 3 / 7 * 0.9 + 4 / 7 * 0.05
    milk = 3 / 7 * 0.05 + 4 / 7 * 0.9
    assert last.answer
    assert last.answer.text == "milk"
    assert last.pool[0].probability == pytest.approx(oat / (oat + milk))
    assert last.pool[1].probability == pytest.approx(milk / (oat + milk))


def test_a_whole_turn_scores_and_counts_what_it_read_for_that(parts: Parts) -> None:
    found = {}
    for kind in (Likely, ScriptedLLM):
        llm = kind(["It is oat drink.", "oat drink", "milk", "milk"])
        knobs = parts.settings.relevance.model_copy(update={"rerank_top_k": 3})
        base = sure(parts, Sure({"p1": 0.9, "p2": 0.9, "p3": 0.9}))
        base = replace(base, llm=llm, settings=base.settings.model_copy(update={"relevance": knobs}))
        *_, turn = flow.run(Turn(QUESTION, choices=choices(strategy="re_rag", k=3, form="factoid")), base, Event())
        assert turn.status == "done", turn.error
        found[kind] = turn
    scored, plain = found[Likely], found[ScriptedLLM]
    assert {one.text: one.probability for one in scored.pool} != {one.text: one.probability for one in plain.pool}
    assert scored.spent["answer"].prompt > 2 * plain.spent["answer"].prompt


def test_impossible_answers_do_not_divide_by_nothing(parts: Parts) -> None:
    class Hopeless(Likely):
        def score(self, batch, stop) -> list[float]:
            return [float("-inf")] * len(batch)

    parts = replace(sure(parts, Sure({})), llm=Hopeless(["oat drink", "milk", "milk"]))
    turn = Turn(
        QUESTION, question=QUESTION, passages=tuple(parts.retriever.search("", 3)), choices=choices(form="factoid")
    )
    *_, last = re_rag.run(turn, parts, Event())
    assert last.answer
    assert last.answer.text in ("oat drink", "milk")
    assert sum({one.text: one.probability for one in last.pool}.values()) == pytest.approx(1)


def test_chat_answers_are_weighed_and_cited_with_what_is_kept_in_reserve(parts: Parts) -> None:
    replies = ("Oat drink holds no lactose.", "unknown", "unknown")
    parts = sure(parts, Sure({"p2": 0.9, "p1": 0.6}), *replies, rerank_top_k=3)
    turn = asked(parts, Turn(QUESTION, choices=choices(strategy="re_rag", k=1)))
    assert [one.id for one in turn.passages] == ["p2"]
    assert [one.passage_id for one in turn.pool] == ["p2", "p1", "p3"]
    assert turn.answer
    assert turn.answer.text == "Oat drink holds no lactose. [1]"
    assert turn.citations[0].passage_id == "p2"
    assert turn.tokens.completion > 0
    assert turn.spent["answer"].prompt > 0


def test_a_passage_in_reserve_is_read_as_short_as_the_others(parts: Parts) -> None:
    passages = [Passage(name, name, "Oat drink holds no lactose. " * 2 + "It rains. " * 80) for name in ("p1", "p2")]
    base = replace(
        sure(parts, Sure({"p1": 0.9}), "unknown", "unknown", rerank_top_k=2), retriever=FixedRetriever(passages)
    )
    asked(base, Turn(QUESTION, choices=choices(strategy="re_rag", k=1, below="refuse")))
    one, other = (prompt[-1].content for prompt in base.llm.prompts)
    assert one.count("It rains.") == other.count("It rains.") < 80


def test_an_estimator_that_fails_is_told_of_once(parts: Parts) -> None:
    base = sure(parts, Broken(ValueError("no")), *["Oat drink holds no lactose."] * 3)
    turn = asked(base, Turn(QUESTION, choices=choices(strategy="re_rag", k=3)))
    assert len(turn.events) == 1


def test_a_passage_in_reserve_that_speaks_is_a_source(parts: Parts) -> None:
    replies = ("unknown", "Oat drink holds no lactose.", "unknown")
    parts = sure(parts, Sure({"p1": 0.9, "p2": 0.6}), *replies, rerank_top_k=3)
    turn = asked(parts, Turn(QUESTION, choices=choices(strategy="re_rag", k=1)))
    assert [one.id for one in turn.passages] == ["p1", "p2"]
    assert "p2" not in [one.id for one in turn.reserve]
    assert turn.answer
    assert turn.answer.text == "Oat drink holds no lactose. [1]"
    assert turn.citations[0].passage_id == "p2"


def test_stopping_while_answers_are_scored_keeps_the_pool(parts: Parts) -> None:
    stop = Event()

    class Slow(Likely):
        def score(self, batch, stop) -> list[float]:
            stop.set()
            return [float("-inf")] * len(batch)

    parts = replace(sure(parts, Sure({"p2": 0.9})), llm=Slow(["oat drink", "milk", "milk"]))
    turn = Turn(
        QUESTION, question=QUESTION, passages=tuple(parts.retriever.search("", 3)), choices=choices(form="factoid")
    )
    *_, last = re_rag.run(turn, parts, stop)
    assert last.answer
    assert last.answer.text == "oat drink"
    assert last.pool[0].probability > last.pool[1].probability


def test_the_pool_grows_and_stopping_keeps_it(parts: Parts) -> None:
    many = [Passage(f"p{n}", "", f"Text {n}.") for n in range(9)]
    parts = sure(replace(parts, retriever=FixedRetriever(many)), Sure({}), *["milk"] * 9)
    turn = Turn(QUESTION, question=QUESTION, passages=tuple(many), choices=choices(form="factoid", k=9))
    stop, sizes, begun = Event(), [], 0.0
    for snapshot in re_rag.run(turn, parts, stop):
        sizes.append(len(snapshot.pool))
        if len(snapshot.pool) == 8:
            stop.set()
            begun = perf_counter()
    assert sizes[:2] == [4, 8]
    assert perf_counter() - begun < 5
    assert snapshot.answer


def test_without_an_estimator_all_weigh_the_same_and_it_is_said(parts: Parts) -> None:
    parts = replace(parts, llm=ScriptedLLM(["oat drink", "milk", "milk"]))
    turn = Turn(
        QUESTION, question=QUESTION, passages=tuple(parts.retriever.search("", 3)), choices=choices(form="factoid")
    )
    *_, last = re_rag.run(turn, parts, Event())
    assert last.answer
    assert last.answer.text == "milk"
    assert [one.weight for one in last.pool] == pytest.approx([1 / 3] * 3)
    assert last.events == (TurnEvent("relevance_failed", "no relevance estimator is set."),)


@pytest.mark.parametrize("kind", ["llm", "cross_encoder", "seq2seq"])
def test_every_estimator_weighs(parts: Parts, kind: str, tiny_cross_encoder: Path, tiny_t5: Path) -> None:
    folder = {"llm": "", "cross_encoder": str(tiny_cross_encoder), "seq2seq": str(tiny_t5)}[kind]
    relevance = RelevanceSettings(estimator=kind, model=folder, rerank=True)
    settings = parts.settings.model_copy(update={"relevance": relevance})
    estimator = load_estimator(settings, lambda done, total: None)
    llm = ScriptedLLM(["oat drink", "milk", "milk"], [{"true": r, "false": 1 - r} for r in (0.2, 0.9, 0.4)])
    parts = replace(parts, settings=settings, llm=llm, estimator=estimator)
    turn = asked(parts, Turn(QUESTION, choices=choices(strategy="re_rag", form="factoid", k=3)))
    assert turn.status == "done"
    assert sum(one.weight for one in turn.pool) == pytest.approx(1)
    assert len({one.weight for one in turn.pool}) > 1
    assert turn.answer
    assert turn.answer.origin == "pool"
    assert not turn.has_event("relevance_failed")


def test_one_passage_has_all_the_weight(parts: Parts) -> None:
    parts = sure(replace(parts, retriever=FixedRetriever([Passage("p", "", "Milk.")])), Sure({"p": 0.02}), "milk")
    turn = asked(parts, Turn(QUESTION, choices=choices(strategy="re_rag", form="factoid")))
    assert turn.pool[0].weight == turn.pool[0].probability == 1


def test_the_queries_are_searched_deeper_and_what_was_found_stays(parts: Parts) -> None:
    from assistant.steps import relevance

    shown = Passage("own", "", "Added by hand.")
    estimator = Sure({"own": 0.7})
    parts = sure(parts, estimator)
    turn = Turn(
        QUESTION, question=QUESTION, queries=(Query("question", QUESTION),), passages=(shown,), choices=choices()
    )
    [judged] = relevance.run(turn, parts, Event())
    assert estimator.asked == [["own", "p1", "p2", "p3"]]
    assert [one.id for one in judged.passages] == ["own", "p1"]
