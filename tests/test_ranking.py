from dataclasses import replace
from pathlib import Path

import pytest

from assistant.errors import DataError, SettingsError
from assistant.evaluation.ranking import Experiment, Ranking, WithoutStopWords, prepare, scores
from assistant.evaluation.searching import Finder
from assistant.protocols import Parts, silent
from assistant.types import Passage, Relevance
from tests.scripted import FixedRetriever, ScriptedLLM
from tests.test_evaluation_data import lines


class ByWord:
    """Finds the passages that share a word with the query, in their own order."""

    def __init__(self, **texts: str) -> None:
        self._texts = texts

    def search(self, query: str, k: int) -> list[Passage]:
        words = set(query.lower().split())
        return [Passage(one, "", text) for one, text in self._texts.items() if words & set(text.split())][:k]


RETRIEVER = ByWord(a="red apple", b="green pear", c="yellow fruit")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    corpus = lines(tmp_path / "c.jsonl", *({"id": one, "contents": one} for one in "abc"))
    queries = lines(tmp_path / "q.jsonl", {"id": "1", "text": "red"}, {"id": "2", "text": "fruit green"})
    return corpus, queries, lines(tmp_path / "q.trec", "1 0 a 1", "2 0 c 1")


def finder(parts: Parts, *replies: str) -> tuple[Finder, ScriptedLLM]:
    llm = ScriptedLLM(list(replies))
    parts = replace(parts, llm=llm, retriever=RETRIEVER)
    return Finder(parts.settings, RETRIEVER, lambda: parts), llm


def test_what_is_fused_does_not_depend_on_how_much_of_it_is_wanted(parts) -> None:
    # "d" is second for both queries, and so best of all; of each query alone another is
    class Lists:
        def search(self, query: str, k: int) -> list[Passage]:
            return [Passage(one, "", "") for one in ("ad" if query == "red" else "bd")][:k]

    parts = replace(parts, llm=ScriptedLLM(["fruit"]), retriever=Lists())
    found = Finder(parts.settings, Lists(), lambda: parts)
    assert [one.id for one in found.find("grg", "red", 1)] == ["d"]
    assert found.find("grg", "red", 3)[0].id == "d"


def test_no_passage_is_left_out_as_a_chat_reply_does(parts) -> None:
    class Sure:
        name, calibration = "sure", ""

        def estimate(self, question, passages, stop) -> list[Relevance]:
            return [Relevance.of_confidence(0.9 if one.id == "b" else 0.001) for one in passages]

    settings = parts.settings.changed(relevance={"rerank": True, "min_relative_confidence": 0.1})
    parts = replace(parts, settings=settings, retriever=RETRIEVER, estimator=lambda _: Sure())
    ranked = Finder(settings, RETRIEVER, lambda: parts).find("ranked", "red green yellow", 3)
    assert [one.id for one in ranked] == ["b", "a", "c"]


def test_measures_are_those_of_ir_measures() -> None:
    found = scores({"1": ["x", "a"], "2": []}, {"1": {"a": 1}, "2": {"b": 1}})
    assert list(found["nDCG@10"]) == [pytest.approx(1 / 1.58496, abs=1e-4), 0]
    assert list(found["RR"]) == [0.5, 0]
    assert list(found["Success@1"]) == [0, 0]
    assert list(found["R@100"]) == [1, 0]


def test_more_than_a_hundred_passages_keep_their_order() -> None:
    ranking = [f"p{n:03}" for n in range(1000)]
    assert list(scores({"1": ranking}, {"1": {"p999": 1}})["RR"]) == [pytest.approx(1 / 1000)]


@pytest.mark.parametrize("jobs", [1, 4])
def test_loops_are_compared_with_the_first(files, parts, tmp_path, jobs) -> None:
    experiment = Experiment(*files, loops=("question", "draft", "grg"))
    task = Ranking(experiment, prepare(experiment), "m")
    run = task.open(tmp_path / "out")
    found, llm = finder(parts, *["fruit"] * 2)
    task.fill(run, found, silent, jobs)
    # draft and grg share their drafts
    assert llm.replies == []
    assert run.rows["draft", "2"]["ranking"] == ["c"]
    assert run.rows["question", "2"]["ranking"] == ["b", "c"]
    assert run.rows["grg", "2"]["ranking"] == ["c", "b"]
    assert [query["name"] for query in run.rows["grg", "2"]["queries"]] == ["question", "draft"]
    summary = task.summarise(run.rows)
    assert summary["loops"]["question"]["RR"]["value"] == 0.75
    assert summary["loops"]["draft"]["RR"]["value"] == 0.5
    assert summary["differences"]["grg"]["RR"]["value"] == pytest.approx(0.25)
    assert summary["base"] == "question"


def test_the_question_alone_needs_no_model(files, tmp_path) -> None:
    from assistant.settings import Settings

    def no_parts() -> Parts:
        raise AssertionError("no model is needed")

    experiment = Experiment(*files)
    task = Ranking(experiment, prepare(experiment), "m")
    run = task.open(tmp_path / "out")
    task.fill(run, Finder(Settings(data_dir=tmp_path), RETRIEVER, no_parts), silent)
    assert run.rows["question", "1"]["ranking"] == ["a"]


def test_judgements_that_fit_nothing_are_counted_or_refused(files, tmp_path) -> None:
    corpus, queries, _ = files
    partly = lines(tmp_path / "partly.trec", "1 0 a 1", "1 0 lost 1", "9 0 a 1")
    topics = prepare(Experiment(corpus, queries, partly))
    assert topics.remarks == {
        "queries without judgements, left out": 1,
        "judged queries that the query file lacks": 1,
        "judged passages that the corpus lacks": 1,
    }
    with pytest.raises(DataError, match="judges no query of the file"):
        prepare(Experiment(corpus, queries, lines(tmp_path / "none.trec", "9 0 a 1")))
    with pytest.raises(DataError, match="judges no passage of the corpus"):
        prepare(Experiment(corpus, queries, lines(tmp_path / "lost.trec", "1 0 z 1")))
    with pytest.raises(SettingsError, match="not one of the loops"):
        prepare(Experiment(*files, loops=("question", "nope")))


def test_a_query_without_a_text_finds_nothing_and_is_counted(files, tmp_path) -> None:
    from assistant.settings import Settings

    corpus, _, qrels = files
    queries = lines(tmp_path / "gaps.jsonl", {"id": "1", "resolved": ""}, {"id": "2", "resolved": "fruit"})
    experiment = Experiment(corpus, queries, qrels)
    topics = prepare(experiment)
    task = Ranking(experiment, topics, "m")
    run = task.open(tmp_path / "out")
    task.fill(run, Finder(Settings(data_dir=tmp_path), RETRIEVER, lambda: None), silent)
    assert run.rows["question", "1"]["ranking"] == []
    assert topics.remarks == {"queries without a text, which find nothing": 1}


def test_common_words_are_left_out_where_others_are_there() -> None:
    retriever = FixedRetriever([])
    without = WithoutStopWords(retriever)
    without.search("MEASUREMENT of liquids by the use of microwave techniques", 3)
    without.search("What about that one?", 3)
    assert retriever.queries == ["MEASUREMENT liquids use microwave techniques", "What about that one?"]
