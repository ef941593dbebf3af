"""`evaluate lists`: which items of a list count as left, and files that can't be used."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event

import pytest

from assistant.errors import DataError
from assistant.evaluation.lists import measure, read_lists
from assistant.steps.suitability import Sieve
from tests.scripted import ScriptedLLM
from tests.test_suitability_step import ALLERGY, Named

WRITTEN = Path(__file__).parent / "data" / "suitability_lists.jsonl"


def written(folder: Path, *lists: tuple[str, dict[str, int]]) -> Path:
    rows = []
    for text, items in lists:
        rows.append({"fact": ALLERGY, "text": text, "clash": 1, "kind": "list"})
        rows += [{"fact": ALLERGY, "text": item, "clash": clash, "kind": "item"} for item, clash in items.items()]
    path = folder / "lists.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_items_that_suit_and_items_that_clash_are_counted_apart(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        ("Eat peanuts, figs or satay.", {"Eat peanuts": 1, "figs": 0, "satay": 1}),
        ("Buy figs, peanut oil or pears.", {"Buy figs": 0, "peanut oil": 1, "pears": 0}),
        ("Take figs and pears.", {"Take figs": 0, "pears": 0}),
    )
    lists = read_lists(path)
    assert len(lists) == 2
    llm = ScriptedLLM(["peanuts"])
    summary, rows = measure(lists, lambda fact: Sieve(Named(), llm, [fact], "", Event()), 0)
    assert [row["left"] for row in rows] == ["Eat figs, or satay.", "Buy figs, or pears."]
    everything, first = summary["all"], summary["first_clashes"]
    assert (everything["lists"], everything["suiting_left"]["value"]) == (2, 1.0)
    assert everything["clashing_left"]["value"] == pytest.approx(1 / 3)
    assert (first["lists"], first["suiting_left"]["value"], first["clashing_left"]["value"]) == (1, 1.0, 0.5)


def test_of_lists_none_of_which_begins_with_a_clash_nothing_is_told_of_such(tmp_path: Path) -> None:
    lists = read_lists(written(tmp_path, ("Buy figs or peanuts.", {"Buy figs": 0, "peanuts": 1})))
    summary, _ = measure(lists, lambda fact: Sieve(Named(), ScriptedLLM(), [fact], "", Event()), 0)
    assert summary["first_clashes"] == {"lists": 0}


def test_files_that_hold_no_lists_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"No list of .*lists\.jsonl has an item that clashes; give \{fact"):
        read_lists(written(tmp_path, ("Buy figs or pears.", {"Buy figs": 0, "pears": 0})))
    path = tmp_path / "items.jsonl"
    path.write_text(json.dumps({"fact": ALLERGY, "text": "figs", "clash": 0, "kind": "item"}), encoding="utf-8")
    with pytest.raises(DataError, match="begins with an item; put each list before its items"):
        read_lists(path)


def test_the_lists_of_the_repository_are_read() -> None:
    assert len(read_lists(WRITTEN)) == 53
    assert len(read_lists(WRITTEN.with_name("suitability_lists_fresh.jsonl"))) == 61
