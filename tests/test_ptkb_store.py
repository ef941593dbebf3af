"""The store of facts, on real files of SQLite and a real PostgreSQL."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from assistant.errors import FactError, SettingsError, StoreError
from assistant.store.database import connect
from ptkb.store import MAX_FACT_CHARS, MAX_FACTS, Ptkb, comparison_key, validated

TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=60), max_size=12)


@pytest.fixture
def ptkb(engine: Engine) -> Ptkb:
    return Ptkb(engine)


def texts(ptkb: Ptkb, user: str = "me") -> list[str]:
    return [fact.text for fact in ptkb.facts(user)]


def test_facts_survive_reopening_in_their_order(reopened: Callable[[], Engine]) -> None:
    added = [Ptkb(reopened()).add("me", text) for text in ("I'm vegetarian.", "I'm lactose intolerant.")]
    assert Ptkb(reopened()).facts("me") == added


def test_a_fact_is_edited_switched_and_removed(ptkb: Ptkb) -> None:
    fact = ptkb.add("me", "I live in Oslo.", source="turn-1")
    edited = ptkb.edit("me", fact.id, "I live in  Bergen.")
    assert (edited.id, edited.text, edited.source, edited.created) == (
        fact.id,
        "I live in Bergen.",
        "turn-1",
        fact.created,
    )
    assert edited.changed > fact.changed
    assert not ptkb.switch("me", fact.id, on=False).on
    assert ptkb.switch("me", fact.id, on=True).on
    ptkb.remove("me", fact.id)
    assert ptkb.facts("me") == []


def test_replacing_removes_the_old_fact_and_adds_the_new_one(ptkb: Ptkb) -> None:
    old = ptkb.add("me", "I'm vegetarian.")
    new = ptkb.replace("me", old.id, "I eat meat again.", "turn-9")
    assert ptkb.facts("me") == [new]
    assert new.id != old.id
    assert new.source == "turn-9"


def test_a_refused_replacement_keeps_the_old_fact(ptkb: Ptkb) -> None:
    old, _other = ptkb.add("me", "I'm vegetarian."), ptkb.add("me", "I like tea.")
    with pytest.raises(FactError, match="known already"):
        ptkb.replace("me", old.id, "I like tea!", "turn-9")
    assert texts(ptkb) == ["I'm vegetarian.", "I like tea."]


def test_users_neither_see_nor_touch_each_others_facts(ptkb: Ptkb) -> None:
    mine = ptkb.add("ada", "I'm an engineer.")
    ptkb.add("bob", "I'm an engineer.")
    for attempt in (
        lambda: ptkb.edit("bob", mine.id, "I'm a thief."),
        lambda: ptkb.switch("bob", mine.id, on=False),
        lambda: ptkb.remove("bob", mine.id),
        lambda: ptkb.replace("bob", mine.id, "I'm a thief.", "typed"),
    ):
        with pytest.raises(FactError, match="no such fact"):
            attempt()
    assert ptkb.facts("ada") == [mine]
    assert texts(ptkb, "bob") == ["I'm an engineer."]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        (" \t\n ", "empty"),
        ("\u200b\u200d", "empty"),
        ("x" * (MAX_FACT_CHARS + 1), f"at most {MAX_FACT_CHARS}"),
        ("I like\x00 tea", "control characters"),
        ("I like\u2028tea", "control characters"),
        ("I like \ud83d tea", "broken Unicode"),
    ],
)
def test_what_cant_be_a_fact_is_refused_with_a_reason(ptkb: Ptkb, text: str, says: str) -> None:
    with pytest.raises(FactError, match=says):
        ptkb.add("me", text)
    assert ptkb.facts("me") == []


@pytest.mark.parametrize(
    "text",
    [
        "<b>I'm</b> <script>alert(1)</script>",
        "私は東京に住んでいます。",
        "אני גר בחיפה",
        "I ❤️ 👩‍👩‍👧 trips",
        "'; DROP TABLE facts; --",
        "x" * MAX_FACT_CHARS,
    ],
)
def test_markup_and_every_script_are_kept_as_plain_text(ptkb: Ptkb, text: str) -> None:
    ptkb.add("me", text)
    assert texts(ptkb) == [text]


def test_text_is_composed_and_white_space_made_single() -> None:
    assert validated("  Cafe\u0301s\n\tare   my thing ") == "Cafés are my thing"


@pytest.mark.parametrize("again", ["I'm Vegetarian", "im vegetarian!!", " I\u2019m  vegetarian ."])
def test_duplicates_are_found_whatever_case_spaces_and_punctuation(ptkb: Ptkb, again: str) -> None:
    ptkb.add("me", "I'm vegetarian.")
    with pytest.raises(FactError, match="known already"):
        ptkb.add("me", again)
    assert len(ptkb.facts("me")) == 1


@pytest.mark.parametrize(
    ("one", "other"), [("I walk 1.5 km", "I walk 15 km"), ("I write C", "I write C++"), ("🙂", "🙃")]
)
def test_texts_that_differ_in_meaning_are_no_duplicates(one: str, other: str) -> None:
    assert comparison_key(one) != comparison_key(other)


def test_editing_a_facts_case_is_no_duplicate_of_itself(ptkb: Ptkb) -> None:
    fact = ptkb.add("me", "i like TEA")
    assert ptkb.edit("me", fact.id, "I like tea.").text == "I like tea."


def test_a_thousand_facts_fit_and_one_more_is_refused(ptkb: Ptkb) -> None:
    report = ptkb.import_text("me", "\n".join(f"I own book number {n}." for n in range(MAX_FACTS + 5)))
    assert (len(report.added), len(report.skipped)) == (MAX_FACTS, 5)
    assert f"{MAX_FACTS} facts already" in report.skipped[0].reason
    with pytest.raises(FactError, match=f"{MAX_FACTS} facts already"):
        ptkb.add("me", "One more.")
    ptkb.remove("me", report.added[0].id)
    ptkb.add("me", "One more.")
    assert len(ptkb.facts("me")) == MAX_FACTS


def test_an_import_reports_line_by_line_what_it_skipped(ptkb: Ptkb) -> None:
    ptkb.add("me", "I like tea.")
    report = ptkb.import_text("me", "\ufeffI like TEA\r\n\r\nI like rice.\r\nI like rice\r\n" + "x" * 501)
    assert [fact.text for fact in report.added] == ["I like rice."]
    assert [entry.number for entry in report.skipped] == [1, 4, 5]
    assert "known already" in report.skipped[0].reason
    assert "501 characters" in report.skipped[2].reason


def test_json_keeps_what_lines_lose(ptkb: Ptkb) -> None:
    fact = ptkb.add("ada", "I'm vegan.", source="turn-1")
    ptkb.switch("ada", fact.id, on=False)
    ptkb.import_json("bob", ptkb.export_json("ada"))
    (copy,) = ptkb.facts("bob")
    assert (copy.text, copy.on, copy.source, copy.created) == ("I'm vegan.", False, "turn-1", fact.created)
    assert copy.id != fact.id


def test_moments_of_an_import_are_kept_in_utc(ptkb: Ptkb) -> None:
    moments = {"I run.": "2024-05-01T12:00:00+02:00", "I swim.": "2024-05-01T10:00:00"}
    ptkb.import_json("me", json.dumps([{"text": text, "created": moment} for text, moment in moments.items()]))
    assert [fact.created for fact in ptkb.facts("me")] == [datetime(2024, 5, 1, 10, tzinfo=UTC)] * 2


@pytest.mark.parametrize("text", ["{", '{"text": "x"}', "[" * 100_000, ""])
def test_a_json_import_that_is_no_list_is_refused(ptkb: Ptkb, text: str) -> None:
    with pytest.raises(FactError):
        ptkb.import_json("me", text)


def test_broken_json_entries_are_skipped_one_by_one(ptkb: Ptkb) -> None:
    entries = [
        "I like tea.",
        7,
        None,
        {"on": True},
        {"text": ["x"]},
        {"text": "I run.", "created": "soon", "source": 5},
        "\ud800",
    ]
    report = ptkb.import_json("me", json.dumps(entries))
    assert [fact.text for fact in report.added] == ["I like tea.", "I run."]
    assert [entry.number for entry in report.skipped] == [2, 3, 4, 5, 7]


@settings(max_examples=40)
@given(entries=TEXTS)
def test_every_export_imports_to_the_same_facts(tmp_path_factory: pytest.TempPathFactory, entries: list[str]) -> None:
    ptkb = Ptkb(connect(f"sqlite:///{tmp_path_factory.mktemp('db') / 'facts.sqlite3'}"))
    report = ptkb.import_json("ada", json.dumps(entries))
    assert len(report.added) + len(report.skipped) == len(entries)
    ptkb.import_text("lines", ptkb.export_text("ada"))
    ptkb.import_json("json", ptkb.export_json("ada"))
    assert texts(ptkb, "lines") == texts(ptkb, "json") == texts(ptkb, "ada")


def test_threads_add_all_their_facts_and_a_duplicate_once(ptkb: Ptkb) -> None:
    def add(n: int) -> bool:
        ptkb.add("me", f"I know person {n}.")
        try:
            ptkb.add("me", "I know everyone.")
        except FactError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(add, range(40)))
    assert won.count(True) == 1
    assert len(ptkb.facts("me")) == 41


def test_a_read_only_database_is_read_and_says_so_on_writing(tmp_path: Path) -> None:
    file = tmp_path / "facts.sqlite3"
    Ptkb(connect(f"sqlite:///{file}")).add("me", "I like tea.")
    ptkb = Ptkb(connect(f"sqlite:///file:{file}?mode=ro&uri=true"))
    with pytest.raises(StoreError, match="read-only"):
        ptkb.add("me", "I like rice.")
    assert texts(ptkb) == ["I like tea."]


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    engine = connect(f"sqlite:///{tmp_path / 'facts.sqlite3'}")
    ptkb = Ptkb(engine)
    ptkb.add("me", "I like tea.")

    @event.listens_for(engine, "checkout")
    def _no_room(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute("PRAGMA max_page_count=1")

    with pytest.raises(StoreError, match="full disk"):
        ptkb.import_text("me", "\n".join(f"{n} {'x' * 400}" for n in range(200)))
    assert texts(ptkb) == ["I like tea."]


@pytest.mark.parametrize("content", [b"no database " * 500, b"SQLite format 3\x00" + b"\xff" * 4000])
def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "facts.sqlite3"
    file.write_bytes(content)
    with pytest.raises(StoreError, match=r"facts\.sqlite3 is damaged"):
        connect(f"sqlite:///{file}")
    assert file.read_bytes() == content


def test_a_busy_database_is_waited_for(tmp_path: Path) -> None:
    engine = connect(f"sqlite:///{tmp_path / 'facts.sqlite3'}")
    ptkb = Ptkb(engine)
    with ThreadPoolExecutor(1) as pool:
        with engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO facts VALUES (99, 'i', 'u', 't', 'k', 's', 1, 'c', 'c')")
            waiting = pool.submit(ptkb.add, "me", "I like tea.")
            assert texts(ptkb) == []  # readers don't wait for the writer
            assert not waiting.done()
        assert waiting.result(timeout=9).text == "I like tea."


def test_a_database_in_memory_is_shared_by_threads() -> None:
    ptkb = Ptkb(connect("sqlite://"))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: ptkb.add("me", f"I know {n}."), range(20)))
    assert len(ptkb.facts("me")) == 20


@pytest.mark.parametrize("url", ["no url", "nosuch://host/x", "mssql+pyodbc://host/x"])
def test_a_wrong_url_is_a_settings_error(url: str) -> None:
    with pytest.raises(SettingsError, match="database"):
        connect(url)


@pytest.mark.parametrize(
    "text", ["=1+1", "+1 is my code", "-5 is cold", "@home I cook", "'=quoted", "''-twice", "'plain"]
)
def test_what_a_spreadsheet_would_calculate_is_exported_as_text(text: str) -> None:
    ptkb = Ptkb(connect("sqlite://"))
    ptkb.add("ann", text)
    exported = ptkb.export_text("ann")
    assert not exported.startswith(("=", "+", "-", "@"))
    ptkb.import_text("bob", exported)
    assert [fact.text for fact in ptkb.facts("bob")] == [text]


def test_a_fact_is_refused_by_its_length_before_it_is_composed() -> None:
    began = time.thread_time()
    with pytest.raises(FactError, match="The fact has 160001 characters; at most 500 can be stored"):
        validated("e" + "\u0316\u0301" * 80_000)
    assert time.thread_time() - began < 1
    assert validated("e\u0301" * 500) == "\u00e9" * 500


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("does", ["removes", "notes"])
def test_what_others_do_to_a_fact_while_its_field_is_noted_breaks_nothing(
    engine: Engine, does: str, place: int
) -> None:
    ptkb, statements, others = Ptkb(engine), [0], ThreadPoolExecutor(1)
    added = ptkb.add("me", "I run.")
    acts = {
        "removes": lambda: ptkb.remove("me", added.id),
        "notes": lambda: ptkb.set_fields("me", {added.id: "food"}),
    }
    done = []

    @event.listens_for(engine, "before_cursor_execute")
    def interrupt(*_: object) -> None:
        statements[0] += 1
        if statements[0] == place + 1:
            done.append(others.submit(acts[does]))
            wait(done, 0.3)  # it either comes first or waits for its turn

    ptkb.set_fields("me", {added.id: "health"})
    assert done[0].exception(timeout=20) is None
    assert [fact.field for fact in ptkb.facts("me")] in ([], ["health"], ["food"])
    others.shutdown()
