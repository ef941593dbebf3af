"""The labelled sets: their shapes, sizes, splits, and that no example stands twice or is an example of a prompt."""

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from assistant.evaluation.scenarios import read_scenarios
from assistant.evaluation.support import read_pairs
from assistant.library.starter import shelf_entries
from assistant.prompting.render import FOLDER
from assistant.training.support.quoted import read_quoted
from assistant.training.support.written import read_written

DATA = Path(__file__).parent / "data"
SETS = ("support", "intents", "rewrites", "offers")
SUPPORTED = {"verbatim", "paraphrase", "combination", "list_part", "number_form", "pronoun"}
UNSUPPORTED = {
    "changed_number", "changed_name", "negation", "swapped_roles", "wrong_attribute", "stronger_claim",
    "different_time", "cause", "same_topic", "outside_knowledge", "other_country", "half_supported",
}  # fmt: skip
FIELDS = {
    "support": {
        "id": str, "sentence": str, "title": str, "passage": str, "supported": bool, "kind": str, "style": str,
        "split": str,
    },
    "intents": {"text": str, "history": bool, "intent": str, "split": str},
    "rewrites": {"history": list, "utterance": str, "must_contain": list, "must_not": list, "unchanged": bool},
    "offers": {"text": str, "offers": list},
}  # fmt: skip
Row = dict[str, object]


