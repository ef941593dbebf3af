from collections.abc import Sequence
from dataclasses import replace
from threading import Event

import pytest

from assistant.citations import gather, is_claim, read, settle
from assistant.support import Claim, contradiction, disagree, supports
from assistant.types import Answer, Parts, Passage, Turn
from assistant.web.reply import html
from tests.scripted import ScriptedLLM

PASSAGES = (
    Passage("p1", "Lentils", "Lentils are rich in protein. A cup of cooked lentils holds 18 grams of protein."),
    Passage("p2", "Lactose", "Lactose is the sugar in milk. Oat drink holds no lactose."),
)


def cited(parts: Parts, text: str, *yes: float) -> Turn:
    llm = ScriptedLLM(choices=[{"yes": p, "no": 1 - p} for p in yes])
    turn = Turn("What is good?", question="What is good?", passages=PASSAGES, answer=Answer(text))
    *_, turn = settle(turn, replace(parts, llm=llm), Event())
    return turn


@pytest.mark.parametrize(
    ("written", "numbers"),
    [
        ("Eat oats [1].", [(1,)]),
        ("Eat oats [1][2].", [(1,), (2,)]),
        ("Eat oats [1, 2].", [(1, 2)]),
        ("Eat oats [1-3].", [(1, 2, 3)]),
        ("Eat oats 【2】.", [(2,)]),
        ("Eat oats ［2］.", [(2,)]),
        ("Eat oats [^3].", [(3,)]),
        ("Eat oats 【3†source】.", [(3,)]),
        ("Eat oats.", []),
    ],
)
def test_markers_are_read_however_they_are_written(written: str, numbers: list[tuple[int, ...]]) -> None:
    marked = read(written)
    assert marked.text == "Eat oats."
    assert [listed for _, listed in marked.hints] == numbers


@pytest.mark.parametrize(
    "text", ["Use `a[1]` or\n```\nb[2]\n```", "A probability lies in [0, 1].", "It is x[0].", "Use x[1]."]
)
def test_other_brackets_are_left_alone(text: str) -> None:
    assert read(text).text == text


def test_an_interval_is_no_marker_where_there_are_fewer_passages() -> None:
    text = "Lentils cook in [10, 20] minutes [2]."
    assert read(text, most=3).text == "Lentils cook in [10, 20] minutes."
    assert read("Vitamin a [1], food[1].").text == "Vitamin a, food."


def test_an_interval_stays_in_the_answer(parts: Parts) -> None:
    turn = cited(parts, "A cup of lentils holds 18 grams of protein [15-20].", 0.9)
    assert turn.answer
    assert turn.answer.text == "A cup of lentils holds 18 grams of protein [15-20]."


def test_a_supported_sentence_is_cited_with_the_place_of_the_sentence_that_says_so(parts: Parts) -> None:
    turn = cited(parts, "A cup of lentils holds 18 grams of protein.", 0.9)
    [citation] = turn.citations
    assert turn.answer
    assert turn.answer.text == "A cup of lentils holds 18 grams of protein. [1]"
    assert citation.passage_id == "p1"
    assert citation.quote == "A cup of cooked lentils holds 18 grams of protein."
    assert PASSAGES[0].text[citation.start : citation.end] == citation.quote
    assert citation.sentence == "A cup of lentils holds 18 grams of protein."


def test_numbers_follow_first_use_not_rank(parts: Parts) -> None:
    turn = cited(parts, "Oat drink holds no lactose. Lentils are rich in protein.", 0.9, 0.9)
    assert turn.answer
    assert turn.answer.text == "Oat drink holds no lactose. [1] Lentils are rich in protein. [2]"
    assert [(c.n, c.passage_id) for c in turn.citations] == [(1, "p2"), (2, "p1")]


def test_a_wrong_number_is_corrected_to_the_passage_that_says_so(parts: Parts) -> None:
    turn = cited(parts, "Lentils are rich in protein [2].", 0.1, 0.9)
    assert [c.passage_id for c in turn.citations] == ["p1"]


def test_a_sentence_that_nothing_supports_is_marked_not_hidden(parts: Parts) -> None:
    turn = cited(parts, "Lentils are rich in protein. They were invented by monks.", 0.9, 0.2, 0.1)
    assert [sentence.supported for sentence in turn.sentences] == [True, False]
    assert turn.answer
    assert "invented by monks." in turn.answer.text
    assert not turn.answer.unknown


