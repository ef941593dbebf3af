"""The labelled sets of tests/data: their shape, their balance, and that their labels hold together."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent / "data"
KEYS = {
    "support": {"id", "sentence", "passage", "supported", "kind", "split"},
    "intents": {"text", "history", "intent", "split"},
    "unknown": {"text", "unknown", "split"},
    "rewrites": {"id", "kind", "history", "utterance", "standalone", "must_contain", "must_not", "split"},
    "offers": {"text", "offers", "kind", "split"},
}
LEAST = {"support": 160, "intents": 160, "unknown": 80, "rewrites": 40, "offers": 80}
SUPPORTED_KINDS = {"verbatim", "paraphrase", "combination", "summary", "number_form", "pronoun"}


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def shares(counts: Counter[Any]) -> list[float]:
    return [count / counts.total() for count in counts.values()]


@pytest.mark.parametrize("name", KEYS)
def test_every_row_has_these_keys_and_there_are_enough(name: str):
    found = rows(name)
    assert len(found) >= LEAST[name]
    assert all(set(row) == KEYS[name] for row in found)


@pytest.mark.parametrize("name", KEYS)
def test_nothing_stands_twice(name: str):
    said = [json.dumps({k: v for k, v in row.items() if k not in ("id", "split")}) for row in rows(name)]
    assert len(said) == len(set(said))
    ids = [row["id"] for row in rows(name) if "id" in row]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", KEYS)
def test_about_sixty_percent_are_for_development(name: str):
    split = Counter(row["split"] for row in rows(name))
    assert set(split) == {"dev", "test"}
    assert 0.55 <= split["dev"] / split.total() <= 0.65


@pytest.mark.parametrize("name", KEYS)
def test_texts_are_clean(name: str):
    texts = [str(row.get(key, "")) for row in rows(name) for key in ("text", "sentence", "passage", "utterance")]
    assert all(text == text.strip() and text.isprintable() for text in texts)


def test_half_of_the_pairs_are_supported():
    assert shares(Counter(row["supported"] for row in rows("support"))) == pytest.approx([0.5, 0.5], abs=0.02)


def test_kinds_of_pairs_agree_with_their_labels_and_stand_in_both_splits():
    counts = Counter((row["kind"], row["supported"], row["split"]) for row in rows("support"))
    for kind, supported in {key[:2] for key in counts}:
        assert kind == "llm_style" or supported == (kind in SUPPORTED_KINDS)
        dev, test = counts[kind, supported, "dev"], counts[kind, supported, "test"]
        assert 0.5 <= dev / (dev + test) <= 0.7


def test_a_passage_is_in_one_split_only():
    seen = {(row["passage"], row["split"]) for row in rows("support")}
    assert len(seen) == len({passage for passage, _ in seen})


def test_a_passage_is_a_title_and_one_to_four_sentences():
    for row in rows("support"):
        title, _, text = row["passage"].partition(": ")
        assert 3 <= len(title) < 80
        assert ": " not in text
        assert 1 <= text.count(". ") + 1 <= 4


def test_verbatim_sentences_are_in_their_passage():
    verbatim = [row for row in rows("support") if row["kind"] == "verbatim"]
    assert verbatim
    assert all(row["sentence"] in row["passage"] for row in verbatim)


def test_no_sentence_of_a_passage_is_labelled_unsupported():
    assert not [row for row in rows("support") if not row["supported"] and row["sentence"] in row["passage"]]


def test_intents_are_the_three_and_talk_needs_something_to_talk_about():
    counts = Counter(row["intent"] for row in rows("intents"))
    assert set(counts) == {"question", "small_talk", "conversation"}
    assert min(counts.values()) >= 40
    assert {type(row["history"]) for row in rows("intents")} == {bool}
    for intent in counts:
        assert {row["split"] for row in rows("intents") if row["intent"] == intent} == {"dev", "test"}


def test_unknown_and_known_replies_are_balanced():
    assert min(shares(Counter(row["unknown"] for row in rows("unknown")))) >= 0.4


def test_each_acceptable_rewrite_passes_its_own_check():
    for row in rows("rewrites"):
        assert row["history"]
        assert all(set(exchange) == {"utterance", "reply"} for exchange in row["history"])
        assert row["standalone"]
        assert row["must_contain"]
        for rewrite in row["standalone"]:
            assert all(word.lower() in rewrite.lower() for word in row["must_contain"])
            assert not any(word.lower() in rewrite.lower() for word in row["must_not"])


def test_a_self_contained_utterance_is_its_own_rewrite():
    same = [row for row in rows("rewrites") if row["kind"] in ("topic_switch", "self_contained")]
    assert len(same) >= 5
    assert all(row["utterance"] in row["standalone"] for row in same)


def test_other_utterances_fail_their_own_check():
    for row in rows("rewrites"):
        if row["kind"] not in ("topic_switch", "self_contained"):
            said = row["utterance"].lower()
            lacks = any(word.lower() not in said for word in row["must_contain"])
            assert lacks or any(word.lower() in said for word in row["must_not"])


def test_offers_are_whole_statements_in_the_first_person():
    offers = [offer for row in rows("offers") for offer in row["offers"]]
    assert all(offer.startswith(("I ", "I'", "My ")) and offer.endswith(".") for offer in offers)


def test_many_messages_offer_nothing():
    assert 0.4 <= sum(not row["offers"] for row in rows("offers")) / len(rows("offers")) <= 0.7
    wanted = {"statement", "statement_in_question", "change", "remember"}
    assert all(bool(row["offers"]) == (row["kind"] in wanted) for row in rows("offers"))
