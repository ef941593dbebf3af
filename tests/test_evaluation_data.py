import gzip
import json
from pathlib import Path

import pytest

from assistant.errors import DataError
from assistant.experiment.datasets import (
    equal_parts,
    place_gold,
    read_corpus,
    read_qrels,
    read_queries,
    read_questions,
    sample,
)
from assistant.experiment.runs import Run
from assistant.types import Passage


def lines(path: Path, *records: object) -> Path:
    texts = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def test_a_corpus_is_checked_whole_and_the_wanted_passages_kept(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write('{"id": "a", "title": "A", "contents": "first"}\n\n{"id": "b", "contents": "second"}\n')
    corpus = read_corpus(path, {"b", "z"})
    assert corpus.size == 2
    assert {one: passage.text for one, passage in corpus.passages.items()} == {"b": "second"}


def test_a_byte_order_mark_and_a_title_of_null_are_nothing(tmp_path: Path) -> None:
    path = lines(tmp_path / "c.jsonl", '\ufeff{"id": "a", "title": null, "contents": "first"}')
    assert read_corpus(path, {"a"}).passages["a"].title == ""


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ('{"id": "b", "contents": ', "line 2, is not valid JSON"),
        ("[1, 2]", "line 2, is not a JSON object"),
        ("[" * 100_000, "line 2, is not valid JSON"),
        ("1" * 5000, "line 2, is not valid JSON"),
        ('{"contents": "x"}', "line 2, has no id"),
        ('{"id": "a", "contents": "x"}', "line 2, repeats the id 'a'"),
        ('{"id": "b", "contents": " "}', "line 2, has no text under 'contents'"),
    ],
)
def test_a_broken_corpus_line_is_named(tmp_path: Path, broken: str, says: str) -> None:
    path = lines(tmp_path / "c.jsonl", {"id": "a", "contents": "first"}, broken)
    with pytest.raises(DataError, match=says):
        read_corpus(path, set())