def test_the_next_passage_is_asked_only_where_the_nearest_failed(parts: Parts) -> None:
    turn = cited(parts, "Oat drink holds no lactose. Lentils are rich in protein.", 0.9, 0.3, 0.8)
    assert [(c.passage_id, c.support) for c in turn.citations] == [("p2", 0.9), ("p2", 0.8)]


COUNTRIES = (
    Passage("no", "Norway - People", "Norway has 5,509,733 inhabitants. Most of them live in the south."),
    Passage("se", "Sweden - People", "Sweden has 10,589,835 inhabitants. Most of them live in towns."),
    Passage("pe", "Peru - People", "Peru has 32,600,249 inhabitants."),
    Passage("nordic", "The North", "Sweden has twice as many inhabitants as Norway."),
)


@pytest.mark.parametrize(
    ("text", "yes", "cites"),
    [
        # no passage has both figures: only the two together are asked about
        ("Norway has 5.5 million inhabitants, and Sweden 10.6 million.", (0.9,), ["no", "se"]),
        ("Norway has 5.5 million inhabitants, and Sweden 10.6 million.", (0.3,), []),
        # a figure of one side is no comparison, however sure the model is; only who tells of both is asked
        ("Norway has more inhabitants than Sweden.", (0.2, 0.9, 0.9), []),
        ("Sweden has more inhabitants than Norway.", (0.9,), ["nordic"]),
        # one passage names all of it, and does not say so
        ("In Norway most inhabitants live in the north.", (0.1, 0.2, 0.9), []),
    ],
)
def test_a_sentence_may_rest_on_two_passages_but_a_comparison_only_on_one(
    parts: Parts, text: str, yes: tuple[float, ...], cites: list[str]
) -> None:
    llm = ScriptedLLM(choices=[{"yes": p, "no": 1 - p} for p in yes])
    question = "Which has more inhabitants, Norway or Sweden?"
    turn = Turn(question, question=question, passages=COUNTRIES, answer=Answer(text))
    *_, turn = settle(turn, replace(parts, llm=llm), Event())
    assert sorted({one.passage_id for one in turn.citations}) == cites
    assert turn.answer
    assert turn.answer.unknown is not bool(cites)


TRADE = (
    Passage(
        "pt", "Portugal - Trade", "The exports of Portugal are 144 billion. The imports of Portugal are 136 billion."
    ),
    Passage(
        "es", "Spain", "The Ebro, a river of Spain, is 930 kilometers long. Portugal sells goods of 36 billion there."
    ),
)


@pytest.mark.parametrize(
    ("text", "cites"),
    [
        # 136 is in what the two passages say, but not of Spain
        ("Portugal's exports are 144 billion, while Spain's exports are 136 billion.", []),
        ("Portugal has exports of 144 billion, and Spain has a river of 930 kilometers.", ["es", "pt"]),
        # what is told of the one in the other's passage is told of it
        (
            "Portugal has exports of 144 billion, 36 billion there, and Spain has a river of 930 kilometers.",
            ["es", "pt"],
        ),
        # which number is whose can't be told
        ("Exports of 144 billion has Portugal, and 136 billion Spain.", ["es", "pt"]),
        ("Portugal and Spain have exports of 144 billion and of 136 billion.", ["es", "pt"]),
    ],
)
def test_of_two_passages_a_number_counts_for_what_it_is_told_of(parts: Parts, text: str, cites: list[str]) -> None:
    llm = ScriptedLLM(choices=[{"yes": p, "no": 1 - p} for p in (0.9, 0.9, 0.9)])
    turn = Turn("What do they export?", question="What do they export?", passages=TRADE, answer=Answer(text))
    *_, turn = settle(turn, replace(parts, llm=llm), Event())
    assert sorted(one.passage_id for one in turn.citations) == cites


def test_the_outcome_of_a_comparison_that_nobody_tells_is_left_out_beside_the_figures(parts: Parts) -> None:
    llm = ScriptedLLM(choices=[{"yes": p, "no": 1 - p} for p in (0.1, 0.9)])
    question, figures = (
        "Which has more inhabitants, Norway or Sweden?",
        "Norway has 5.5 million inhabitants, and Sweden 10.6 million.",
    )
    text = f"Norway has more inhabitants than Sweden. {figures} Where is that?"
    turn = Turn(question, question=question, passages=COUNTRIES, answer=Answer(text))
    *_, turn = settle(turn, replace(parts, llm=llm), Event())
    assert turn.answer
    outcome = "Of the two figures, Sweden's is the higher."
    assert turn.answer.text == f"{figures} [1] [2] Where is that? {outcome} [1] [2]"
    assert [sentence.text for sentence in turn.sentences] == [figures, "Where is that?", outcome]
    assert {citation.sentence for citation in turn.citations} == {figures, outcome}