def read(name: str) -> list[Row]:
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def texts(value: object) -> Iterable[str]:
    """Every text within a row, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


def plain(text: object) -> str:
    return str(text).lower().strip(" .!?\"'*")


def dev_shares(rows: list[Row], kind: Callable[[Row], object]) -> dict[object, float]:
    every = Counter(kind(row) for row in rows)
    dev = Counter(kind(row) for row in rows if row["split"] == "dev")
    return {name: dev[name] / count for name, count in every.items()}


@pytest.mark.parametrize("name", SETS)
def test_every_row_has_the_fields_of_its_set(name: str):
    for row in read(name):
        assert {field: type(value) for field, value in row.items()} == FIELDS[name]


@pytest.mark.parametrize("name", SETS)
def test_texts_are_neither_empty_nor_padded(name: str):
    for text in texts(read(name)):
        assert text
        assert text == text.strip()
        assert "\n" not in text


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("support", ("sentence", "passage")), ("support", ("id",)), ("intents", ("text",)),
        ("rewrites", ("utterance", "history")), ("offers", ("text",)),
    ],
)  # fmt: skip
def test_no_example_stands_twice(name: str, key: tuple[str, ...]):
    found = Counter(tuple(plain(row[field]) for field in key) for row in read(name))
    assert [example for example, count in found.items() if count > 1] == []


@pytest.mark.parametrize("name", ["support", "intents"])
def test_three_fifths_are_for_choosing_and_the_rest_for_measuring(name: str):
    rows = read(name)
    assert {row["split"] for row in rows} == {"dev", "test"}
    shares = dev_shares(rows, lambda row: row["kind"] if name == "support" else (row["intent"], row["history"]))
    assert all(0.5 <= share <= 0.72 for share in shares.values()), shares
    assert 0.56 <= sum(row["split"] == "dev" for row in rows) / len(rows) <= 0.64


def test_support_is_balanced_and_holds_every_kind():
    rows = read("support")
    assert len(rows) >= 160
    assert 0.48 <= sum(bool(row["supported"]) for row in rows) / len(rows) <= 0.52
    assert {row["kind"] for row in rows if row["supported"]} == SUPPORTED
    assert {row["kind"] for row in rows if not row["supported"]} == UNSUPPORTED
    assert min(Counter(row["kind"] for row in rows).values()) >= 8
    assert sum(row["style"] == "assistant" for row in rows) >= 24


def test_a_support_passage_is_on_one_side_and_does_not_give_its_label_away():
    rows = read("support")
    sides = Counter(passage for passage, _ in {(row["passage"], row["split"]) for row in rows})
    assert max(sides.values()) == 1
    labels = Counter(passage for passage, _ in {(row["passage"], row["supported"]) for row in rows})
    assert sum(count == 2 for count in labels.values()) / len(labels) >= 0.95


def test_half_of_the_support_passages_are_on_countries():
    passages = {(row["title"], row["passage"]) for row in read("support")}
    countries = sum(" - " in str(title) for title, _ in passages)
    assert 0.4 <= countries / len(passages) <= 0.6
    assert len({title for title, _ in passages}) == len(passages)


def test_verbatim_means_word_for_word():
    for row in read("support"):
        said = plain(row["sentence"]) in plain(row["passage"])
        assert said == (row["kind"] == "verbatim"), row["sentence"]


def test_replies_to_closed_questions_begin_with_a_verdict_on_another_passage_each():
    rows = read("closed")
    for row in rows:
        verdict = row["claim"].partition(",")[0].lower()
        assert (row["label"] == "supported") is (verdict == row["kind"])
    assert len({row["source"] for row in rows}) == len({row["question"] for row in rows}) == len(rows) == 163
    assert Counter(row["split"] for row in rows) == {"test": 105, "dev": 58}


def test_intents_cover_all_and_copy_no_example_of_the_prompt():
    rows = read("intents")
    feelings = read("intents_feelings")
    assert Counter(row["intent"] for row in feelings) == {"small_talk": 24, "question": 12}
    assert len(rows) >= 160
    assert min(Counter(row["intent"] for row in rows).values()) >= 40
    assert {row["intent"] for row in rows} == {"question", "small_talk", "conversation", "writing"}
    examples = tomllib.loads((FOLDER / "intents.toml").read_text(encoding="utf-8"))
    assert {plain(row["text"]) for row in [*rows, *feelings]} & {plain(text) for text in texts(examples)} == set()


def test_rewrites_ask_for_words_that_the_dialogue_holds():
    rows = read("rewrites")
    assert len(rows) >= 40
    assert 8 <= sum(bool(row["unchanged"]) for row in rows) <= 15
    for row in rows:
        dialogue = " ".join(texts([row["history"], row["utterance"]])).lower()
        assert row["history"]
        assert row["must_contain"]
        assert all(word == word.lower() for word in texts([row["must_contain"], row["must_not"]]))
        assert all(word in dialogue for word in texts(row["must_contain"]))
        assert not set(texts(row["must_contain"])) & set(texts(row["must_not"]))


def test_a_rewrite_that_stays_as_it_is_passes_and_one_that_must_change_fails():
    for row in read("rewrites"):
        utterance = str(row["utterance"]).lower()
        holds = all(word in utterance for word in texts(row["must_contain"]))
        avoids = not any(word in utterance for word in texts(row["must_not"]))
        assert (holds and avoids) == row["unchanged"], utterance


def test_offers_speak_of_the_user_and_many_messages_have_none():
    rows = read("offers")
    assert len(rows) >= 80
    assert 0.4 <= sum(not row["offers"] for row in rows) / len(rows) <= 0.7
    for offer in (offer for row in rows for offer in texts(row["offers"])):
        assert offer.split()[0] in {"I", "I'm", "I've", "My", "We"}
        assert offer.endswith(".")


SCENARIOS = (
    "scenarios",
    "scenarios_asked",
    "scenarios_asked_fresh",
    "scenarios_injections_fresh",
    "scenarios_sums",
    "scenarios_sums_fresh",
    "scenarios_talk_fresh",
    "languages",
)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenarios_can_be_played(name: str):
    assert len(read_scenarios(DATA / f"{name}.jsonl")) == len(read(name))


def test_everyday_questions_and_replies_are_about_documents_that_are_there():
    contents = {row["id"]: row["contents"] for row in read("everyday_documents")}
    questions = read("everyday_questions")
    assert all(answer in contents[row["gold"][0]] for row in questions for answer in row["answers"])
    assert all(bool(row["answers"]) != row.get("unanswerable", False) for row in questions)
    assert {pair.evidence for pair in read_pairs(DATA / "support_everyday.jsonl.gz")} == set(contents.values())


def test_questions_on_advice_are_about_passages_that_no_judge_learned_from():
    contents = {row["id"]: row["contents"] for row in read("advice_documents")}
    questions = read("advice_questions")
    assert all(answer in contents[row["gold"][0]] for row in questions for answer in row["answers"])
    assert all(bool(row["answers"]) != row.get("unanswerable", False) for row in questions)
    assert not set(contents.values()) & {" ".join(one.sentences) for one in read_quoted("train") + read_quoted("dev")}


def test_replies_about_notes_are_half_right_and_half_wrong_of_each_piece():
    pairs = read_pairs(DATA / "support_notes_fresh.jsonl")
    by_piece = Counter((pair.evidence, pair.supported) for pair in pairs)
    assert len(by_piece) == 100
    assert set(by_piece.values()) == {3}


def test_replies_that_may_answer_something_else_are_of_all_kinds_for_each_passage():
    pairs = read_pairs(DATA / "support_addressed_fresh.jsonl")
    labels = Counter((pair.evidence, pair.label) for pair in pairs)
    assert len({pair.evidence for pair in pairs}) == 50
    assert Counter(pair.label for pair in pairs).keys() == {"supported", "partially_supported", "not_supported"}
    assert all(count == 2 for (_, label), count in labels.items() if label == "supported")
    assert len(labels) == 150
    assert not {pair.evidence for pair in pairs} & {passage.text for passage in read_written("train")}


def test_read_replies_of_the_default_model_are_on_passages_that_no_judge_learned_from():
    pairs = read_pairs(DATA / "support_default_replies.jsonl")
    learned_titles = {document.title for document in (*read_written("train"), *read_quoted("train"))}
    assert not {pair.title for pair in pairs} & learned_titles
    assert {pair.label for pair in pairs} == {"supported", "partially_supported", "not_supported"}


def test_each_question_in_another_language_stands_beside_its_own_in_english():
    of = {row["id"]: row for row in read("languages")}
    other = [row for id_, row in of.items() if not id_.endswith("-en")]
    assert len(other) == 80
    for row in other:
        english = of[row["id"].rpartition("-")[0] + "-en"]
        assert row["must"] == english["must"]
        assert (row["ask"] == english["ask"]) == bool(row["documents"])


def test_fresh_questions_to_the_library_are_in_pairs_on_passages_of_the_shelf():
    questions = read("library_asked_fresh")
    names = {entry.passage.id for entry in shelf_entries()}
    assert {gold for row in questions for gold in row["gold"]} <= names
    by_passage = Counter((row["gold"][0], row.get("unanswerable", False)) for row in questions)
    assert len(by_passage) == len(questions) == 280
