"""The support judge's recipe: statements, changes that make them false, splits that don't leak, and the training."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Event

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.errors import DataError
from assistant.experiment.datasets import read_models
from assistant.judges.adapted import BASE, CONFIG, WEIGHTS
from assistant.judges.pair_model import CURVE, Curve
from assistant.judges.relevance.estimators.cross_encoder import CrossEncoderEstimator
from assistant.judges.support.trained import Support, claimed
from assistant.protocols import silent
from assistant.training.relevance.pairs import make_pairs as question_pairs
from assistant.training.relevance.pairs import quoted_pairs as relevance_pairs
from assistant.training.relevance.pairs import written_pairs as relevance_written_pairs
from assistant.training.support import edits
from assistant.training.support.edits import FALSIFYING_EDITS, falsified, names, rephrased
from assistant.training.support.entailment import read_entailment
from assistant.training.support.pairs import (
    FALSE,
    PARTLY,
    TRUE,
    Material,
    MultiHopQuestion,
    fingerprints,
    fold,
    is_relevance_test_item,
    make_pairs,
    near_misses,
    read_material,
)
from assistant.training.support.quoted import QuotedDocument, read_quoted
from assistant.training.support.quoted import pairs as quoted_pairs
from assistant.training.support.spans import read_spans
from assistant.training.support.statements import statement
from assistant.training.support.train import Lesson, claim_only_auc, fit_curve, train
from assistant.training.support.written import WrittenPassage, pairs, read_written
from assistant.training.trainer import LabelledPair, Plan
from assistant.types import Claim, Passage
from tests.scripted import FixedRetriever

pytest_plugins = ["tests.fixtures_relevance"]
PASSAGE = (
    "Kepler was born in Weil in 1571. He discovered three laws of the planets in Prague. Brahe hired Kepler in 1600. "
    "The university (founded in 1348) lies in Prague, which is older than Vienna."
)
FERRY = QuotedDocument(
    "Ferry",
    ("Bicycles travel free.", "Dogs pay 3 euros.", "The bar is shut in winter.", "Children pay half."),
    (("What do dogs pay?", (1,), ()), ("What do cats pay?", (), ()), ("Who pays half or less?", (), (0, 3))),
)
COAST = "Coast: It is 300 km long."


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def few_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twentieth of what was written for the recipe: what a training does with it takes no more."""
    for name in ("written", "quoted"):
        monkeypatch.setattr(f"assistant.training.support.{name}.read_models", lambda *given: read_models(*given)[::20])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Question sets of the four shapes, with articles enough for every split."""
    folder = tmp_path_factory.mktemp("sets")
    titles = [f"Article {n}" for n in range(12)]
    corpus = [
        {"id": f"{title}/{part}", "title": title, "contents": f"{title} has {part + 3} gates of iron. {PASSAGE}"}
        for title in titles
        for part in range(2)
    ]
    asked = [
        {"id": f"{one['id']} q", "question": f"How many gates does {one['title']} have?", "gold": [one["id"]],
         "answers": [one["contents"].split()[3]]}
        for one in corpus
    ]  # fmt: skip
    asked += [{**one, "id": f"{one['id']}2", "question": "Who hired Kepler?", "answers": ["Brahe"]} for one in asked]
    impossible = [
        {**one, "id": f"{one['id']} u", "question": "How many doors does it have?", "answers": []} for one in asked
    ]
    _write(folder / "squad", corpus, questions_v1_1=asked, questions_v2_0=[*asked, *impossible])
    plain = [{"id": f"n{n}", "title": f"Town {n}", "contents": f"Town {n} lies in Peru. {PASSAGE}"} for n in range(80)]
    nq = [{"id": f"q{n}", "question": f"where is town {n}", "answers": ["Peru"], "gold": [f"n{n}"]} for n in range(80)]
    _write(folder / "nq", plain, questions=nq)
    hops = [
        {"id": f"h{n}", "question": f"Who hired the man born in Town {n}?", "answers": ["Brahe"],
         "gold": [f"n{n}", f"n{n + 1}"], "candidates": [f"n{n}", f"n{n + 1}", f"n{n + 2}"]}
        for n in range(60)
    ]  # fmt: skip
    for name in ("hotpotqa", "2wikimultihopqa"):
        _write(folder / name, plain, questions=[{**one, "id": f"{name} {one['id']}"} for one in hops])
    health = [
        {"id": f"m{n} {kind}", "title": f"Illness {n}", "question": f"What are the {kind} of illness {n}?",
         "contents": f"The {kind} of illness {n} differ from person to person."}
        for n in range(30) for kind in ("causes", "treatments")
    ]  # fmt: skip
    (folder / "library").mkdir()
    with gzip.open(folder / "library" / "medquad.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in health)
    return folder


def _write(folder: Path, corpus: list[dict[str, object]], **files: list[dict[str, object]]) -> None:
    folder.mkdir()
    for name, rows in {"corpus": corpus, **files}.items():
        with gzip.open(folder / f"{name.replace('_1', '.1').replace('_0', '.0')}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


# --- statements --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "answer", "told"),
    [
        ("Who won the war?", "France", "France won the war."),
        ("When did the war end?", "1945", "The war ended in 1945."),
        ("When did the war end?", "in May 1945", "The war ended in May 1945."),
        ("What did Kepler discover in 1609?", "two laws", "Kepler discovered two laws in 1609."),
        ("Where was Kepler born?", "Weil", "Kepler was born in Weil."),
        ("What is the capital of Peru?", "Lima", "The capital of Peru is Lima."),
        ("Which city is the capital of Peru?", "Lima", "Lima is the capital of Peru."),
        ("How many people died in 1471?", "70", "70 people died in 1471."),
        ("How many gates are there in Rome?", "18", "There are 18 gates in Rome."),
        ("Why did the war end?", "money", None),
        ("What was he a part of?", "Rome", None),
        ("Who?", "Rome", None),
        ("", "Rome", None),
        ("Who won the war?", " ", None),
        ("¿Quién ganó la guerra?", "Roma", None),
    ],
)
def test_questions_become_statements_where_grammar_allows(question: str, answer: str, told: str | None) -> None:
    assert statement(question, answer, "The war ended. He discovered it.") == told


# --- changes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "sentence", "among"),
    [
        (edits.another_name, "It is from Kepler Street.", {"It is from Weil.", "It is from Prague.",
         "It is from Brahe.", "It is from Vienna."}),
        (edits.names_exchanged, "In 1600 Brahe hired Kepler.", {"In 1600 Kepler hired Brahe."}),
        (edits.negated, "It is old.", {"It is not old."}),
        (edits.negated, "It is not old.", {"It is old."}),
        (edits.opposite, "It came before the war.", {"It came after the war."}),
    ],
)  # fmt: skip
def test_one_change_makes_a_sentence_false(edit: edits.Edit, sentence: str, among: set[str]) -> None:
    assert {edit(sentence, PASSAGE, Random(n)) for n in range(40)} <= among


def test_another_number_is_another_and_of_the_same_form() -> None:
    for n in range(50):
        found = edits.another_number("It cost 1,240 euros.", PASSAGE, Random(n))
        assert found is not None
        number = found.removeprefix("It cost ").removesuffix(" euros.")
        assert number != "1,240"
        assert (len(number), number[1]) == (5, ",")


def test_where_nothing_can_be_changed_nothing_is() -> None:
    for edit in FALSIFYING_EDITS:
        assert edit("so it goes", "", Random(0)) is None
    assert falsified("so it goes", "", Random(0)) is None


def test_lists_are_not_exchanged() -> None:
    assert edits.names_exchanged("We saw Rome, Paris and Lima.", "They saw Rome.", Random(0)) is None


def test_a_lightened_sentence_says_less_and_names_what_it_is_about() -> None:
    found = {
        rephrased("It was founded (in 1348) by a king, which surprised all.", "Prague", Random(n)) for n in range(30)
    }
    assert {"Prague was founded by a king.", "Prague was founded (in 1348) by a king."} <= found
    assert all(one is None or one.startswith(("Prague was founded", "It was founded")) for one in found)
    assert rephrased("So it goes.", "Prague", Random(0)) is None


def test_names_are_told_by_their_capitals_and_not_the_first_word() -> None:
    assert names("There is Kepler. He met Tycho Brahe of Prague.") == ["Kepler", "Tycho Brahe of Prague"]


# --- the recipe --------------------------------------------------------------------------------------------------


def test_no_article_is_in_two_splits(data: Path) -> None:
    titles = {
        split: {
            one.passage.title for one in read_material(data, split).questions if one.passage.title.startswith("Article")
        }
        for split in ("train", "dev", "test")
    }
    assert all(titles.values())
    assert not titles["train"] & titles["dev"] | titles["train"] & titles["test"] | titles["dev"] & titles["test"]
    shown = " ".join(pair.second for pair in make_pairs(read_material(data, "train"), 0))
    assert not any(f"{title}:" in shown for title in titles["dev"] | titles["test"])


def test_the_same_seed_makes_the_same_pairs_of_all_labels(data: Path) -> None:
    material = read_material(data, "train")
    found = make_pairs(material, 0)
    assert found == make_pairs(material, 0)
    assert found != make_pairs(material, 1)
    assert {one.label for one in found} == {TRUE, PARTLY, FALSE}
    assert len(found) == len(set(found))
    assert all(one.first.strip() and one.second.strip() for one in found)
    assert {one.label for one in make_pairs(material, 0, frozenset(["answers"]))} == {TRUE, FALSE}


def test_true_pairs_show_what_they_claim_and_twins_lack_it(data: Path) -> None:
    for pair in make_pairs(read_material(data, "train"), 0, frozenset(["answers"])):
        if pair.first == claimed("Brahe", "Who hired Kepler?"):
            assert ("Brahe" in pair.second) is (pair.label == TRUE)


def test_hops_that_lack_one_are_partly_so_or_not_at_all() -> None:
    question = "Who hired the man born in Weil?"
    hops = Passage("1", "Kepler", "Kepler was born in Weil."), Passage("2", "Prague", "Brahe hired Kepler.")
    material = Material((), (MultiHopQuestion(question, "Brahe", hops, ()),), hops)
    found = {pair for seed in range(20) for pair in make_pairs(material, seed, frozenset(["hops"]))}
    labels = {pair.second: pair.label for pair in found if pair.first == claimed("Brahe", question)}
    first, second = (hop.titled for hop in hops)
    assert labels == {f"{first} {second}": TRUE, f"{second} {first}": TRUE, first: FALSE, second: PARTLY}


def test_a_question_alone_is_true_beside_what_answers_it(data: Path) -> None:
    found = make_pairs(read_material(data, "train"), 0, frozenset(["questions"]))
    asked = [pair for pair in found if pair.first == "Who hired Kepler?"]
    assert {pair.label for pair in asked} == {TRUE, FALSE}
    assert all(("Brahe" in pair.second) is (pair.label == TRUE) for pair in asked)
    assert all(pair.label == FALSE for pair in found if pair.first == "How many doors does it have?")
    causes = [pair for pair in found if pair.first.startswith("What are the causes")]
    assert causes
    assert all(("The causes" in pair.second) is (pair.label == TRUE) for pair in causes)


def test_what_the_estimator_is_measured_on_is_not_learned(data: Path) -> None:
    for split in ("train", "dev"):
        asked = read_material(data, split).questions
        assert not any(
            is_relevance_test_item(one.passage.title) for one in asked if one.passage.title.startswith("Article")
        )
        assert not any(
            is_relevance_test_item(one.question) for one in asked if one.question.startswith("where is town")
        )


def test_marked_words_make_a_claim_that_is_not_supported_and_one_that_is(tmp_path: Path) -> None:
    row = {
        "claim_tokens": ["The", "hall", "opened", "in", "May", ",", "as", "a", "self", "-", "service", "shop", "."],
        "non_supported_spans": [False] * 3 + [True] * 2 + [False] * 8,
        "evidence": [*(f"Line {n} of many." for n in range(200)), "The hall opened as a self-service shop."],
        "supporting_sentences": [[200]],
    }
    (tmp_path / "spans.jsonl").write_text(json.dumps(row) + "\n")
    whole, left = read_spans(tmp_path / "spans.jsonl")
    assert (whole.claim, whole.label) == ("The hall opened in May, as a self-service shop.", "partially_supported")
    assert (left.claim, left.label) == ("The hall opened, as a self-service shop.", "supported")
    assert left.evidence.endswith("Line 199 of many. The hall opened as a self-service shop.")
    assert len(left.evidence.split()) <= 250
    (tmp_path / "spans.jsonl").write_text('{"claim_tokens": ["A"]}\n')
    with pytest.raises(DataError, match="line 1, is no claim with marked words"):
        read_spans(tmp_path / "spans.jsonl")


def test_written_claims_are_there_in_all_labels_and_in_one_split_each() -> None:
    train, dev = read_written("train"), read_written("dev")
    assert len(train) > len(dev) > 10
    assert not {one.text for one in train} & {one.text for one in dev}
    assert read_written("test") == []
    found = pairs(train, 0)
    assert {pair.label for pair in found} == {TRUE, PARTLY, FALSE}
    assert found == pairs(train, 0)


def test_how_a_written_claim_says_it_tells_nothing() -> None:
    # what says the question again is as often right as wrong, and so is what begins with a yes or a no
    claims = [claim for passage in read_written("train") for claim in passage.claims]
    restated = [label for label, _, _, kind in claims if kind == "restated"]
    assert restated.count("supported") == pytest.approx(len(restated) / 2, rel=0.02)
    for verdict in ("Yes", "No"):
        labels = [label for label, _, claim, kind in claims if claim.startswith(f"{verdict},") and kind == "restated"]
        assert labels.count("supported") == pytest.approx(len(labels) / 2, rel=0.05)


def test_quoted_documents_are_there_in_all_labels_and_in_one_split_each() -> None:
    train, dev = read_quoted("train"), read_quoted("dev")
    assert len(train) > len(dev) > 10
    assert not {one.titled for one in train} & {one.titled for one in dev}
    assert read_quoted("test") == []
    for one in (*train, *dev):
        named = {n for _, right, partly in one.questions for n in (*right, *partly)}
        assert named <= set(range(len(one.sentences))), one.title
    found = quoted_pairs(train, 0)
    assert {pair.label for pair in found} == {TRUE, PARTLY, FALSE}
    assert found == quoted_pairs(train, 0)


def test_no_form_of_a_document_that_is_kept_apart_is_learned_from() -> None:
    # notes lie as passages with claims in one file, and their sentences with questions in another
    train, dev = ({one.title for one in (*read_written(split), *read_quoted(split))} for split in ("train", "dev"))
    assert len(train) > len(dev) > 10
    assert not train & dev


def test_a_sentence_that_does_not_answer_stands_beside_one_that_does() -> None:
    found = quoted_pairs([FERRY], 0)
    alone = {one.first: one.label for one in found if one.second != FERRY.titled}
    dogs, cats, fewer = ([one for one in alone if one.startswith(asked)] for asked, *_ in FERRY.questions)
    assert alone["What do dogs pay? Dogs pay 3 euros."] == TRUE
    assert [alone[one] for one in dogs if "Dogs pay 3" not in one] == [FALSE]
    assert [alone[one] for one in cats] == [FALSE, FALSE]
    assert sorted(alone[one] for one in fewer) == [FALSE, PARTLY, PARTLY]
    open_ones = {one.first: one.label for one in found if one.first in {asked for asked, *_ in FERRY.questions}}
    assert open_ones == {"What do dogs pay?": TRUE, "What do cats pay?": FALSE}
    assert {one.second for one in found if one.first in open_ones} == {FERRY.titled}
    assert {one.second for one in found if one.first not in open_ones} <= {
        FERRY.titled, *(f"Ferry: {sentence}" for sentence in FERRY.sentences)
    }  # fmt: skip


def test_relevance_learns_which_sentences_of_a_short_document_answer() -> None:
    bus = QuotedDocument("Bus", ("Seats cost a euro.", "It goes hourly."), ())
    found = [
        replace(one, first=claimed("", one.first))
        for seed in range(40)
        for one in relevance_pairs([FERRY, bus], ["Thanks, that helps!"], [COAST], seed)
    ]
    dogs, cats, fewer = (asked for asked, *_ in FERRY.questions)
    answering = f"Ferry: {FERRY.sentences[1]}"
    assert {(one.first, one.second) for one in found if one.label == TRUE} == {(dogs, answering), (dogs, FERRY.titled)}
    assert {(dogs, answering), (cats, answering), (cats, FERRY.titled), (cats, bus.titled), (cats, COAST)} <= {
        (one.first, one.second) for one in found
    }
    assert {one.second for one in found if one.first.startswith("Thanks")} >= {COAST, FERRY.titled, bus.titled}
    # what answers a part tells neither, alone or in its document
    parts = {FERRY.titled, *(f"Ferry: {FERRY.sentences[n]}" for n in (0, 3))}
    assert not {one.second for one in found if one.first == fewer} & parts
    assert {one.label for one in found if one.first.startswith("Thanks")} == {FALSE}


def test_a_question_mark_tells_relevance_nothing() -> None:
    firsts = [one.first for one in relevance_pairs([FERRY], ["Thanks!"] * 50, [COAST], 0)]
    assert {"What do dogs pay?", "Thanks!", "Thanks!?"} <= set(firsts)


def test_what_a_passage_supports_a_reply_to_is_answered_there_and_not_in_the_passage_most_like_it() -> None:
    claims = (
        ("supported", "what do dogs pay", "Two euros.", "short"),
        ("supported", "what do dogs pay", "Dogs pay two euros.", "restated"),
        ("not", "may cats come along", "Cats may come along.", "invented"),
        ("supported", "", "Bicycles travel free.", "paraphrase"),
    )
    ferry = WrittenPassage("Ferry", "Bicycles travel free. Dogs pay two euros.", claims)
    others = [
        WrittenPassage("Ferries", "Dogs travel on all ferries.", ()),
        WrittenPassage("Oats", "Oats are cheap.", ()),
    ]
    found = relevance_written_pairs([ferry, *others], 0)
    assert [(one.first.rstrip("?"), one.second, one.label) for one in found] == [
        ("what do dogs pay", ferry.titled, TRUE),
        ("what do dogs pay", others[0].titled, FALSE),
    ]


def test_a_written_reply_that_tells_something_else_does_not_answer_even_beside_itself() -> None:
    ferry = WrittenPassage(
        "Ferry",
        "Bicycles travel free from nine. Dogs pay two euros.",
        (
            ("not", "What do dogs pay?", "Bicycles travel free from nine.", "beside"),
            ("not", "What do dogs pay?", "Dogs pay nine euros a trip.", "swapped"),
            ("supported", "What do dogs pay?", "Two euros.", "short"),
            ("not", "When are bicycles paid for?", "They are never free from nine.", "echo"),
        ),
    )
    beside = {one.first: one.label for one in pairs([ferry, ferry], 0) if one.second != ferry.titled}
    assert beside == {
        "What do dogs pay? Bicycles travel free from nine.": FALSE,
        "What do dogs pay? Dogs pay nine euros a trip.": TRUE,
    }


def test_two_halves_of_an_answer_make_a_whole_one_and_each_alone_is_none() -> None:
    asked = "What do dogs pay, and when do bicycles travel free?"
    ferry = WrittenPassage(
        "Ferry",
        "Bicycles travel free from nine. Dogs pay two euros.",
        (
            ("partly", asked, "Dogs pay two euros a trip.", "one_part"),
            ("partly", asked, "Bicycles travel free from nine.", "one_part"),
            ("not", "Do bicycles pay at eight?", "Bicycles travel free from nine.", "other_question"),
            ("supported", "Do bicycles pay at ten?", "Bicycles travel free from nine.", "other_question"),
        ),
    )
    labels = {(one.first, one.second == ferry.titled): one.label for one in pairs([ferry, ferry], 0)}
    free, dogs = "Bicycles travel free from nine.", "Dogs pay two euros a trip."
    for reply, label in {
        f"{asked} {dogs} {free}": TRUE,
        f"{asked} {dogs}": PARTLY,
        f"{asked} {free}": PARTLY,
        f"Do bicycles pay at eight? {free}": FALSE,
        f"Do bicycles pay at ten? {free}": TRUE,
    }.items():
        assert labels[reply, True] == labels[reply, False] == label, reply


def test_the_same_true_sentence_is_written_under_a_question_that_it_answers_and_under_one_that_it_does_not() -> None:
    labels = defaultdict[tuple[str, str], list[str]](list)
    for passage in read_written("train"):
        for label, _, claim, kind in passage.claims:
            if kind == "other_question":
                labels[passage.text, claim].append(label)
    assert len(labels) > 1000
    assert all(sorted(both) == ["not", "supported"] for both in labels.values())


def test_what_a_model_replied_is_not_said_by_the_passage_most_like_its_own() -> None:
    ferry = WrittenPassage(
        "Ferry",
        "Bicycles travel free from nine.",
        (
            ("supported", "And my bicycle?", "It travels free from nine o'clock.", "reply"),
            ("not", "What do dogs pay?", "Bicycles travel free from nine.", "reply"),
            ("supported", "From when?", "From nine.", "reply"),
        ),
    )
    bus = WrittenPassage("Bus", "Bicycles pay three euros on the bus.", ())
    bread = WrittenPassage("Bread", "Let the dough rest for an hour.", ())
    found = {(one.first, one.second): one.label for one in pairs([ferry, bread, bus], 0)}
    beside = {first: label for (first, second), label in found.items() if second == bus.titled and "bicycle" in first}
    assert beside["And my bicycle? It travels free from nine o'clock."] == FALSE
    assert not any(second == bread.titled and "nine" in first for first, second in found)
    assert not any("From nine." in first for first, second in found if second == bus.titled)


def test_near_misses_take_the_answer_of_the_most_alike_question(data: Path) -> None:
    rows = near_misses(read_material(data, "test"), 0)
    wrong = [row for row in rows if row["label"] == "not_supported"]
    assert wrong
    for row in wrong:
        said = row["claim"].rstrip(".").lower()
        assert any(word in said for word in ("3", "4", "brahe"))
        assert row["title"].startswith("Article")


def test_empty_material_makes_nothing() -> None:
    lonely = Passage("p", "One", "One sentence alone is not enough for two claims.")
    assert make_pairs(Material((), (), (lonely,)), 0) == []


def test_folds_stay_the_same_everywhere() -> None:
    assert [fold(title, 5) for title in ("Oxygen", "Kenya", "Huguenot")] == [4, 1, 0]


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("squad/corpus.jsonl.gz", None, "can't be read"),
        ("nq/questions.jsonl.gz", '{"id": "x", "question": "?"}\n', "lacks 'gold'"),
        ("squad/questions_v2.0.jsonl.gz", "{nonsense\n", "is not valid JSON"),
    ],
)
def test_sets_that_cannot_be_used_are_told(data: Path, tmp_path: Path, file: str, text: str | None, told: str) -> None:
    for one in data.rglob("*.gz"):
        copy = tmp_path / one.relative_to(data)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(one.read_bytes())
    (tmp_path / file).unlink()
    if text is not None:
        (tmp_path / file).write_bytes(gzip.compress(text.encode()))
    with pytest.raises(DataError, match=told):
        read_material(tmp_path, "train")


def test_a_sentence_is_a_reply_beside_itself(data: Path) -> None:
    found = {pair.first: pair for pair in make_pairs(read_material(data, "train"), 0, frozenset(["quotes"]))}
    right = found["Who hired Kepler? Brahe hired Kepler in 1600."]
    assert right.label == TRUE
    assert right.second.endswith(": Brahe hired Kepler in 1600.")
    wrong = [pair for first, pair in found.items() if first.startswith("Who hired Kepler?") and pair != right]
    assert wrong
    assert all(pair.label == FALSE and "Brahe" not in pair.second for pair in wrong)


# --- entailment sets ---------------------------------------------------------------------------------------------


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    folder = tmp_path / "entailment"
    folder.mkdir()
    (folder / "a.csv").write_text('premise,hypothesis,label\n"A man, tall, runs.",A man runs.,entailment\nx,y,-\n')
    (folder / "b.tsv").write_text("\ufeffPremise\tHypothesis\tLabel\nHe ran.\tHe swam.\tneutral\n", encoding="utf-8")
    fact = {"claim": "It is old.", "evidence": "It is new.", "label": "REFUTES"}
    (folder / "c.jsonl").write_text(json.dumps(fact) + "\n")
    played = {
        "text": "Filming was late.", "wikipedia_page": "Gandhi", "label": "SUPPORTS",
        "gold_evidence": [{"text": "It began late."}],
        "retrieved_evidence": [{"text": "It won."}, {"text": "It began late."}],
    }  # fmt: skip
    (folder / "d.jsonl").write_text(json.dumps(played) + "\n")
    return folder


def test_entailment_sets_are_read_as_published(sets: Path) -> None:
    first, *others, last = read_entailment(sets, 0)
    assert first == LabelledPair("A man runs.", "A man, tall, runs.", TRUE)
    assert others == [LabelledPair("He swam.", "He ran.", FALSE), LabelledPair("It is old.", "It is new.", FALSE)]
    shown = {read_entailment(sets, seed)[-1].second for seed in range(20)}
    assert shown == {"Gandhi: It began late.", "Gandhi: It began late. It won.", "Gandhi: It won. It began late."}
    assert (last.first, last.label) == ("Filming was late.", TRUE)


def test_a_folder_without_entailment_sets_adds_nothing(tmp_path: Path) -> None:
    assert read_entailment(tmp_path / "nowhere", 0) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [("e.csv", "premise,label\nx,entailment\n"), ("e.jsonl", '{"claim": "x", "label": "SUPPORTS"}\n')],
)
def test_a_set_that_lacks_a_column_is_told_with_its_line(sets: Path, name: str, text: str) -> None:
    (sets / name).write_text(text)
    with pytest.raises(DataError, match=rf"{name}.*is no entailment pair"):
        read_entailment(sets, 0)


# --- the training ------------------------------------------------------------------------------------------------


def test_the_curve_and_both_thresholds_are_fitted() -> None:
    chance = Random(0)
    labels = [label for label in (TRUE, PARTLY, FALSE) for _ in range(300)]
    logits = [{TRUE: 3.0, PARTLY: 0.0, FALSE: -3.0}[label] + chance.gauss(0, 1) for label in labels]
    curve = fit_curve(labels, logits, 0)
    assert curve.probability(3) > curve.threshold > curve.probability(0) > curve.partly > curve.probability(-3)
    near = [n for n, logit in enumerate(logits) if abs(curve.probability(logit) - 0.5) < 0.2]
    assert sum(labels[n] == TRUE for n in near) / len(near) == pytest.approx(0.5, abs=0.2)


def test_a_label_that_claims_give_away_is_found_out() -> None:
    told = [LabelledPair(f"{'yes' if n % 2 else 'no'} thing {n}", "x", float(n % 2)) for n in range(100)]
    hidden = [LabelledPair(f"thing {n // 2}", "x", float(n % 2)) for n in range(100)]
    assert claim_only_auc(told, told) == 1
    assert claim_only_auc(hidden, hidden) < 0.6


@pytest.mark.usefixtures("few_written")
def test_a_judge_is_trained_and_a_training_goes_on(data: Path, tiny_cross_encoder: Path, tmp_path: Path) -> None:
    given = ["train", "support", "--data", str(data), "--out", str(tmp_path / "out"), "--base", str(tiny_cross_encoder),
             "--pairs", "100", "--length", "48", "--json"]  # fmt: skip
    first = CliRunner().invoke(app, given)
    assert first.exit_code == 0, first.output
    summary = json.loads(first.stdout)
    assert summary["pairs"] == 100
    assert [stage["best"] for stage in summary["stages"]] == [True]
    curve = Curve.load(tmp_path / "out" / "model" / CURVE)
    assert 0 < curve.partly <= curve.threshold < 1
    assert Path(summary["near_misses"]).exists()
    made = (tmp_path / "out" / "pairs.json").stat().st_mtime_ns
    again = CliRunner().invoke(app, given)
    assert json.loads(again.stdout)["stages"] == summary["stages"]
    assert (tmp_path / "out" / "pairs.json").stat().st_mtime_ns == made
    result = CliRunner().invoke(
        app,
        ["evaluate", "support", "--pairs", summary["near_misses"], "--judge", str(tmp_path / "out/model"), "--json"],
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert {"auc", "balanced_accuracy", "precision", "recall", "ms"} <= set(found)


@pytest.mark.usefixtures("few_written")
def test_a_larger_judge_learns_what_is_added_to_its_base(data: Path, tiny_mpnet: Path, tmp_path: Path) -> None:
    given = ["train", "support", "--data", str(data), "--out", str(tmp_path / "out"), "--base", str(tiny_mpnet),
             "--pairs", "100", "--length", "48", "--rank", "2", "--json"]  # fmt: skip
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0, result.output
    model = tmp_path / "out" / "model"
    assert {"adapter_config.json", "adapter_model.safetensors", "judge.json"} <= {file.name for file in model.iterdir()}
    judge = Support(model, tiny_mpnet)
    [said] = judge.probabilities(
        [Claim("lima is the capital", (Passage("p", "peru", "lima is the capital"),))], Event()
    )
    assert 0 < said < 1


@pytest.mark.usefixtures("few_written")
def test_a_judge_learns_on_with_a_share_of_what_was_written(data: Path, tiny_mpnet: Path, tmp_path: Path) -> None:
    first, more = tmp_path / "first", tmp_path / "more"
    usual = ["train", "support", "--data", data, "--base", tiny_mpnet, "--pairs", "100", "--length", "48", "--json"]
    shares = []
    for given in (
        ["--out", first, "--rank", "2", "--own", "0"],
        ["--out", more, "--adapter", first / "model", "--own", "0.5", "--times", "2"],
    ):
        result = CliRunner().invoke(app, [*map(str, [*usual, *given])])
        assert result.exit_code == 0, result.output
        summary = json.loads(result.stdout)
        shares.append((summary["pairs"], summary["written for it"]))
    assert shares == [(100, 0), (100, 50)]
    before, learned = (load_file(folder / "model" / WEIGHTS) for folder in (first, more))
    assert before.keys() == learned.keys()
    assert any(not np.array_equal(value, before[name]) for name, value in learned.items())


@pytest.mark.lucene
@pytest.mark.usefixtures("few_written")
def test_a_reranker_learns_on_from_a_judge_and_is_packed(data: Path, tiny_mpnet: Path, tmp_path: Path) -> None:
    support, ranks, small = (tmp_path / name for name in ("support", "ranks", "small"))
    for given in (
        ["support", "--out", support, "--rank", "2", "--pairs", "100", "--length", "48"],
        ["reranker", "--out", ranks, "--adapter", support / "model", "--pairs", "200", "--own", ".5", "--length", "48"],
    ):
        usual = ["--data", data, "--base", tiny_mpnet, "--json"]
        result = CliRunner().invoke(app, ["train", *map(str, [*given, *usual])])
        assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["of short documents"] == 100
    assert 0 < summary["that answer"] < summary["pairs"] <= 200
    assert CliRunner().invoke(app, ["train", "pack", "--model", f"{ranks}/model", "--out", str(small)]).exit_code == 0
    before, learned, packed = (load_file(folder / WEIGHTS) for folder in (support / "model", ranks / "model", small))
    assert {str(value.dtype) for value in packed.values()} == {"float16"}
    for name, value in learned.items():
        assert packed[name] == pytest.approx(value, abs=1e-3)
    assert any(not np.array_equal(value, before[name]) for name, value in learned.items())
    found = CrossEncoderEstimator(small, base=tiny_mpnet).estimate("where is lima", [Passage("p", "", "peru")], Event())
    assert 0 < found[0].confidence < 1
    assert json.loads((small / CONFIG).read_text())["base_model_name_or_path"] == f"sentence-transformers/{BASE}"


def test_a_question_is_paired_with_what_answers_and_with_what_is_near(data: Path) -> None:
    material = read_material(data, "train")
    towns = [one.passage for one in material.questions if one.passage.title.startswith("Town")]
    passages = {one.titled: one for one in (*material.passages, *(passage for _, passage in material.replies))}
    pairs = question_pairs(material, FixedRetriever(towns[:5]), 0, silent)
    assert pairs == question_pairs(material, FixedRetriever(towns[:5]), 0, silent)
    gates = [one for one in pairs if one.first.startswith("How many gates")]
    assert {one.label for one in gates} == {TRUE, FALSE}
    for one in gates:
        assert one.second not in passages or ("gates of iron" in one.second) == bool(one.label)
    assert all("Peru" not in one.second for one in pairs if one.first.startswith("where is town") and not one.label)
    assert {one.label for one in pairs if one.first.startswith("How many doors")} == {FALSE}
    assert {one.label for one in pairs if "causes of illness" in one.first} == {TRUE, FALSE}
    assert any(one.second not in passages for one in pairs), "no sentence is shown alone"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (None, "is broken; remove it"),
        ({"seed": 9}, "with another seed; choose"),
        ({"count": 50}, "with another count; choose"),
        ({"material": []}, "with another material; choose"),
    ],
)
def test_kept_pairs_that_are_not_these_are_told(data: Path, tmp_path: Path, change: dict | None, says: str) -> None:
    kept = {"seed": 0, "count": 100, "material": fingerprints(data), "train": [], "dev": []}
    (tmp_path / "pairs.json").write_text("{" if change is None else json.dumps(kept | change))
    with pytest.raises(DataError, match=says):
        train(tmp_path, Plan(""), data, Lesson(100), silent)