def compared(parts: Parts, text: str, *yes: float, passages: Sequence[Passage] = COUNTRIES) -> str:
    """How an answer to which country has more people is cited."""
    question = "Which has more inhabitants, Norway or Sweden?"
    llm = ScriptedLLM(choices=[{"yes": p, "no": 1 - p} for p in yes])
    *_, turn = settle(
        Turn(question, question=question, passages=tuple(passages), answer=Answer(text)),
        replace(parts, llm=llm),
        Event(),
    )
    assert turn.answer
    return turn.answer.text


def test_an_outcome_that_the_figures_contradict_is_left_out_though_the_model_thinks_it_backed(parts: Parts) -> None:
    said = compared(
        parts,
        "Sweden has fewer inhabitants than Norway. Norway has 5.5 million. Sweden has 10.6 million.",
        0.9,
        0.9,
        0.9,
    )
    assert said == (
        "Norway has 5.5 million. [1] Sweden has 10.6 million. [2] Of the two figures, Sweden's is the higher. [1] [2]"
    )


def test_who_names_both_and_compares_nothing_is_not_asked_for_the_outcome(parts: Parts) -> None:
    borders = Passage("borders", "Norway - Geography", "Norway borders on Sweden, Finland and Russia.")
    text = "Norway has more inhabitants than Sweden."
    assert compared(parts, text, 0.9, passages=[borders]) == text


def test_what_goes_on_with_a_sentence_that_is_left_out_is_spelt_out(parts: Parts) -> None:
    text = "Sweden has fewer inhabitants. It has 10.6 million, and Norway 5.5 million."
    assert compared(parts, text, 0.9, 0.9, 0.9) == (
        "Sweden has 10.6 million, and Norway 5.5 million. [1] [2] Of the two figures, Sweden's is the higher. [1] [2]"
    )


def test_an_outcome_that_a_passage_tells_is_not_told_again(parts: Parts) -> None:
    said = compared(
        parts,
        "Sweden has more inhabitants than Norway. Norway has 5.5 million. Sweden has 10.6 million.",
        0.9,
        0.9,
        0.9,
    )
    assert (
        said == "Sweden has more inhabitants than Norway. [1] Norway has 5.5 million. [2] Sweden has 10.6 million. [3]"
    )


def test_the_outcome_of_a_list_is_a_paragraph_of_its_own(parts: Parts) -> None:
    said = compared(parts, "- Norway has 5.5 million.\n- Sweden has 10.6 million.", 0.9, 0.9)
    assert said.splitlines() == [
        "- Norway has 5.5 million. [1]",
        "- Sweden has 10.6 million. [2]",
        "",
        "Of the two figures, Sweden's is the higher. [1] [2]",
    ]


def test_figures_without_support_have_no_outcome(parts: Parts) -> None:
    said = compared(parts, "Norway has 5.5 million. Sweden has 10.6 million.", 0.9, 0.1, 0.1)
    assert said == "Norway has 5.5 million. [1] Sweden has 10.6 million."


def test_what_differs_in_degree_elsewhere_is_no_comparison(parts: Parts) -> None:
    turn = cited(parts, "Lentils are richer in protein than most.", 0.9)
    assert [citation.passage_id for citation in turn.citations] == ["p1"]


def test_of_two_near_passages_the_one_with_the_sentences_words_is_asked_first(parts: Parts) -> None:
    texts = ["Calcium comes from fortified drinks, tofu, sardines and kale."]
    diet = Passage("diet", "Vegan diet", "Vegans get calcium from fortified drinks. Vegans get calcium from tofu.")
    sources = Passage("sources", "Without dairy", "Fortified drinks, tofu. Other sources: canned sardines and kale.")
    [[first, second]] = gather(texts, (diet, sources), [frozenset()], parts.embedder)
    assert (first.passage.id, second.passage.id) == ("sources", "diet")
    [[hinted, _]] = gather(texts, (diet, sources), [frozenset({"diet"})], parts.embedder)
    assert hinted.passage.id == "diet"


def test_an_answer_without_support_is_unknown(parts: Parts) -> None:
    turn = cited(parts, "Lentils were invented by monks.", 0.2, 0.1)
    assert turn.answer
    assert turn.answer.unknown


