"""`bench load`: what people meet with is counted right, at a scripted page and at one as people start it."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.errors import ModelError
from benchmarks.clicks import foreign_marks
from benchmarks.load import REAL, SCRIPTED, LoadResults, State, load_of, real, scripted, summary
from tests.fixtures_models import fetched, sharing_libraries, sharing_models


def test_mix_ups_waits_and_memory_are_told() -> None:
    found = LoadResults([3.0, 3.0], [0.1, 0.1], [1.0, 2.0, 6.0], {"p1x": [1.0, 2.0], "p2x": [6.0]}, [], [])
    found.states = [State(0, 5, 9, 0.1), State(3, 9, 12, 0.2), State(60, 7, 9, 0.3)]
    report = summary(found)
    assert (report["longest wait / median"], report["threads most"], report["files last"]) == (3.0, 9, 9)
    assert (report["first source p50 s"], report["first source p95 s, later questions"]) == (1.55, 0.1)
    assert (report["held GB after 50 turns"], report["held GB after 500 turns"]) == (0.3, -1.0)
    assert foreign_marks("as p3x1 asked, and p1x2", "p1x") == ["p3x1"]


def test_a_page_has_answered_where_it_says_so() -> None:
    assert SCRIPTED.question("p1x2", 7) == "How rich in protein are lentils, p1x2?"
    assert SCRIPTED.is_answered("rich in protein, <span>as</span> p1x2 asked.", "p1x2")
    assert not SCRIPTED.is_answered("rich in protein, as p1x3 asked.", "p1x2")
    assert REAL.question("p1x2", 1).endswith("? (p1x2)")
    assert REAL.question("p1x2", 1) != REAL.question("p1x2", 2)
    assert REAL.is_answered('<article class=\\"turn done\\">', "p1x2")
    assert not REAL.is_answered('<article class=\\"turn failed\\">', "p1x2")


def test_two_people_at_a_scripted_page_are_answered() -> None:
    with scripted(2, 0.0, 2) as page:
        found = load_of(2, 4.0, 0.2, page)
    assert (found.errors, found.mix_ups) == ([], [])
    assert len(found.waits) > 2
    assert (len(found.rush), len(found.first_sources)) == (2, len(found.waits))
    assert set(found.waits_by_person) == {"p0x", "p1x"}
    assert found.states[0].held > 0


@pytest.mark.model
@pytest.mark.lucene
def test_two_people_at_the_page_as_it_is_started_are_answered(
    tmp_path: Path, smollm_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched("all-MiniLM-L6-v2")
    monkeypatch.setenv("SEQUITUR_DATA_DIR", str(sharing_libraries(sharing_models(tmp_path))))
    monkeypatch.setenv("SEQUITUR_TURN__ADDRESSES_THRESHOLD", "0")  # so small a model passes no second look
    monkeypatch.setenv("SEQUITUR_TURN__MAX_ANSWER_TOKENS", "16")  # it writes on and on
    with real(2, "smollm2-135m", 2) as page:
        found = load_of(2, 5.0, 0.5, page)
    assert (found.errors, found.mix_ups) == ([], [])
    assert set(found.waits_by_person) == {"p0x", "p1x"}
    assert not list(tmp_path.glob("*.sqlite3"))  # people's own database stays as it is


def test_a_page_that_does_not_get_ready_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file, where the data folder should be")
    monkeypatch.setenv("SEQUITUR_DATA_DIR", str(taken))
    with pytest.raises(ModelError, match=r"did not get ready \(failed\): .*taken"), real(1, "smollm2-135m", 1):
        pass
