"""A conversation as HTML: its sources are numbered and linked, and nothing in it acts."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from lxml import html as parser

from assistant.store.conversations import Conversation
from assistant.store.export import document
from assistant.types import Answer, Citation, Passage, Sentence, Turn, now
from assistant.web.exported import exported
from tests.browser.fake import HOSTILE

SITE = "https://sequitur.example/house/"
OWN = Passage("0a-2", "Doors", "The key hangs.", source="doors (1).md", own=True)
WEB = Passage("0b-1", "Oats", "Oats are a cereal.", source="https://example.org/oats.pdf, page 3", own=True, page=3)
SHELF = Passage("food-1", "Rice", "Rice is a cereal.", source="Everyday shelf")


def turn(text: str, *passages: Passage, **values: object) -> Turn:
    cited = tuple(Citation(n, one.id, 0, 5, "s", one.text, 0.9) for n, one in enumerate(passages, 1))
    given = {"passages": passages, "citations": cited, "answer": Answer(text), "status": "done", **values}
    return Turn("Where?", **given)


def page(*turns: Turn, title: str = "House", site: str = SITE) -> str:
    return exported(Conversation("c", title, now(), now(), turns), site)


def links(text: str) -> dict[str, str]:
    return {one.text_content(): one.get("href") for one in parser.fromstring(text).iter("a")}


def test_numbers_lead_to_sources_and_these_to_where_they_stand() -> None:
    said = turn("Behind it. [1] A cereal. [2] Rice. [3]", OWN, WEB, SHELF)
    text = page(said)
    assert links(text) == {
        **{str(n): f"#source-{said.id}-{n}" for n in (1, 2, 3)},
        "Doors, doors (1).md": f"{SITE}original/0a",
        "Oats, https://example.org/oats.pdf, page 3": "https://example.org/oats.pdf",
    }
    for n, passage in enumerate((OWN, WEB, SHELF), 1):
        assert re.search(rf'<li id="source-{said.id}-{n}" value="{n}"[^$]*?<q dir="auto">{passage.text}</q>', text)
    assert "be logged in there" in text


def test_without_own_documents_nothing_is_said_of_them() -> None:
    assert "be logged in" not in page(turn("Rice. [1]", SHELF))


def test_documents_have_no_address_where_that_of_the_page_is_none() -> None:
    for site in ("", "javascript:alert(1)//", "https://sequitur.example", "file:///"):
        assert list(links(page(turn("Behind it. [1]", OWN), site=site))) == ["1"]


def test_what_is_said_in_part_or_not_at_all_is_told() -> None:
    whole = turn("Behind it. [1] No.", OWN, sentences=(Sentence("No.", state="not"),))
    assert "(No passage says this)" in page(whole)
    part = turn(
        "Behind it. [1]", citations=(Citation(1, OWN.id, 0, 5, "s", "The key", 0.4, partly=True),), passages=(OWN,)
    )
    assert "says a part of the sentence" in page(part)
    assert "says a part" not in page(whole)


def test_two_sentences_of_a_source_stand_beneath_one_number() -> None:
    cited = tuple(Citation(1, OWN.id, 0, 5, "s", quote, 0.9) for quote in ("The key", "hangs", "The key"))
    text = page(turn("A. [1] B. [1] C. [1]", passages=(OWN,), citations=cited))
    assert text.count("<li id=") == 1
    assert re.findall("<q[^>]*>(.*?)</q>", text) == ["The key", "hangs"]


def test_a_reply_that_failed_says_why() -> None:
    failed = Turn("Where?", status="failed", error="The model ran <out> of memory.")
    assert "No reply (The model ran &lt;out&gt; of memory.)" in page(failed)


def test_what_is_missing_of_a_reply_is_told_in_both_forms() -> None:
    half, blank = turn("Half", status="failed", error="Out of memory."), turn("", status="stopped")
    for text in (page(half, blank), document("House", [half, blank])):
        told = text.replace("\\", "")
        assert told.count("This reply is not whole (Out of memory.)") == 1
        assert told.count("No reply (stopped)") == 1
    for text in (page(turn("All.")), document("House", [turn("All.")])):
        assert "whole" not in text


def test_what_the_model_knows_itself_is_said_to_be_that_in_both_forms() -> None:
    poem = turn("Oats, o oats.", intent="writing", answer=Answer("Oats, o oats.", origin="model"))
    for text in (page(poem), document("House", [poem])):
        assert "the model's own knowledge" in text


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-5", "@home", '=HYPERLINK("http://evil.example")'])
def test_what_a_spreadsheet_would_calculate_begins_no_line_of_a_conversation(formula: str) -> None:
    source = Passage("0c-1", formula, formula, source=formula, own=True)
    said = turn(f"{formula}\n{formula} [1]", source, sentences=(Sentence(formula, state="not"),))
    failed = Turn(f"Hello\n{formula}", status="failed", error=formula)
    lines = document(formula, [replace(said, utterance=formula), failed]).splitlines()
    assert sum(formula[-1] in line for line in lines) > 6
    # the hyphen of a list is ours: behind it, what could call a function is escaped
    calculated = re.compile(r"[=+@]|-(?! )|- [^\\].*(?<!\\)[=(]")
    assert [line for line in lines if calculated.match(line)] == []


def test_hostile_text_is_only_text() -> None:
    evil = Passage(HOSTILE, HOSTILE, HOSTILE, source=HOSTILE, own=True)
    text = page(turn(f"{HOSTILE} [1]", evil), Turn(HOSTILE, status="failed", error=HOSTILE), title=HOSTILE)
    tree = parser.fromstring(text)
    assert [one.tag for one in tree.iter("script", "img", "iframe", "b", "object", "form")] == []
    assert all(url.startswith(("#source-", f"{SITE}original/")) for url in links(text).values())
    assert not [key for one in tree.iter() for key in one.attrib if key.startswith("on")]
    assert "default-src 'none'" in text
    assert type(text) is str  # as Markup, it would act within the page that hands it over