def test_an_unknown_number_points_nowhere(parts: Parts) -> None:
    turn = cited(parts, "Lentils are rich in protein [9].", 0.9)
    assert turn.answer
    assert turn.answer.text == "Lentils are rich in protein. [1]"


def test_layout_survives(parts: Parts) -> None:
    turn = cited(parts, "Try:\n- Lentils are rich in protein.\n- Oat drink holds no lactose.", 0.9, 0.9)
    assert turn.answer
    assert turn.answer.text == "Try:\n- Lentils are rich in protein. [1]\n- Oat drink holds no lactose. [2]"


def test_the_marker_of_a_tables_row_stands_in_its_last_cell(parts: Parts) -> None:
    rows = "| food | what it is rich in |\n|---|---|\n| Lentils are | rich in protein |"
    turn = cited(parts, f"{rows}\n\nOat drink holds no lactose.", *[0.9] * 6)
    assert turn.answer
    assert "| rich in protein [1] |\n\nOat drink holds no lactose. [2]" in turn.answer.text
    assert str(html(turn)).count('class="chip') == len(turn.citations)


def test_a_block_of_code_is_cited_beneath_it(parts: Parts) -> None:
    block = "```\nLentils are rich in protein.\nOat drink holds no lactose.\n```"
    turn = cited(parts, f"Do this:\n{block}\nOat drink holds no lactose. Lentils are rich in protein.", *[0.9] * 6)
    assert turn.answer
    assert block in turn.answer.text
    shown = str(html(turn))
    assert "[" not in shown
    said = [citation.sentence for citation in turn.citations]
    assert said == [block, "Oat drink holds no lactose.", "Lentils are rich in protein."]
    assert shown.count('class="chip') == 3
    assert shown.index("</pre>") < shown.index('class="chip') < shown.index("<p>Oat drink")


def test_code_that_nothing_supports_is_not_marked(parts: Parts) -> None:
    turn = cited(parts, "```\nrm -r build\n```\nLentils are rich in protein.", 0.1, 0.9, 0.1)
    assert [sentence.supported for sentence in turn.sentences] == [True, True]
    assert turn.answer
    assert turn.answer.text.endswith("```\nLentils are rich in protein. [1]")


def test_an_or_that_weighs_nothing_takes_no_sentence_away(parts: Parts) -> None:
    question = "Should I eat lentils or Oats for protein?"
    text = "Lentils are rich in protein. Lentils have more of it than most."
    turn = Turn(question, question=question, passages=PASSAGES, answer=Answer(text))
    llm = ScriptedLLM(choices=[{"yes": p, "no": 1 - p} for p in (0.9, 0.1, 0.1)])
    *_, turn = settle(turn, replace(parts, llm=llm), Event())
    assert [sentence.supported for sentence in turn.sentences] == [True, False]


def test_names_that_begin_alike_are_told_apart(parts: Parts) -> None:
    countries = (
        Passage("at", "Austria - People", "The population of Austria is 9 million."),
        Passage("au", "Australia - People", "The population of Australia is 27 million."),
    )
    question = "Which has more people, Austria or Australia?"
    turn = Turn(
        question, question=question, passages=countries, answer=Answer("Austria has more people than Australia.")
    )
    *_, turn = settle(turn, replace(parts, llm=ScriptedLLM(choices=[{"yes": 0.9, "no": 0.1}] * 4)), Event())
    assert turn.citations == ()


@pytest.mark.parametrize(
    ("sentence", "evidence", "missing"),
    [
        ("It became independent in 1960.", "It became independent in 1957.", "number 1960"),
        ("It became independent in 1957.", "It became independent on 3 May 1957.", None),
        ("It has 1500 inhabitants.", "It has 1,520 inhabitants.", None),
        ("The capital there is Peru\u2019s Lima.", "Lima is the capital of Peru.", None),
        ("It is a UK-wide law.", "It is law in all of the UK.", None),
        ("It was written by O\u2019Brien.", "It was written by O'Brien.", None),
    ],
)
def test_years_are_exact_and_names_are_without_what_hangs_on_them(
    sentence: str, evidence: str, missing: str | None
) -> None:
    assert contradiction(Claim(sentence, "", evidence)) == missing