def test_files_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="can't be read"):
        read_corpus(tmp_path / "none.jsonl", set())
    (tmp_path / "no.jsonl.gz").write_bytes(b"not gzip at all")
    with pytest.raises(DataError, match="can't be read"):
        read_corpus(tmp_path / "no.jsonl.gz", set())
    whole = gzip.compress(b'{"id": "a", "question": "who?", "answers": ["x"]}\n')
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[:-9])
    with pytest.raises(DataError, match="can't be read"):
        list(read_questions(tmp_path / "cut.jsonl.gz"))
    (tmp_path / "latin.jsonl").write_bytes('{"id": "a", "contents": "Zürich"}'.encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        read_corpus(tmp_path / "latin.jsonl", set())
    with pytest.raises(DataError, match="no questions"):
        read_questions(lines(tmp_path / "empty.jsonl"))
    with pytest.raises(DataError, match="no passages"):
        read_corpus(tmp_path / "empty.jsonl", set())


def test_questions_keep_all_their_gold_and_say_when_it_is_weak(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "q.jsonl",
        {"id": 1, "question": "who", "answers": ["x"], "gold": ["a"], "also_contains_answer": ["b"]},
        {"id": 2, "question": "what", "answers": [], "unanswerable": True},
        {"id": 3, "question": "when", "answers": ["y"], "gold_weak": ["c"]},
    )
    who, what, when = read_questions(path)
    assert (who.id, who.gold, who.weak) == ("1", ("a", "b"), False)
    assert what.unanswerable
    assert (when.gold, when.weak) == (("c",), True)


def test_answers_must_be_a_list_of_texts(tmp_path: Path) -> None:
    path = lines(tmp_path / "q.jsonl", {"id": "1", "question": "who", "answers": "x"})
    with pytest.raises(DataError, match="line 1, has something else than a list of texts under 'answers'"):
        read_questions(path)


def test_qrels_come_from_trec_lines_or_from_gold_ids(tmp_path: Path) -> None:
    trec = lines(tmp_path / "q.trec", "1 0 a 1", "1 0 b 0", "2 0 c 2")
    assert read_qrels(trec) == {"1": {"a": 1, "b": 0}, "2": {"c": 2}}
    gold = lines(tmp_path / "q.jsonl", {"id": "1", "question": "w", "gold": ["a"]}, {"id": "2", "question": "v"})
    assert read_qrels(gold) == {"1": {"a": 1}}
    with pytest.raises(DataError, match="line 2, does not read"):
        read_qrels(lines(tmp_path / "bad.trec", "1 0 a 1", "1 0 b"))
    assert read_qrels(lines(tmp_path / "junk.trec", "1 0 a -2")) == {"1": {"a": -2}}


@pytest.mark.parametrize("relevance", ["--1", "-", "²", "1.0", "١"])
def test_a_relevance_that_is_no_number_is_named(tmp_path: Path, relevance: str) -> None:
    with pytest.raises(DataError, match="line 1, does not read 'query 0 passage relevance'"):
        read_qrels(lines(tmp_path / "bad.trec", f"1 0 a {relevance}"))


def test_query_texts_are_found_under_their_usual_names(tmp_path: Path) -> None:
    path = lines(tmp_path / "q.jsonl", {"id": "1", "utterance": "and there?", "resolved": "and in Paris?"})
    assert read_queries(path) == {"1": "and in Paris?"}
    assert read_queries(path, "utterance") == {"1": "and there?"}


def test_a_run_that_a_full_disk_broke_off_as_it_began_can_begin_again(tmp_path: Path, monkeypatch) -> None:
    def full(path: Path, text: str, encoding: str) -> None:
        path.touch()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", full)
        with pytest.raises(DataError, match="No space left"):
            Run(tmp_path, {"seed": 0}, str)
    Run(tmp_path, {"seed": 0}, str)
    assert json.loads((tmp_path / "run.json").read_text()) == {"seed": 0}


@pytest.mark.parametrize("text", [b"", b'{"se', b"\xff"])
def test_a_broken_run_says_what_to_do(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "run.json").write_bytes(text)
    with pytest.raises(DataError, match="remove it to go on"):
        Run(tmp_path, {"seed": 0}, str)


@pytest.mark.parametrize("row", ['{"fact": 1}', "7", '{"id": []}'])
def test_rows_of_something_else_are_named_and_the_folder_is_left_as_it_was(tmp_path: Path, row: str) -> None:
    lines(tmp_path / "rows.jsonl", {"id": "1"}, row)
    with pytest.raises(DataError, match=r"rows\.jsonl, line 2, is no row of such a run; choose another folder"):
        Run(tmp_path, {"seed": 0}, lambda row: {row["id"]} and row["id"])
    assert [one.name for one in tmp_path.iterdir()] == ["rows.jsonl"]


def test_samples_grow_with_the_limit_and_skip_keeps_them_apart() -> None:
    items = list(range(100))
    ten = sample(items, 10, seed=3)
    assert ten == sample(items, 10, seed=3) != sample(items, 10, seed=4)
    assert sample(items, 20, seed=3)[:10] == ten
    assert not set(ten) & set(sample(items, 10, seed=3, skip=10))
    assert sorted(sample(items, None, seed=3)) == items


def test_every_set_gives_an_equal_part_as_far_as_it_goes() -> None:
    sets = ["abcdefghij", "01", "ABCDEFGHIJ"]
    drawn = equal_parts(sets, 10, seed=3)
    assert [len(set(drawn) & set(one)) for one in sets] == [4, 2, 4]
    assert drawn == equal_parts(sets, 10, seed=3) != equal_parts(sets, 10, seed=4)
    assert sorted(equal_parts(sets, 100, seed=3)) == sorted("".join(sets))


TOP = [Passage(f"p{n}", "", "") for n in range(5)]
GOLD = Passage("g", "", "")


def ids(passages) -> list[str]:
    return [passage.id for passage in passages]


def test_a_missing_gold_passage_is_inserted_at_a_seeded_place() -> None:
    places = {ids(place_gold(TOP, [GOLD], "insert", f"0 q{n}")).index("g") for n in range(60)}
    assert places == {0, 1, 2, 3, 4}
    placed = place_gold(TOP, [GOLD], "insert", "0 q")
    assert placed == place_gold(TOP, [GOLD], "insert", "0 q")
    assert [one for one in ids(placed) if one != "g"] == ["p0", "p1", "p2", "p3"]


def test_gold_that_was_retrieved_stays_or_moves() -> None:
    assert ids(place_gold(TOP, [TOP[2], GOLD], "insert", "s")) == ids(TOP)
    assert ids(place_gold(TOP, [GOLD, TOP[2]], "first", "s")) == ["p2", "p0", "p1", "p3", "p4"]
    assert ids(place_gold(TOP, [TOP[2]], "last", "s")) == ["p0", "p1", "p3", "p4", "p2"]
    assert ids(place_gold(TOP, [GOLD], "first", "s")) == ["g", "p0", "p1", "p2", "p3"]
    assert ids(place_gold(TOP, [GOLD], "none", "s")) == ids(TOP)
    assert ids(place_gold([], [GOLD], "insert", "s")) == ["g"]
    assert ids(place_gold(TOP, [], "first", "s")) == ids(TOP)
