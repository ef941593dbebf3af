"""How sentences are cited by what a judge of support says of them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from assistant import turn as flow
from assistant.errors import ModelError
from assistant.grounding.claims import is_claim, segments
from assistant.grounding.evidence import hinted, nearest_evidence
from assistant.judges.addresses import cited_excerpts
from assistant.judges.load import support as load_support
from assistant.judges.packed import WEIGHTS
from assistant.judges.support import trained
from assistant.judges.support.llm import ByLLM
from assistant.protocols import Parts, SupportJudge
from assistant.settings import Settings, TurnSettings
from assistant.steps import cite
from assistant.store.export import document, escaped
from assistant.text.markers import extract_markers
from assistant.types import Answer, Choices, Claim, Passage, Turn, TurnEvent, Verdict
from assistant.web.reply import html
from assistant.wording.views import as_json
from tests.scripted import WORDS, FixedRetriever, ScriptedLLM, WordJudge

LENTILS = Passage("p1", "Lentils", "Lentils are rich in protein. A cup of cooked lentils holds 18 grams of protein.")
LACTOSE = Passage("p2", "Lactose", "Lactose is the sugar in milk. Oat drink holds no lactose.")
PASSAGES = (LENTILS, LACTOSE)


def cited(
    parts: Parts,
    text: str,
    judge: SupportJudge | None = None,
    passages: Sequence[Passage] = PASSAGES,
    stop: Event | None = None,
    **given: Any,
) -> Turn:
    """The turn with its citations; the second look at it has tests of its own."""
    judge = judge or WordJudge()
    turn = Turn("What is good?", question="What is good?", passages=tuple(passages), answer=Answer(text), **given)
    knobs = parts.settings.turn.model_copy(update={"addresses_threshold": 0.0})
    settings = parts.settings.model_copy(update={"turn": knobs})
    *_, turn = cite.run(turn, replace(parts, settings=settings, support=lambda _: judge), stop or Event())
    return turn


def text_of(turn: Turn) -> str:
    assert turn.answer
    return turn.answer.text


def states(turn: Turn) -> list[str]:
    return [sentence.state for sentence in turn.sentences]


# --- what is cited -----------------------------------------------------------------------------------------------


def test_a_supported_sentence_is_cited_with_the_place_that_is_nearest_to_it(parts: Parts) -> None:
    turn = cited(parts, "A cup of lentils holds 18 grams of protein.")
    [citation] = turn.citations
    assert text_of(turn) == "A cup of lentils holds 18 grams of protein. [1]"
    assert citation.passage_id == "p1"
    assert citation.quote == "A cup of cooked lentils holds 18 grams of protein."
    assert LENTILS.text[citation.start : citation.end] == citation.quote
    assert citation.sentence == "A cup of lentils holds 18 grams of protein."
    assert not citation.partly
    assert turn.sentences[0].citations == (1,)


def test_a_partly_supported_sentence_is_cited_as_such(parts: Parts) -> None:
    turn = cited(parts, "Lentils are rich in protein and monks love them.")
    assert text_of(turn).endswith(" [1]")
    assert states(turn) == ["partly"]
    assert [citation.partly for citation in turn.citations] == [True]
    assert turn.answer
    assert not turn.answer.unknown


def test_a_sentence_that_no_passage_says_is_marked_and_stays(parts: Parts) -> None:
    turn = cited(parts, "Lentils are rich in protein. Monks invented them.")
    assert text_of(turn) == "Lentils are rich in protein. [1] Monks invented them."
    assert states(turn) == ["supported", "not"]
    assert turn.answer
    assert not turn.answer.unknown


def test_an_answer_that_no_passage_says_is_unknown_and_stays(parts: Parts) -> None:
    turn = cited(parts, "Monks invented lentils [1]. They walked to Rome.")
    assert turn.answer == Answer("Monks invented lentils. They walked to Rome.", unknown=True)
    assert states(turn) == ["not", "not"]
    assert turn.citations == ()


def test_numbers_follow_first_use_not_rank(parts: Parts) -> None:
    turn = cited(parts, "Oat drink holds no lactose. Lentils are rich in protein. Lactose is in milk.")
    assert text_of(turn) == "Oat drink holds no lactose. [1] Lentils are rich in protein. [2] Lactose is in milk. [1]"
    assert [(c.n, c.passage_id) for c in turn.citations] == [(1, "p2"), (2, "p1"), (1, "p2")]


@pytest.mark.parametrize("written", ["Lentils are rich in protein [2].", "Lentils are rich in protein [9]."])
def test_a_wrong_number_is_corrected_to_the_passage_that_says_so(parts: Parts, written: str) -> None:
    turn = cited(parts, written)
    assert text_of(turn) == "Lentils are rich in protein. [1]"
    assert [c.passage_id for c in turn.citations] == ["p1"]


def test_an_interval_stays_in_the_answer(parts: Parts) -> None:
    text = "A cup of lentils holds 18 grams of protein [15-20]."
    assert text_of(cited(parts, text, WordJudge(replies={text: "not"}))) == text


def test_what_only_two_passages_say_together_is_cited_with_both(parts: Parts) -> None:
    said = "Lentils are rich in protein, lactose is the sugar in milk."
    turn = cited(parts, f"{said} Oat drink holds no lactose.")
    assert text_of(turn) == f"{said} [1] [2] Oat drink holds no lactose. [1]"
    assert states(turn) == ["supported", "supported"]
    assert {citation.passage_id for citation in turn.citations[:2]} == {"p1", "p2"}


def test_where_one_passage_says_it_two_are_not_cited(parts: Parts) -> None:
    assert text_of(cited(parts, "Oat drink holds no lactose.")) == "Oat drink holds no lactose. [1]"


PULSES = Passage("p3", "Pulses", "Beans, peas and lentils are rich in protein, and cheap.")
COPY = replace(LENTILS, id="p4", title="Lentils, second edition")


def test_a_sentence_that_two_passages_say_carries_both_each_with_its_own_place(parts: Parts) -> None:
    turn = cited(parts, "Lentils are rich in protein.", passages=(LENTILS, LACTOSE, PULSES))
    assert text_of(turn) == "Lentils are rich in protein. [1] [2]"
    assert turn.sentences[0].citations == (1, 2)
    assert {c.passage_id: c.quote for c in turn.citations} == {
        "p1": "Lentils are rich in protein.",
        "p3": PULSES.text,
    }
    assert [c.further for c in turn.citations] == [False, True]
    assert str(html(turn)).count('class="chip') == 2
    exported = document("Food", [turn])
    assert all(escaped(one.quote) in exported for one in turn.citations)
    assert [one["n"] for one in as_json(turn)["citations"]] == [1, 2]


def test_no_sentence_carries_more_than_three(parts: Parts) -> None:
    heads = ("Cooks know it:", "Peas, beans,", "On farms of the south", "Sold in cans,")
    many = [Passage(f"m{n}", "", f"{head} lentils are rich in protein.") for n, head in enumerate(heads)]
    turn = cited(parts, "Lentils are rich in protein.", passages=many)
    assert turn.sentences[0].citations == (1, 2, 3)


def test_a_copy_of_a_passage_is_no_second_source(parts: Parts) -> None:
    turn = cited(parts, "Lentils are rich in protein.", passages=(LENTILS, COPY))
    assert turn.sentences[0].citations == (1,)
    turn = cited(parts, "Lentils are rich in protein.", passages=(LENTILS, COPY, PULSES))
    assert [c.passage_id for c in turn.citations] == ["p1", "p3"]


def test_a_passage_that_says_a_part_is_no_second_source(parts: Parts) -> None:
    half = Passage("half", "Rich", "Rich in protein.")
    turn = cited(parts, "Lentils are rich in protein and a cup holds 18 grams.", passages=(LENTILS, half))
    assert [c.passage_id for c in turn.citations] == ["p1"]


def test_the_second_look_reads_no_further_sources(parts: Parts) -> None:
    passages = (LENTILS, PULSES)
    turn = cited(parts, "Lentils are rich in protein.", passages=passages)
    assert [one.id for one in cited_excerpts(turn.citations, passages)] == ["p1"]


# --- what the judge is asked -------------------------------------------------------------------------------------


def test_sentences_are_asked_about_together_as_replies_to_the_question(parts: Parts) -> None:
    class Counting(WordJudge):
        calls = 0

        def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
            self.calls += 1
            return super().judge(claims, stop)

    judge = Counting()
    cited(parts, "Lentils are rich in protein. Oat drink holds no lactose. Right?", judge)
    assert (judge.calls, len(judge.claims)) == (1, 2)
    assert {claim.question for claim in judge.claims} == {"What is good?"}


def test_the_next_passage_is_asked_where_the_nearest_does_not_say_it_and_two_together_last(parts: Parts) -> None:
    judge = WordJudge()
    cited(parts, "Lentils are rich in protein. Lentils and oat drink are sold on Mars.", judge)
    asked = [[one.id for one in claim.evidence] for claim in judge.claims if "Mars" in claim.sentence]
    assert asked[0] != asked[1]
    assert [len(some) for some in asked] == [1, 1, 2]
    assert sum("rich" in claim.sentence for claim in judge.claims) == 1


def test_the_few_nearest_passages_are_asked_those_pointed_at_first(parts: Parts) -> None:
    many = [Passage(f"m{n}", "Soup", "Lentils are in soup.") for n in range(6)]
    judge = WordJudge()
    cited(parts, "Lentils are rich in iron [7].", judge, [*PASSAGES, *many])
    alone = [claim.evidence[0].id for claim in judge.claims if len(claim.evidence) == 1]
    assert alone[:2] == ["m4", "p1"]
    assert len(alone) == 3


@pytest.mark.parametrize("end", [" [2].", ". [2]", ".\n[2]"])
def test_a_marker_points_for_its_own_sentence_alone(end: str) -> None:
    marked = extract_markers(f"Monks eat lentils. They are rich in protein{end} Monks walk.", len(PASSAGES))
    pointed_at = [hinted(marked, span, PASSAGES) for span in segments(marked.text)]
    assert pointed_at == [frozenset(), {"p2"}, frozenset()]


def test_of_a_long_passage_the_stretch_around_the_nearest_sentence_is_read(parts: Parts) -> None:
    filler = " ".join(f"Fact number {n} is on something else entirely, as are the others." for n in range(40))
    judge = WordJudge()
    long = Passage("long", "Food", f"{filler} Lentils are rich in protein. {filler}")
    turn = cited(parts, "Lentils are rich in protein.", judge, [long])
    [claim] = judge.claims
    assert "Lentils are rich in protein." in claim.evidence[0].text
    assert len(claim.evidence[0].text.split()) <= 80
    assert turn.citations[0].quote == "Lentils are rich in protein."


def test_of_two_near_passages_the_one_with_the_sentences_words_is_asked_first(parts: Parts) -> None:
    texts = ["Calcium comes from fortified drinks, tofu, sardines and kale."]
    diet = Passage("diet", "Vegan diet", "Vegans get calcium from fortified drinks. Vegans get calcium from tofu.")
    sources = Passage("sources", "Without dairy", "Fortified drinks, tofu. Other sources: canned sardines and kale.")
    [[first, second]] = nearest_evidence(texts, (diet, sources), [frozenset()], parts.embedder)
    assert (first.passage.id, second.passage.id) == ("sources", "diet")
    [[hinted, _]] = nearest_evidence(texts, (diet, sources), [frozenset({"diet"})], parts.embedder)
    assert hinted.passage.id == "diet"


def test_a_long_reply_takes_few_passages_a_sentence(parts: Parts) -> None:
    judge = WordJudge()
    turn = cited(parts, " ".join(f"Lentils number {n} are rich in protein." for n in range(200)), judge)
    assert len(turn.sentences) == 200
    assert len(judge.claims) == 200


@pytest.mark.parametrize("text", ["Shall I go on with that?", "Here are some options:", "Of course."])
def test_what_claims_nothing_needs_no_source(parts: Parts, text: str) -> None:
    assert not is_claim(text)
    turn = cited(parts, f"{text}\nLentils are rich in protein.")
    assert states(turn) == ["unchecked", "supported"]


@pytest.mark.parametrize("text", ["Lentils are rich.", "日本の首都は東京です。", "这是一个很好的问题。"])
def test_claims_in_any_script(text: str) -> None:
    assert is_claim(text)
    assert not is_claim("東京。")


def test_a_reply_in_another_language_is_not_found(parts: Parts) -> None:
    turn = cited(parts, "Linsen enthalten viel Eiweiß. 日本の首都は東京です。")
    assert states(turn) == ["not", "not"]
    assert turn.answer
    assert turn.answer.unknown


@pytest.mark.parametrize(("text", "unknown"), [("Lentils.", False), ("Monks.", True)])
def test_an_answer_that_is_but_a_phrase_is_asked_about_as_well(parts: Parts, text: str, unknown: bool) -> None:
    turn = cited(parts, text)
    assert turn.answer == Answer(text if unknown else f"{text} [1]", unknown)


def test_no_passages_no_citations(parts: Parts) -> None:
    turn = cited(parts, "Lentils are rich in protein.", passages=())
    assert turn.answer == Answer("Lentils are rich in protein.", unknown=True)
    assert states(turn) == ["not"]


@pytest.mark.parametrize("text", ["", " ", "?"])
def test_a_reply_that_says_nothing_is_unknown(parts: Parts, text: str) -> None:
    turn = cited(parts, text)
    assert turn.answer == Answer(text, unknown=True)
    assert turn.citations == ()


# --- layout ------------------------------------------------------------------------------------------------------


def test_layout_survives(parts: Parts) -> None:
    turn = cited(parts, "Try:\n- Lentils are rich in protein.\n- Oat drink holds no lactose.")
    assert text_of(turn) == "Try:\n- Lentils are rich in protein. [1]\n- Oat drink holds no lactose. [2]"


def test_the_marker_of_a_tables_row_stands_in_its_last_cell(parts: Parts) -> None:
    rows = "| food | what it is rich in |\n|---|---|\n| Lentils are | rich in protein |"
    turn = cited(parts, f"{rows}\n\nOat drink holds no lactose.")
    assert "| rich in protein [1] |\n\nOat drink holds no lactose. [2]" in text_of(turn)
    assert str(html(turn)).count('class="chip') == len(turn.citations)


def test_a_block_of_code_is_cited_beneath_it(parts: Parts) -> None:
    block = "```\nLactose is the sugar in milk.\nOat drink holds no lactose.\n```"
    turn = cited(parts, f"Do this:\n{block}\nOat drink holds no lactose. Lentils are rich in protein.")
    assert block in text_of(turn)
    shown = str(html(turn))
    assert "[" not in shown
    said = [citation.sentence for citation in turn.citations]
    assert said == [block, "Oat drink holds no lactose.", "Lentils are rich in protein."]
    assert [(one.state, one.citations) for one in turn.sentences[1:]] == [("supported", (n,)) for n in (1, 1, 2)]
    assert shown.count('class="chip') == 3
    assert shown.index("</pre>") < shown.index('class="chip') < shown.index("<p>Oat drink")


@pytest.mark.parametrize(
    "code",
    [
        "`Lentils are rich. Then rich in protein`",
        "~~~\nprint('Lentils')\nrich = 'in protein'\n~~~\n",
        "````\n```\nprint('Lentils')\n```\nrich = 'in protein'\n````\n",
    ],
)
def test_no_marker_is_written_into_code_and_those_behind_it_are_chips(parts: Parts, code: str) -> None:
    turn = cited(parts, f"{code} Lentils are rich in protein. Oat drink holds no lactose.")
    assert code in text_of(turn)
    assert html(turn).count('class="chip') == len(turn.citations) > 1


def test_code_that_no_passage_says_is_not_marked(parts: Parts) -> None:
    turn = cited(parts, "```\nrm -r build\n```\nLentils are rich in protein.")
    assert states(turn) == ["unchecked", "supported"]
    assert text_of(turn).endswith("```\nLentils are rich in protein. [1]")


# --- a judge that can't be used ----------------------------------------------------------------------------------


class Broken(WordJudge):
    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
        raise RuntimeError("out of memory")


def test_without_a_judge_nothing_is_cited_and_the_turn_says_so(parts: Parts) -> None:
    turn = Turn("What?", question="What?", passages=PASSAGES, answer=Answer("Lentils are rich in protein [1]."))
    *_, turn = cite.run(turn, replace(parts, support=None), Event())
    assert turn.answer == Answer("Lentils are rich in protein.")
    assert states(turn) == ["unchecked"]
    assert turn.citations == ()
    assert turn.events == (TurnEvent("not_checked", "no judge is set."),)


def test_a_judge_that_breaks_leaves_the_answer(parts: Parts) -> None:
    turn = cited(parts, "Lentils are rich in protein.", Broken())
    assert turn.answer == Answer("Lentils are rich in protein.")
    assert turn.events == (TurnEvent("not_checked", "the judge failed (out of memory)."),)


def test_a_judge_that_is_cut_short_ends_no_turn(
    parts: Parts, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(trained.SHIPPED, tmp_path / "judge")
    whole = (tmp_path / "judge" / WEIGHTS).read_bytes()
    (tmp_path / "judge" / WEIGHTS).write_bytes(whole[: len(whole) // 2])
    monkeypatch.setattr("assistant.judges.support.trained.SHIPPED", tmp_path / "judge")
    support = load_support(settings, WORDS)
    with pytest.raises(ModelError, match="The support judge can't be used"):
        support(parts.llm)
    llm = ScriptedLLM(["Lentils.", "Lentils are rich in protein. They are cheap."])
    asked = replace(parts, llm=llm, support=support, retriever=FixedRetriever(list(PASSAGES)))
    *_, turn = flow.run(Turn("What are lentils rich in?", choices=Choices(k=2)), asked, Event())
    assert (turn.status, states(turn), turn.citations) == ("done", ["unchecked"] * 2, ())
    assert [event.code for event in turn.events] == ["not_checked"]


def test_a_stop_while_it_is_judged_leaves_the_answer_as_it_was(parts: Parts) -> None:
    stop = Event()

    class Stopping(WordJudge):
        def judge(self, claims: Sequence[Claim], event: Event) -> list[Verdict]:
            event.set()
            return [Verdict(0.0, "not") for _ in claims]

    turn = cited(parts, "Lentils are rich in protein [1].", Stopping(), stop=stop)
    assert turn.answer == Answer("Lentils are rich in protein [1].")
    assert turn.sentences == ()


# --- the judges that a setting names -----------------------------------------------------------------------------


def test_the_language_model_may_judge(settings: Settings, parts: Parts) -> None:
    knobs = settings.model_copy(update={"turn": TurnSettings(support="llm", support_threshold=0.7)})
    llm = ScriptedLLM(choices=[{"yes": p, "no": 1 - p} for p in (0.6, 0.1, 0.1)])
    judge = load_support(knobs, WORDS)(llm)
    assert isinstance(judge, ByLLM)
    turn = cited(parts, "Lentils are rich in protein.", judge)
    assert (states(turn), llm.choices) == (["not"], [])


@pytest.mark.model
def test_the_judge_that_ships_is_loaded_once_and_tells_what_is_said(settings: Settings, parts: Parts) -> None:
    support = load_support(settings, WORDS)
    judge = support(ScriptedLLM())
    assert support(ScriptedLLM()) is judge
    turn = cited(parts, "A cup of cooked lentils holds 18 grams of protein. A cup holds 45 grams of fat.", judge)
    said, wrong = turn.sentences
    assert wrong.state != "supported"
    assert said.support is not None
    assert wrong.support is not None
    assert said.support > wrong.support
    assert wrong.text in text_of(turn)
