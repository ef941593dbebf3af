"""`bench faults` from end to end, a kill or a cut of each kind, on stores that lose one thing: it tells that alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.library.index import Document, list_documents
from assistant.settings import Settings
from assistant.store.database import connect
from benchmarks import interrupted
from benchmarks.cuts import FACTS, LOST, WORKS, cuts
from benchmarks.faults import kills
from benchmarks.interrupted import backups, makings, restores
from benchmarks.light import light_settings
from benchmarks.postgres import read_only_server

pytestmark = pytest.mark.lucene
SEED = 12  # with which the first click adds a fact, and the first kill comes seconds later
FIRST = "I like oats of kind p0x1."  # that fact


def forgetful(folder: Path, fact: str) -> Settings:
    """A page's settings, with a database that drops one fact as soon as it has it."""
    settings = light_settings(folder)
    engine = connect(settings.database_url)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            f"CREATE TRIGGER forget AFTER INSERT ON facts WHEN NEW.text = '{fact}' "
            "BEGIN DELETE FROM facts WHERE id = NEW.id; END"
        )
    engine.dispose()
    return settings


def test_of_acknowledged_clicks_a_kill_costs_none_but_what_the_database_dropped(tmp_path: Path) -> None:
    result = kills(forgetful(tmp_path, FIRST), 2, SEED)
    assert (result.lost, result.not_started, result.refused) == ([f"fact: {FIRST}"], [], [])
    assert result.acknowledged["fact added"] >= 1
    assert (result.kills, result.during.total()) == (2, 2)


def test_a_cut_file_is_told_or_costs_nothing_but_what_the_database_dropped(tmp_path: Path) -> None:
    forgetful(tmp_path / "whole", FACTS[0])
    database, with_log, log, index, copy = cuts(tmp_path, 1, SEED)
    assert (log.passed, log.outcome) == (False, f"1 {LOST} 1 of {len(FACTS) + 1} facts are gone")
    for case in (database, with_log, index, copy):
        assert case.passed
        assert "1 told" in case.outcome or WORKS in case.outcome


def test_of_indexed_documents_a_kill_costs_none_but_one_that_the_list_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = list[int]()

    def list_without_one(name: str, settings: Settings) -> list[Document]:
        looks.append(1)
        return [document for document in list_documents(name, settings) if looks == [1] or document.name != "n0x2.txt"]

    monkeypatch.setattr(interrupted, "list_documents", list_without_one)
    indexing = next(makings(tmp_path, 1, SEED))
    problems = "after a kill n0x2.txt is gone | once it was indexed again n0x2.txt is gone"
    assert indexing.outcome.endswith(f"; 2 times something was wrong afterwards: {problems}")
    assert not indexing.passed


def test_a_backup_beside_use_brings_back_all_but_what_the_database_dropped(tmp_path: Path) -> None:
    forgetful(tmp_path / "data", FIRST)
    case = backups(tmp_path, 1, SEED)
    assert case.outcome.endswith(f"; 1 things missing in what they bring back | backup 1 has no {FIRST}")
    assert not case.passed


def test_after_a_restore_beside_use_all_is_there_or_kept_aside_but_what_the_database_dropped(tmp_path: Path) -> None:
    forgetful(tmp_path / "data", FIRST)
    case = restores(tmp_path, 1, SEED)
    assert "; 2 things neither there nor kept aside" in case.outcome
    assert case.outcome.endswith(f" | restore 1 has no {FIRST} | {FIRST} is nowhere")
    assert not case.passed


def test_a_server_set_read_only_refuses_with_a_sentence_and_loses_nothing(tmp_path: Path, postgres_url: str) -> None:
    case = read_only_server(tmp_path, postgres_url)
    assert case.passed, case.outcome
    assert case.outcome.count("can only be read; name the server that is written to") == 3
