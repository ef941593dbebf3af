"""The recipe of the suitability judge's data: its split doesn't leak, its labels follow the tables; what is learned."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.judges.suitability.knowledge import Knowledge
from assistant.training.suitability import tables
from assistant.training.suitability.pairs import make_pairs
from assistant.training.suitability.tables import Group, Tags, load_tables, part_of
from assistant.training.suitability.train import MAX_FALSE_ALARMS, MAX_IDLE_ALARMS, threshold_of
from tests.scripted import WordEmbedder

DATA = Path(__file__).parent / "data"
SEED = 0


def plain(text: str) -> str:
    return text.lower().strip(" .")


# --- the split ---------------------------------------------------------------------------------------------------


def test_no_entry_is_in_two_parts():
    seen: set[str] = set()
    for part in ("train", "dev", "test"):
        found = load_tables(part, SEED)
        entries = {item.name for item in (*found.items, *found.free, *found.offers)} | {*found.idle, *found.harmless}
        entries |= {wording for group in found.groups for wording in group.wordings} | {*found.ingredients.names}
        assert not entries & seen
        seen |= entries
    assert len(seen) > 2000


def test_held_out_wordings_of_known_groups_are_not_learned():
    learned = {wording for group in load_tables("train", SEED).groups for wording in group.wordings}
    names = {group.name for group in load_tables("train", SEED).groups}
    for part in ("dev", "test"):
        known = load_tables(part, SEED, known=True).groups
        assert len(known) > 30
        assert {group.name for group in known} <= names
        assert not {wording for group in known for wording in group.wordings} & learned
        assert not {group.name for group in load_tables(part, SEED).groups} & names


def test_no_learned_pair_holds_a_held_out_item_sentence_or_fact():
    pairs = make_pairs(load_tables("train", SEED), 3000, SEED)
    whole = " \n ".join(f"{pair.fact} \n {pair.text}" for pair in pairs).lower()
    trained = " \n ".join(item.name.lower() for item in load_tables("train", SEED).items)
    for part in ("dev", "test"):
        found = load_tables(part, SEED)
        names = [item.name for item in (*found.items, *found.offers)] + [w for g in found.groups for w in g.wordings]
        # "apple slices" may be within another's name, and a few names stand in sentences on something else
        apart = [
            name for name in (*names, *found.idle, *found.harmless) if len(name) > 12 and plain(name) not in trained
        ]
        assert sum(plain(name) in whole for name in apart) <= 0.02 * len(apart)


def test_another_seed_is_another_split_and_the_same_seed_the_same():
    entries = [f"entry {n}" for n in range(1000)]
    assert [part_of(one, 0) for one in entries] == [part_of(one, 0) for one in entries]
    assert [part_of(one, 0) for one in entries] != [part_of(one, 1) for one in entries]
    share = sum(part_of(one, 0) == "train" for one in entries) / 1000
    assert 0.75 < share < 0.85


def taught() -> tuple[set[str], set[str]]:
    """The facts and the texts of the tables."""
    rows = tables.read_table("facts")["groups"].values()
    told = {plain(text) for row in rows for key in ("wordings", "opposite") for text in row.get(key, ())}
    told |= {plain(text) for text in tables.read_table("harmless")["facts"]}
    named = {
        plain(name) for file in ("foods", "things") for table in tables.read_table(file).values() for name in table
    }
    named |= {
        plain(name)
        for name in (*tables.read_table("sentences")["offers"], *tables.read_table("sentences")["idle"]["texts"])
    }
    return told, named


@pytest.mark.parametrize(
    "name", ["suitability", *(f"suitability_{one}fresh" for one in ("", "second_", "sentences_", "asked_", "found_"))]
)
def test_no_fact_and_no_text_of_the_labelled_pairs_is_in_a_table(name: str):
    told, named = taught()
    rows = [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows if plain(row["fact"]) in told or plain(row.get("text", "")) in named] == []


@pytest.mark.parametrize("name", ["suitability", "suitability_fresh", "suitability_second_fresh"])
def test_the_labelled_pairs_are_many_and_different_and_not_only_of_things(name: str):
    rows = [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) >= 250
    assert len({(row["fact"], row["text"]) for row in rows}) == len(rows)
    assert sum(row["kind"] != "item" for row in rows) / len(rows) > 0.4


def test_items_stand_in_their_sentences_and_a_sentence_without_items_that_clash_has_none():
    halves = {}
    for name in ("suitability_lists", "suitability_lists_fresh", "lists_fresh"):
        rows = [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        lists = {row["id"]: row for row in rows if row["kind"] == "list"}
        clashing = dict.fromkeys(lists, 0)
        for item in (row for row in rows if row["kind"] == "item"):
            whole = lists[item["id"].partition("-")[0]]
            assert item["text"] in whole["text"]
            assert item["fact"] == whole["fact"]
            clashing[whole["id"]] |= item["clash"]
        assert clashing == {key: row["clash"] for key, row in lists.items()}
        halves[name] = {row["text"] for row in lists.values()}
    assert len(halves["suitability_lists"] & halves["suitability_lists_fresh"]) <= 1
    assert not halves["lists_fresh"] & (halves["suitability_lists"] | halves["suitability_lists_fresh"])


# --- the labels --------------------------------------------------------------------------------------------------


def test_every_tag_that_clashes_has_an_item_and_every_group_wordings():
    table = tables.read_table("facts")
    tags = {
        word.rstrip("?")
        for file in ("foods", "things")
        for items in tables.read_table(file).values()
        for row in items.values()
        for word in row.split()
    } | {word.rstrip("?") for row in table["implies"].values() for word in row.split()}
    for name, row in table["groups"].items():
        assert len(row["wordings"]) >= 2, name
        assert {word.rstrip("?") for word in row["clash"].split()} <= tags, name
    assert set(table["core"]) <= set(table["groups"])


def test_what_is_unsure_is_not_labelled():
    group = Group("vegan", Tags.parse("meat egg") | Tags.parse("wool?"), ("I'm vegan.",), ())
    assert group.clashes(Tags.parse("pork", {"pork": "meat"})) is True
    assert group.clashes(Tags.parse("egg? gluten")) is None
    assert group.clashes(Tags.parse("wool")) is None
    assert group.clashes(Tags.parse("gluten")) is False


def test_the_same_seed_makes_the_same_pairs():
    found = load_tables("dev", SEED, known=True)
    assert make_pairs(found, 200, 1) == make_pairs(found, 200, 1)
    assert make_pairs(found, 200, 1) != make_pairs(found, 200, 2)


def test_pairs_are_different_of_both_labels_and_whole():
    pairs = make_pairs(load_tables("train", SEED), 3000, SEED)
    assert len({(pair.fact, pair.text) for pair in pairs}) == 3000
    assert 0.3 < sum(pair.clash for pair in pairs) / 3000 < 0.5
    assert not [pair for pair in pairs if re.search(r"[{}]", pair.fact + pair.text)]
    labels = {(pair.recipe, pair.clash) for pair in pairs}
    assert {("offered", True), ("turned", True), ("refused", False), ("idle", False), ("opposite", False)} <= labels
    assert ("refused", True) not in labels


def test_tables_that_are_too_small_say_so():
    small = load_tables("dev", SEED)
    bare = replace(small, groups=(), harmless=(), items=(), free=(), offers=(), idle=())
    bare = replace(bare, ingredients=replace(small.ingredients, names=()))
    with pytest.raises(ValueError, match="no more than"):
        make_pairs(bare, 10, 0)


# --- what is learned ---------------------------------------------------------------------------------------------


def test_the_threshold_lets_few_false_alarms_through():
    dev = make_pairs(load_tables("dev", SEED, known=True), 400, SEED)
    scores = [(n % 100) / 100 + n / 1e5 for n in range(400)]
    threshold = threshold_of(dev, scores)
    calm = [score for pair, score in zip(dev, scores, strict=True) if not pair.clash]
    idle = [score for pair, score in zip(dev, scores, strict=True) if pair.recipe in ("harmless", "opposite")]
    assert sum(score > threshold for score in calm) / len(calm) < MAX_FALSE_ALARMS + 0.01
    assert sum(score > threshold for score in idle) / len(idle) < MAX_IDLE_ALARMS + 1 / len(idle)


class Few(WordEmbedder):
    """Bags of words in few dimensions, which are learned from in a moment."""

    name = "few"
    fewer = np.random.default_rng(0).normal(size=(2048, 24)).astype(np.float32)

    def encode(self, texts):
        return super().encode(texts) @ self.fewer


def test_the_command_teaches_and_measures(tmp_path, monkeypatch):
    for pairs in ("FAMILIAR_PAIRS", "KNOWN_PAIRS", "NEW_PAIRS"):
        monkeypatch.setattr(f"assistant.training.suitability.train.{pairs}", 60)
    for epochs in ("FACT_EPOCHS", "THING_EPOCHS"):
        monkeypatch.setattr(f"assistant.training.suitability.train.{epochs}", 1)
    monkeypatch.setattr("assistant.commands.experiment.load_embedder", lambda *_: Few())
    done = CliRunner().invoke(app, ["train", "suitability", "--out", str(tmp_path / "t"), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert set(told["test"]) == {"familiar", "known", "new"}
    knowledge = Knowledge.load(tmp_path / "t")
    assert knowledge.embedder == "few"
    assert knowledge.threshold == told["threshold"]
    assert knowledge.rules.shape[1] == knowledge.has.shape[1] == len(knowledge.tags)
