"""Work on whole documents: every line of what comes out rests on a passage, and what was done before a stop is kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from assistant import turn as flow
from assistant.errors import LibraryError
from assistant.library.index import add_documents
from assistant.protocols import Parts
from assistant.settings import Settings
from assistant.types import Claim, Messages, Passage, Turn, Verdict, Work, WorkKind
from assistant.whole.documents import named_work, read_documents
from assistant.whole.lines import MAX_SOURCES
from assistant.whole.plan import MAX_PASSAGES, MAX_SECTIONS, SECTION_WORDS, cost, sections
from assistant.whole.work import title
from assistant.wording.replies import sentence
from assistant.wording.views import wait_progress
from tests.scripted import ScriptedLLM, WordJudge

FILLER = "And" + " and" * (SECTION_WORDS // 2) + "."
SAID = [f"The crop number {n} weighs {n} tons." for n in range(1, 7)]


def document(name: str, *texts: str) -> list[Passage]:
    return [Passage(f"{name}-{n}", name, text, source=f"{name}.txt") for n, text in enumerate(texts, 1)]


def work_on(task: WorkKind, *documents: list[Passage], columns: tuple[str, ...] = ()) -> Turn:
    names = tuple(one[0].title for one in documents)
    passages = tuple(passage for one in documents for passage in one)
    return Turn("x", work=Work(task, names, tuple(f"{name}.txt" for name in names), columns), passages=passages)


def done(parts: Parts, turn: Turn, *replies: object, stop: Event | None = None) -> list[Turn]:
    return list(flow.run(turn, replace(parts, llm=ScriptedLLM(list(replies))), stop or Event()))


def text(turn: Turn) -> str:
    assert turn.answer is not None
    return turn.answer.text


def test_a_summary_has_a_line_for_each_section_and_in_front_what_they_come_to(parts: Parts) -> None:
    oats = document("oats", *(f"{said} {FILLER}" for said in SAID))
    *_, last = done(parts, work_on("summary", oats), *SAID, SAID[2])
    assert last.status == "done"
    front = f"**In short**\n\n- {SAID[2]} [1]"
    others = (*SAID[:2], *SAID[3:])  # what was said in front is not said again
    lines = [f"- {said} [{n}]" for n, said in enumerate(others, 2)]
    assert text(last) == "\n".join([front, "", "**Section by section**", "", *lines])
    assert {one.quote for one in last.citations} == set(SAID)
    assert not last.events


def test_what_no_passage_says_is_left_out_and_counted(parts: Parts) -> None:
    *_, last = done(parts, work_on("summary", document("oats", SAID[0])), f"{SAID[0]} Zebras sleep under blue stars.")
    assert text(last) == f"- {SAID[0]} [1]"
    assert [sentence(event) for event in last.events] == [
        "Left out, since no passage says it: 1 of the lines that were written."
    ]


def test_what_is_written_as_a_list_has_one_mark_a_line(parts: Parts) -> None:
    *_, last = done(
        parts,
        work_on("summary", document("oats", " ".join(SAID[:2]))),
        f"- {SAID[0]}\n2. {SAID[1]}\n- The crop number 1",
    )
    assert text(last) == f"- {SAID[0]} [1]\n- {SAID[1]} [1]"
    assert last.left_lines == 0


def test_what_was_said_before_is_not_told_again(parts: Parts) -> None:
    texts = [
        "The rent of the flat on the hill is 900 euros a month.",
        "The rent of the flat on the hill is 900 euros a month, as the section says.",
        "The rent of the flat on the hill is 950 euros a month.",
    ]
    said = [texts[0], f"{texts[0]} {texts[1]}", texts[2]]
    *_, last = done(parts, work_on("summary", document("flat", *(f"{one} {FILLER}" for one in texts))), *said)
    assert text(last) == f"- {texts[0]} [1]\n- {texts[2]} [2]"
    assert last.left_lines == 0


def test_a_line_that_says_more_than_an_earlier_one_is_told(parts: Parts) -> None:
    short = "The machine must be cleaned every week."
    long = "The machine must be cleaned every week, and a technician must replace the filter before its first use."
    *_, last = done(parts, work_on("summary", document("manual", f"{short} {long}")), f"{short} {long}")
    assert text(last) == f"- {short} [1]\n- {long} [1]"


def test_lines_are_counted_as_left_out_before_any_is_found_and_not_after_a_stop(parts: Parts) -> None:
    oats, strange = document("oats", *(f"{said} {FILLER}" for said in SAID[:2])), "Zebras sleep under blue stars."
    *_, last = done(parts, work_on("summary", oats), strange, SAID[1])
    assert (text(last), last.left_lines) == (f"- {SAID[1]} [1]", 1)
    *_, last = done(parts, work_on("summary", oats), strange, strange)
    assert last.left_lines == 2
    stop = Event()

    class Stopped(WordJudge):
        """Is stopped before it has judged."""

        def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
            stop.set()
            return [Verdict(0.0, "not") for _ in claims]

    *_, last = done(replace(parts, support=lambda _: Stopped()), work_on("summary", oats), *SAID[:2], stop=stop)
    assert (last.status, last.left_lines) == ("stopped", 0)


@pytest.mark.parametrize("task", ["summary", "table"])
def test_each_passage_is_read_however_many_tokens_its_words_have(parts: Parts, task: WorkKind) -> None:
    class Narrow(ScriptedLLM):
        """Has a token for each character, as there may be of a script without spaces."""

        def count(self, messages: Messages) -> int:
            return sum(len(message.content) for message in messages)

    llm = Narrow(["Nothing."] * 60, context=1500)
    passages = document("rice", *(f"{n}番。" + "稲は水を好む。" * 40 for n in range(30)))
    turn = work_on(task, passages, columns=("crop",) if task == "table" else ())
    assert [*flow.run(turn, replace(parts, llm=llm), Event())][-1].status == "done"
    read = "".join(prompt[-1].content for prompt in llm.prompts)
    assert [passage.id for passage in passages if passage.text not in read] == []


def test_where_nothing_stands_it_says_so(parts: Parts) -> None:
    *_, last = done(parts, work_on("summary", document("oats", SAID[0])), "Zebras sleep under blue stars.")
    assert last.answer is not None
    assert last.answer.unknown
    assert not last.citations


def test_it_tells_how_far_it_is_and_a_stop_keeps_what_was_done(parts: Parts) -> None:
    oats, stop = document("oats", *(f"{said} {FILLER}" for said in SAID)), Event()

    def stopping(_: Messages) -> str:
        stop.set()
        return SAID[1]

    turns = done(parts, work_on("summary", oats), SAID[0], stopping, stop=stop)
    assert [told for turn in turns if (told := wait_progress(turn))][:2] == ["passage 0 of 6", "passage 1 of 6"]
    assert turns[-1].status == "stopped"
    assert f"- {SAID[0]} [1]" in text(turns[-1])


def test_what_changed_is_told_sentence_by_sentence_without_the_model(parts: Parts) -> None:
    before = document(
        "before", "Rent is 900 euros a month for both of us. Pets are allowed.", "The key is in the hall."
    )
    after = document("after", "The key is in the hall. Rent is 950 euros a month for both of us.", "No smoking inside.")
    *_, last = done(parts, work_on("changes", before, after))
    assert text(last) == (
        "**Changed**\n\n- Before: “Rent is 900 euros a month for both of us.” "
        "Now: “Rent is 950 euros a month for both of us.” [1] [2]\n\n"
        "**New**\n\n- No smoking inside. [3]\n\n**Gone**\n\n- Pets are allowed. [1]"
    )
    assert [one.quote for one in last.citations if one.passage_id == "after-2"] == ["No smoking inside."]


def test_how_a_sentence_is_set_is_no_change_but_a_number_is(parts: Parts) -> None:
    before = document("before", "The “large” flat costs 9.50 euros – a day. Cats are well-wel\xadcome.")
    after = document("after", 'The "large" flat costs 9.50 euros - a day. Cats are wellwelcome')
    *_, last = done(parts, work_on("changes", before, after))
    assert text(last) == "Both say the same, sentence by sentence."
    dearer = document("after", "The “large” flat costs 950 euros – a day. Cats are well-welcome.")
    *_, last = done(parts, work_on("changes", before, dearer))
    assert text(last).startswith("**Changed**\n\n- Before: “The “large” flat costs 9.50 euros – a day.” Now: “")
    assert "Cats" not in text(last)


@pytest.mark.parametrize(
    ("old", "new"), [("Take .5 mg daily.", "Take 5 mg daily."), ("At -18 °C.", "At 18 °C."), ("10² m.", "102 m.")]
)
def test_signs_points_and_powers_of_numbers_are_changes(parts: Parts, old: str, new: str) -> None:
    *_, last = done(parts, work_on("changes", document("before", old), document("after", new)))
    assert text(last) != "Both say the same, sentence by sentence."
    minus = document("after", old.replace("-", "−"))
    *_, last = done(parts, work_on("changes", document("before", f"- ({old})"), minus))
    assert text(last) == "Both say the same, sentence by sentence."


def test_what_has_no_number_left_is_counted(parts: Parts) -> None:
    changes = work_on("changes", document("a", "Tea is hot."), document("b", *(f"Crop {n} grows." for n in range(120))))
    *_, last = done(parts, changes)
    assert text(last).count("\n- ") == len({one.passage_id for one in last.citations}) == MAX_SOURCES
    assert text(last).endswith("22 more found, not shown: a reply numbers 99 sources at most.")
    crops = document("a", *(f"Crop {n} grows in {n} fields." for n in range(110)))
    found = rows(*([f"Crop {n}", f"{n} fields"] for n in range(110)))
    *_, last = done(parts, work_on("table", crops, columns=("crop", "fields")), *[found] * len(crops))
    assert text(last).count("\n| Crop") == MAX_SOURCES
    assert text(last).endswith("11 more found, not shown: a reply numbers 99 sources at most.")


def test_documents_that_say_the_same_have_no_changes(parts: Parts) -> None:
    *_, last = done(parts, work_on("changes", document("a", "Tea is hot."), document("b", "Tea is hot.")))
    assert text(last) == "Both say the same, sentence by sentence."


def test_two_documents_are_compared_line_by_line(parts: Parts) -> None:
    first, second = document("a", SAID[0]), document("b", SAID[0], f"Tea is a hot drink. {FILLER}", FILLER)
    *_, last = done(parts, work_on("compare", first, second), SAID[0], f"{SAID[0]} Tea is a hot drink.", "")
    assert text(last) == (
        f"**In both**\n\n- {SAID[0]} [1]\n- {SAID[0]} [2]\n\n**Only in b.txt**\n\n- Tea is a hot drink. [3]"
    )


def test_what_the_other_document_says_too_is_in_both_though_no_line_of_it_is_near(parts: Parts) -> None:
    first, second = document("a", SAID[0]), document("b", f"Tea is a hot drink. {FILLER}", f"{SAID[0]} {FILLER}")
    *_, last = done(parts, work_on("compare", first, second), SAID[0], "Tea is a hot drink.", "")
    assert text(last) == f"**In both**\n\n- {SAID[0]} [1] [2]\n\n**Only in b.txt**\n\n- Tea is a hot drink. [3]"
    assert [one.passage_id for one in last.citations] == ["a-1", "b-2", "b-1"]


def test_a_stopped_comparison_doesnt_say_what_only_one_says(parts: Parts) -> None:
    stop = Event()

    def stopping(_: Messages) -> str:
        stop.set()
        return SAID[0]

    *_, last = done(
        parts, work_on("compare", document("a", SAID[0]), document("b", SAID[0])), SAID[0], stopping, stop=stop
    )
    assert last.status == "stopped"
    assert text(last) == f"- {SAID[0]} [1]"


def test_what_is_said_of_another_matter_is_not_in_both(parts: Parts) -> None:
    first = document("a", "Barley is a crop of the north that needs little water.")
    second = document("b", "Oats are a crop of the north that needs little water.")
    lines = [first[0].text, "Oats are grown there."]

    class Sure(WordJudge):
        """Takes each for all it is asked about."""

        def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
            return [Verdict(0.9, "supported") for _ in claims]

    *_, last = done(replace(parts, support=lambda _: Sure()), work_on("compare", first, second), *lines)
    assert text(last).startswith(f"**Only in a.txt**\n\n- {first[0].text} [1]\n\n**Only in b.txt**")


def rows(*cells: list[str]) -> str:
    return json.dumps({"rows": list(cells)})


@pytest.mark.parametrize("broken", ["", '{"rows": [["Oats", "12"], ["Te', '{"rows": [["Oats", "12"], ["Tea [1] and'])
def test_a_table_holds_what_stands_in_the_passages(parts: Parts, broken: str) -> None:
    prices = document("prices", "Oats cost 12 crowns. Tea costs 40.")
    said = broken or rows(["Oats", "12"], ["Oats", "12"], ["Rice", "9"], ["Tea"])
    *_, last = done(parts, work_on("table", prices, columns=("item", "price")), said)
    assert text(last) == "| item | price |\n| --- | --- |\n| Oats | 12 [1] |"
    assert last.citations[0].quote == "Oats cost 12 crowns."
    assert [event.detail for event in last.events] == ([] if broken else ["1"])


@pytest.mark.parametrize("said", ["```json\n{}\n```", "Here is the table [of prices]:\n{}", "{}\nThat is all [of it]."])
def test_what_a_model_says_around_its_json_loses_no_row(parts: Parts, said: str) -> None:
    prices = document("prices", "Oats cost 12 crowns. Tea costs 40.")
    said = said.replace("{}", rows(["Oats", "12"], ["Tea", "40"]))
    *_, last = done(parts, work_on("table", prices, columns=("item", "price")), said)
    assert text(last).splitlines()[2:] == ["| Oats | 12 [1] |", "| Tea | 40 [1] |"]


def test_a_row_that_tells_nothing_or_is_not_copied_is_left_out(parts: Parts) -> None:
    prices = document("prices", "The price of oats is 12.50 crowns. Tea costs 40.")
    said = rows(
        ["oats", "price"], ["Tea", "item"], ["Tea", ""], ["oats", "12.5"], ["crowns oats", "40"], ["Oats", "12.50"]
    )
    *_, last = done(parts, work_on("table", prices, columns=("item", "price")), said)
    assert text(last) == "| item | price |\n| --- | --- |\n| Oats | 12.50 [1] |"
    assert last.left_lines == 5


def test_a_cell_with_another_currency_or_sign_isnt_in_the_passage(parts: Parts) -> None:
    prices = document("prices", "Coffee costs €3 and is kept at -18 degrees, with 5 % off.")
    said = rows(["Coffee", "$3"], ["Coffee", "5 €"], ["Kept", "18"], ["Coffee", "€3"], ["coffee", "3"], ["Kept", "−18"])
    *_, last = done(parts, work_on("table", prices, columns=("item", "value")), said)
    assert last.left_lines == 3
    assert text(last).splitlines()[2:] == ["| Coffee | €3 [1] |", "| coffee | 3 [1] |", "| Kept | −18 [1] |"]


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        (work_on("compare", document("a", "x")), "two documents"),
        (work_on("changes", document("a", "x"), document("a", "x")), "itself"),
        (work_on("table", document("a", "x")), "names of its columns"),
    ],
)
def test_work_that_cant_be_done_says_why(parts: Parts, turn: Turn, reason: str) -> None:
    *_, last = done(parts, turn)
    assert last.status == "failed"
    assert reason in last.error


def test_a_long_document_has_longer_sections_and_one_that_is_too_long_is_refused() -> None:
    assert len(sections(document("a", *["word " * 100] * 900))) <= MAX_SECTIONS + 1
    assert [len(one) for one in sections([*document("a", "x", "y"), *document("b", "z")])] == [2, 1]
    with pytest.raises(LibraryError, match=f"at most {MAX_PASSAGES:,}"):
        sections(document("a", *["x"] * (MAX_PASSAGES + 1)))


def test_the_cost_is_told_before() -> None:
    turn = work_on("summary", document("a", *["word " * 100] * 12))
    assert turn.work is not None
    found = cost(turn.work, turn.passages)
    assert (found.passages, found.calls) == (12, 4)
    assert found.seconds(read=100, written=10) == found.read / 100 + found.written / 10
    assert cost(replace(turn.work, task="changes"), turn.passages).calls == 0
    assert cost(replace(turn.work, task="table"), turn.passages).calls == 6


@pytest.mark.lucene
def test_documents_are_found_by_name_and_read_in_order(tmp_path: Path, settings: Settings) -> None:
    texts = {"a.txt": "\n\n".join(f"{said} {FILLER}" for said in SAID), "b.txt": "Tea is a drink."}
    for name, content in texts.items():
        (tmp_path / name).write_text(content)
    add_documents("mine", [tmp_path / name for name in texts], settings)
    work = named_work("compare", ["b.txt", "a.txt"], [], "mine", settings)
    assert title(work) == "Compare b.txt and a.txt"
    passages = read_documents(work, "mine", settings)
    assert passages[0].text == "Tea is a drink."
    assert [one.text[: len(SAID[0])] for one in passages if one.text.startswith("The")] == SAID
    refuse: Callable[[], object] = lambda: named_work("summary", ["c.txt"], [], "mine", settings)  # noqa: E731
    with pytest.raises(LibraryError, match=r"no document 'c\.txt'"):
        refuse()