@pytest.mark.parametrize(
    ("sentence", "missing"),
    [
        ("The USA is about twice the size of China.", "twice of China"),
        ("It is half the size of Russia and twice the size of China.", "twice of China"),
        ("It is half the size of China.", "half of China"),
        ("It is about half the size of Russia.", None),
        ("It is slightly larger than China and more than twice the size of the European Union.", None),
        ("Half of the USA is farmland.", None),
        ("It is twice as large.", None),
    ],
)
def test_a_ratio_is_that_to_the_thing_it_is_told_of(sentence: str, missing: str | None) -> None:
    evidence = "It is about half the size of Russia; slightly larger than China; twice the size of the European Union."
    assert contradiction(Claim(sentence, "USA - Geography", evidence)) == missing


def test_answers_that_give_other_years_disagree() -> None:
    assert disagree("It was opened in 1905.", "It was opened in 1945.")
    assert not disagree("It was opened in 1905.", "It was opened on 3 May 1905.")


def test_a_number_that_the_passage_lacks_needs_no_model(parts: Parts) -> None:
    turn = cited(parts, "A cup of lentils holds 25 grams of protein.")
    assert turn.citations == ()
    assert turn.sentences[0].support == 0.0


@pytest.mark.parametrize("text", ["Shall I go on with that?", "Here are some options:", "Of course."])
def test_what_claims_nothing_needs_no_source(text: str) -> None:
    assert not is_claim(text)


@pytest.mark.parametrize("text", ["Lentils are rich.", "日本の首都は東京です。", "这是一个很好的问题。"])
def test_claims_in_any_script(text: str) -> None:
    assert is_claim(text)
    assert not is_claim("東京。")


@pytest.mark.parametrize(("score", "unknown"), [(0.9, False), (0.1, True)])
def test_an_answer_that_is_but_a_phrase_is_asked_about_as_well(parts: Parts, score: float, unknown: bool) -> None:
    turn = cited(parts, "Lentils.", score, score)
    assert turn.answer
    assert turn.answer.unknown is unknown
    assert turn.answer.text == ("Lentils." if unknown else "Lentils. [1]")


def test_no_passages_no_citations(parts: Parts) -> None:
    turn = Turn("Hm?", question="Hm?", answer=Answer("Lentils are rich in protein."))
    *_, turn = settle(turn, replace(parts, llm=ScriptedLLM()), Event())
    assert turn.answer
    assert turn.answer.unknown


LANGUAGES = (
    "The languages spoken in Switzerland are German (official) 62.1%, French (official) 22.8%, Italian (official) 8%, "
    "English 5.7%, Portuguese 3.5% (2019 estimate)."
)


def support(sentence: str, evidence: str) -> float:
    """What is known without asking the model, or -1."""
    return supports([Claim(sentence, "", evidence)], ScriptedLLM(choices=[{"yes": -1.0, "no": 2.0}]), Event())[0]


def test_a_long_quotation_needs_no_model() -> None:
    quoted = "German (official) 62.1%, French (official) 22.8%, Italian (official) 8%, English 5.7%, Portuguese …"
    assert support(quoted, LANGUAGES) == 1.0
    assert support(quoted.replace("22.8", "28.2"), LANGUAGES) == 0.0


def test_a_short_quotation_may_have_lost_its_not() -> None:
    assert support("coffee prevents diabetes.", "No study shows that coffee prevents diabetes.") == -1.0


@pytest.mark.parametrize(
    ("sentence", "evidence", "known"),
    [
        ("It has thirty-two thousand inhabitants.", "It has 32,000 inhabitants.", -1.0),
        ("It has thirty-two thousand inhabitants.", "It has 2,000 inhabitants.", 0.0),
        ("Twenty-five people came.", "There were 25 guests.", -1.0),
        ("Twenty-five people came.", "There were 20 guests at 5.", 0.0),
        ("It cost two hundred thousand.", "The price was 200,000.", -1.0),
        ("From twenty 2025 cars.", "20 cars of 2025.", -1.0),
        ("In 1900 the town had 50 people.", "It had 50 people in 1900 and 50 thousand in 2000.", -1.0),
        ("Two hundred and fifty people live there.", "It has 250 inhabitants.", -1.0),
        ("It has 120 rooms.", "There are one hundred and twenty rooms.", -1.0),
        ("Two hundred fifty people live there.", "It has 200 inhabitants and 50 cows.", 0.0),
        ("The war lasted from 1939 to 1945.", "The war (1939-45) ended.", -1.0),
        ("In 1900 the town had 60 people.", "It had 50 people in 1900 and 60 thousand in 2000.", 0.0),
    ],
)
def test_numbers_in_words(sentence: str, evidence: str, known: float) -> None:
    assert support(sentence, evidence) == known
