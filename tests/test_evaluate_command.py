"""The `evaluate` commands as they are typed: a real index, a real (small) model, real files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.commands.evaluate import app
from assistant.errors import DataError, SettingsError
from assistant.protocols import Parts, Retriever
from tests.fixtures_models import sharing_models
from tests.scripted import WORDS, ScriptedLLM
from tests.test_evaluate_answers import Reader, files  # noqa: F401 - a fixture
from tests.test_evaluation_data import lines

pytest_plugins = ["tests.fixtures_models"]


@pytest.fixture(autouse=True)
def _indexes_apart(tmp_path_factory, monkeypatch) -> None:
    """What the commands index goes where it is in nobody's way."""
    monkeypatch.setenv("SEQUITUR_DATA_DIR", str(sharing_models(tmp_path_factory.mktemp("data"))))


def evaluate(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def on(files: tuple[Path, Path]) -> list[object]:  # noqa: F811
    return ["--corpus", files[0], "--questions", files[1]]


@pytest.mark.model
@pytest.mark.lucene
def test_answers_and_uncertainty_end_to_end(files, smollm_path, embedder, tmp_path) -> None:  # noqa: F811
    model = ["--model", "smollm2-135m", "--limit", "1", "--k", "2"]
    asked = [
        "answers",
        *on(files),
        *model,
        "--strategy",
        "concat",
        "concat_pf",
        "--gold",
        "insert",
        "--out",
        tmp_path / "a",
    ]
    result = evaluate(*asked, "--json")
    assert result.exit_code == 0
    summary = json.loads(result.stdout)
    assert set(summary["strategies"]) == {"concat", "concat_pf"}
    assert summary["strategies"]["concat"]["prompt_tokens"]["value"] > 40
    assert summary["settings"][0]["gold_found"]["value"] == 1
    rows = (tmp_path / "a" / "rows.jsonl").read_text()
    assert len(rows.splitlines()) == 2
    assert "| concat |" in evaluate(*asked).stdout
    assert (tmp_path / "a" / "rows.jsonl").read_text() == rows

    # one answer is right or wrong, which tells nothing apart
    with pytest.raises(DataError, match="All 1 answers"):
        evaluate("uncertainty", *on(files), *model, "--out", tmp_path / "u")
    [row] = (tmp_path / "u" / "rows.jsonl").read_text().splitlines()
    assert all(0 <= value <= 1 for value in json.loads(row)["confidence"].values())


@pytest.mark.lucene
def test_ways_to_tell_what_is_unknown_are_summed_up(files, parts, tmp_path, monkeypatch) -> None:  # noqa: F811
    def reading(_settings: object, retriever: Retriever) -> Parts:
        return replace(parts, llm=Reader(), retriever=retriever)

    monkeypatch.setattr("assistant.commands.evaluate.load_turn_parts", reading)
    corpus, questions = files
    mars = {"id": "qMars", "question": "capital of Mars?", "answers": ["none"], "gold": []}
    asked = lines(tmp_path / "more.jsonl", *map(json.loads, questions.read_text().splitlines()), mars)
    words = ["--corpus", corpus, "--questions", asked, "--out", tmp_path / "u", "--data-dir", tmp_path / "data"]
    result = evaluate("uncertainty", *words, "--k", "4", "--json")
    summary = json.loads(result.stdout)
    # it reads all capitals right, and of Mars says that it doesn't know
    assert (summary["questions"], summary["right"]) == (5, 0.8)
    assert summary["ways"]["word"]["auc"]["value"] == 1
    assert "| word |" in (tmp_path / "u" / "report.md").read_text()


@pytest.mark.lucene
def test_rewrites_are_compared_and_searched_for(parts, tmp_path, monkeypatch) -> None:
    llm = ScriptedLLM(["What is the capital of France?"])
    monkeypatch.setattr(
        "assistant.commands.evaluate.load_turn_parts", lambda _, retriever: replace(parts, llm=llm, retriever=retriever)
    )
    first = {"n": 1, "question": "Where is France?", "rewrite": "Where is France?", "history_answer": "In Europe."}
    second = {"n": 2, "question": "And its capital?", "rewrite": "What is the capital of France?", "history_answer": ""}
    dialogues = lines(tmp_path / "d.jsonl", {"dialog_id": "d", "turns": [first, second]})
    found = [
        {"id": "p1", "contents": "Paris is the capital of France."},
        {"id": "p2", "contents": "Lima lies in Peru."},
    ]
    corpus = lines(tmp_path / "corpus.jsonl", *found)
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("d/2 0 p1 1\n")
    words = ["--dialogues", dialogues, "--corpus", corpus, "--qrels", qrels, "--out", tmp_path / "w", "--json"]
    summary = json.loads(evaluate("rewriting", *words).stdout)
    assert (summary["follow_ups"], summary["rewritten"]) == (1, 1)
    assert summary["against_human"]["ours"]["EM"]["value"] == 1
    assert summary["retrieval"]["variants"]["ours"]["Success@1"]["value"] == 1
    assert "gain" in summary["retrieval"]
    assert "| ours |" in (tmp_path / "w" / "report.md").read_text()


@pytest.mark.lucene
def test_ranking_by_the_question_loads_no_model(files, tmp_path) -> None:  # noqa: F811
    corpus, questions = files
    on_them = ["--corpus", corpus, "--queries", questions, "--qrels", questions, "--out", tmp_path / "r"]
    result = evaluate("ranking", *on_them, "--model", "there-is-no-such-model", "--json")
    assert json.loads(result.stdout)["loops"]["question"]["Success@1"]["value"] == 1


@pytest.mark.lucene
def test_other_weights_and_words_make_another_run(files, tmp_path, monkeypatch) -> None:  # noqa: F811
    corpus, questions = files
    on_them = ["--corpus", corpus, "--queries", questions, "--qrels", questions, "--out", tmp_path / "r"]
    evaluate("ranking", *on_them, "--without-stop-words")
    assert '"retriever": "bm25, without stop words"' in (tmp_path / "r" / "run.json").read_text()
    with pytest.raises(DataError, match="another retriever"):
        evaluate("ranking", *on_them)
    monkeypatch.setenv("SEQUITUR_RETRIEVE__K1", "1.2")
    evaluate("ranking", *on_them[:-1], tmp_path / "other")
    assert '"retriever": "bm25 (k1 1.2, b 0.4)"' in (tmp_path / "other" / "run.json").read_text()


@pytest.mark.lucene
@pytest.mark.parametrize("retriever", ["dense", "hybrid"])
def test_ranking_by_other_retrievers(files, tmp_path, monkeypatch, retriever) -> None:  # noqa: F811
    monkeypatch.setattr("assistant.commands.evaluate.load_encoder", lambda *_: WORDS)
    corpus, questions = files
    on_them = ["--corpus", corpus, "--queries", questions, "--qrels", questions, "--data-dir", tmp_path]
    into = ["--out", tmp_path / "r", "--json"]
    result = evaluate("ranking", *on_them, *into, "--retriever", retriever)
    assert json.loads(result.stdout)["loops"]["question"]["Success@1"]["value"] == 1
    assert f'"retriever": "{retriever} (all-MiniLM-L6-v2)"' in (tmp_path / "r" / "run.json").read_text()
    assert len(list((tmp_path / "dense" / "words").glob("corpus-*/*.faiss"))) == 1
    with pytest.raises(DataError, match="another retriever"):
        evaluate("ranking", *on_them, *into)


@pytest.mark.lucene
def test_passages_longer_than_the_encoder_reads_are_told(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("assistant.commands.evaluate.load_encoder", lambda *_: WORDS)
    texts = ("Cats sleep. " * 300, "Dogs bark.")
    records = [json.dumps({"id": f"p{n}", "contents": text}) for n, text in enumerate(texts)]
    corpus = lines(tmp_path / "corpus.jsonl", *records)
    questions = lines(tmp_path / "q.jsonl", json.dumps({"id": "q", "question": "cats", "answers": [], "gold": ["p0"]}))
    on_them = ["--corpus", corpus, "--queries", questions, "--qrels", questions, "--data-dir", tmp_path]
    result = evaluate("ranking", *on_them, "--out", tmp_path / "r", "--retriever", "dense")
    assert "so searched by their pieces: 1 of 2 passages" in " ".join(result.output.split())


def test_bad_input_is_told_before_anything_is_loaded(files, tmp_path) -> None:  # noqa: F811
    with pytest.raises(SettingsError, match="'best' is not one of the strategies; there are: "):
        evaluate("answers", *on(files), "--strategy", "best", "--out", tmp_path / "a", "--k", 2)
    with pytest.raises(DataError, match="k is 9"):
        evaluate("answers", *on(files), "--strategy", "concat", "--out", tmp_path / "a", "--k", 9)
    with pytest.raises(DataError, match="both --corpus and --qrels"):
        evaluate("rewriting", "--dialogues", files[1], "--corpus", files[0], "--out", tmp_path / "w")
    broken = lines(tmp_path / "broken.jsonl", "{")
    ranking = ["ranking", "--queries", files[1], "--qrels", files[1], "--out", tmp_path / "r"]
    with pytest.raises(DataError, match=r"broken.jsonl, line 1, is not valid JSON"):
        evaluate(*ranking, "--corpus", broken)
    assert not (tmp_path / "a").exists()
