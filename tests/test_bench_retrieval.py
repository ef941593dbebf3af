"""The bench of retrieval, whole, on a small corpus with a tiny encoder; and the parts that can be told by hand."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.errors import DataError
from assistant.llm.catalogue import Catalogue
from assistant.llm.model_folders import NOTE, name_of
from assistant.settings import RetrieveSettings, Settings
from benchmarks import retrieval as bench
from benchmarks import retrieval_report as report
from benchmarks.vectors import WORD_PIECES, CachedEncoder, cache_name, query_encoder
from tests.test_encoders import tiny

ANIMALS = "cat dog fish bird horse mouse lion bear wolf goat".split()


def lines(path: Path, records: list[dict]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def data(tmp_path) -> dict[str, Path]:
    pool = [{"id": f"p{n}", "title": f"T{n}", "contents": f"Number {n} is a {ANIMALS[n % 10]}."} for n in range(110)]
    asked = [{"id": f"q{n}", "question": f"What is number {n}?", "answers": ["x"], "gold": [f"p{n}"]} for n in (7, 99)]
    lost = {"id": "q", "question": "What is number 5?", "answers": ["x"], "gold": ["elsewhere"]}
    more = [{"id": "p1", "title": "", "contents": f"A {one} runs far away. A {one} sleeps."} for one in ANIMALS]
    for n, record in enumerate(more):
        record["id"] = f"m{n}"
    return {
        "corpus": lines(tmp_path / "corpus.jsonl", pool),
        "questions": lines(tmp_path / "questions.jsonl", [*asked, lost]),
        "more": lines(tmp_path / "more.jsonl", more),
    }


def test_gold_passages_come_first_and_more_is_cut(data):
    material = bench.prepare(data["corpus"], data["questions"], [data["more"]], 5, 10, 0)
    assert {one.id for one in material.passages[:2]} == {"p7", "p99"}
    assert {one.id for one in material.questions} == {"q7", "q99"}
    assert len(material.passages) == 110 + 20
    assert {one.text for one in material.passages[110:]} >= {"A cat runs far away.", "A dog sleeps."}
    assert material.passages == bench.prepare(data["corpus"], data["questions"], [data["more"]], 5, 10, 0).passages


def test_questions_of_another_corpus_are_refused(data):
    with pytest.raises(DataError, match="give those that belong together"):
        bench.prepare(data["more"], data["questions"], [], 5, 10, 0)


def test_a_text_that_comes_twice_counts_once(data):
    material = bench.prepare(data["corpus"], data["questions"], [data["more"], data["more"]], 5, 10, 0)
    assert len(material.passages) == 130


def test_runs_on_other_passages_share_vectors_and_no_index(data, tmp_path):
    one, again, other = (
        bench.Plan.of(
            bench.prepare(data["corpus"], data["questions"], [], 5, 10, seed), [100], 0, 1, Settings(data_dir=tmp_path)
        )
        for seed in (0, 0, 1)
    )
    assert one.words(100) == again.words(100) != other.words(100)
    assert one.vectors("e", 100, exact=True) == again.vectors("e", 100, exact=True)
    assert len({plan.vectors("e", 100, exact) for plan in (one, other) for exact in (True, False)}) == 4
    assert one.store("e") == other.store("e")


def test_work_is_done_in_another_process():
    assert bench.run_in_process(os.getpid) != os.getpid()


def test_growth_is_a_line_that_neither_falls_nor_starts_below_nothing():
    assert report.growth([10, 100, 1000], [3, 21, 201]) == pytest.approx((1, 0.2))
    assert report.growth([10, 100, 1000], [6, 5, 4]) == pytest.approx((5, 0))
    start, slope = report.growth([10, 100, 1000], [0, 10, 200])
    assert (start, slope) == (0, pytest.approx(0.199, abs=0.001))


def run(data: dict[str, Path], folder: Path, encoder: Path, *options: str):
    settings = folder / "settings.toml"
    settings.write_text(f'hub = false\n[retrieve]\nencoder = "{encoder}"\n')
    named = [word for name, path in data.items() for word in (f"--{name}", str(path))]
    return CliRunner().invoke(
        app, ["bench", "retrieval", *named, "--settings", str(settings), "--data-dir", str(folder / "data"),
              "--out", str(folder / "out"), "--words", "5", "--runs", "1", *options],
    )  # fmt: skip


@pytest.mark.lucene
def test_everything_is_measured_and_a_broken_off_run_goes_on(data, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "run_in_process", lambda work, *args: work(*args))
    encoder = tiny(tmp_path / "encoder", "BertModel")
    sizes = ["--size", "100", "--size", "120", "--size", "130", "--encoded", "100"]
    done = run(data, tmp_path, encoder, *sizes)
    assert done.exit_code == 0, done.output + repr(done.exception)
    rows = {row["key"]: row for row in json.loads((tmp_path / "out" / "results.json").read_text())}
    assert {row["retriever"] for row in rows.values() if "retriever" in row} == {
        "bm25", "dense, exact", "dense, approximate", "hybrid",
    }  # fmt: skip
    assert "dense, exact encoder 100" in rows
    assert "dense, exact encoder 120" not in rows
    assert rows["bm25 130"]["found"] == 1.0
    assert rows["bm25 130"]["p95"] >= rows["bm25 130"]["p50"] > 0
    assert rows["bm25 130"]["disk_mib"] > 0
    both, exact = rows[f"hybrid {WORD_PIECES} 130"], rows[f"dense, exact {WORD_PIECES} 130"]
    assert both["index_seconds"] is None
    assert both["disk_mib"] == rows["bm25 130"]["disk_mib"] + exact["disk_mib"]
    assert f"| hybrid {WORD_PIECES} 130 | hybrid | {WORD_PIECES} | 130 |  |" in done.output
    assert rows["beside 130 10"]["ratio"] > 0
    exact, *others = rows[f"approximations {WORD_PIECES} 130"]["indexes"]
    assert (exact["index"], exact["recall_10"], exact["vectors"]) == ("exact", 1.0, 130)
    assert {one["index"].split(",")[0] for one in others} == {"HNSW", "IVF"}
    assert max(one["recall_100"] for one in others) > 0.95
    assert "21,015,324 passages" in done.output
    assert (tmp_path / "out" / "growth.png").stat().st_size > 10_000

    kept = tmp_path / "out" / "rows.jsonl"
    kept.write_text("".join(kept.read_text().splitlines(keepends=True)[:-1]))
    monkeypatch.setattr(bench, "index_words", lambda *_: pytest.fail("indexed again"))
    assert run(data, tmp_path, encoder, *sizes, "--json").exit_code == 0
    assert len(kept.read_text().splitlines()) == len(rows)
    monkeypatch.setenv("SEQUITUR_RETRIEVE__K1", "1.2")
    assert "a run with another k1" in str(run(data, tmp_path, encoder, *sizes).exception)


@pytest.mark.lucene
def test_too_few_passages_and_another_runs_folder_are_refused(data, tmp_path):
    too_many = run(data, tmp_path, tmp_path, "--size", "131")
    assert isinstance(too_many.exception, DataError)
    assert "There are 130 passages, too few" in str(too_many.exception)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.json").write_text("{}")
    assert isinstance(run(data, tmp_path, tmp_path, "--size", "100").exception, DataError)


def test_word_pieces_are_cheap_vectors_of_length_1_that_are_kept(tmp_path):
    encoder = tiny(tmp_path / "encoder", "BertModel")
    settings = Settings(data_dir=tmp_path, hub=False, retrieve=RetrieveSettings(encoder=str(encoder)))
    pieces = query_encoder(WORD_PIECES, settings)
    vectors = pieces.encode(["the cat", "cat the", "the river"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-5)
    assert not np.allclose(vectors[0], vectors[2], atol=0.1)
    # of another encoder whose folder is called the same they are others, and kept elsewhere
    (tmp_path / "more").mkdir()
    other = tiny(tmp_path / "more" / "encoder", "BertModel", seed=1)
    others = settings.model_copy(update={"retrieve": RetrieveSettings(encoder=str(other))})
    assert not np.allclose(query_encoder(WORD_PIECES, others).encode(["the cat"]), vectors[:1], atol=0.1)
    places = {
        place
        for knobs in (settings, others)
        for plan in [bench.Plan(bench.Material([], []), "data", [100], 0, 1, tmp_path, knobs)]
        for place in (plan.store(WORD_PIECES), plan.vectors(WORD_PIECES, 100, exact=True))
    }
    assert len(places) == 4
    kept = CachedEncoder(tmp_path / "kept", pieces)
    np.testing.assert_array_equal(kept.encode(["the cat"]), vectors[:1])
    again = CachedEncoder(tmp_path / "kept", pieces)
    assert again.holds("the cat")
    assert not again.holds("the dog")


def test_word_pieces_of_the_usual_encoder_stay_where_they_were(tmp_path, monkeypatch):
    fetched = tmp_path / "all-MiniLM-L6-v2"
    fetched.mkdir()
    monkeypatch.setattr(Catalogue, "resolve", lambda *_: fetched)
    settings = Settings(data_dir=tmp_path)
    assert cache_name(WORD_PIECES, settings) == f"{WORD_PIECES} of {name_of(fetched)}"
    fetched.with_name(fetched.name + NOTE).touch()
    assert cache_name(WORD_PIECES, settings) == WORD_PIECES
    assert cache_name("mine", settings) == "mine"
