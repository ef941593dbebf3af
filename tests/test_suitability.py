"""The suitability judge as it ships, what it says to bad input and broken files, and how it is measured."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from threading import Event
from time import process_time

import pytest
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.errors import DataError, ModelError
from assistant.evaluation.suitability import Pair, by_judge, by_llm, measure, read_pairs
from assistant.judges.suitability.knowledge import ARRAYS, NAMES, NOTES, SHIPPED, Knowledge
from assistant.judges.suitability.tags import ByTags
from assistant.protocols import Embedder
from tests.scripted import WORDS, ScriptedLLM
from tests.test_evaluation_data import lines

HAND = Path(__file__).parent / "data" / "suitability.jsonl"
NEVER = Event()
# Pairs that any judge should be right about.
CLASHING = [
    ("I have a peanut allergy.", "Toast with eggs or peanut butter is a good breakfast."),
    ("I'm vegan.", "Cheese, eggs and fish hold much protein."),
    ("I can't swim.", "Snorkelling and surfing are what visitors come for."),
    ("I don't drink alcohol.", "a glass of red wine with friends"),
    ("I hate coriander.", "Scatter fresh coriander over the soup."),
    ("I'm vegan and I can't swim.", "Surfing is what visitors come for."),
]
SUITING = [
    ("I have a peanut allergy.", "Apples and pears keep for weeks in a cool cellar."),
    ("I have coeliac disease.", "Rice and potatoes hold no gluten."),
    ("My name is Anna.", "Toast with peanut butter is a good breakfast."),
    ("I play the cello.", "Snorkelling is what visitors come for."),
    ("I live in Berlin.", "The capital has 3.6 million inhabitants."),
    ("I'm vegan.", "Lentils and beans hold much protein."),
    ("I hate coriander.", "Scatter fresh basil over the soup."),
    ("I don't drink alcohol.", "Avoid wine and beer."),
]


@pytest.fixture(scope="module")
def judge(embedder: Embedder) -> ByTags:
    return ByTags(Knowledge.load(SHIPPED), embedder)


def clash(judge: ByTags, fact: str, text: str) -> float:
    return judge.clashes([fact], [text], NEVER)[0][0]


# --- what it says ------------------------------------------------------------------------------------------------


@pytest.mark.model
@pytest.mark.parametrize(("fact", "text"), CLASHING)
def test_it_tells_what_clashes(judge: ByTags, fact: str, text: str) -> None:
    assert clash(judge, fact, text) >= judge.threshold


@pytest.mark.model
@pytest.mark.parametrize(("fact", "text"), SUITING)
def test_it_leaves_alone_what_suits(judge: ByTags, fact: str, text: str) -> None:
    assert clash(judge, fact, text) < judge.threshold


@pytest.mark.model
def test_it_is_of_use_on_pairs_that_it_never_saw(judge: ByTags) -> None:
    pairs = read_pairs(HAND)
    found, _ = measure(pairs, lambda pair: clash(judge, pair.fact, pair.text), judge.threshold)
    assert found["auc"] > AUC
    assert found["kinds"]["harmless"]["false_alarms"] == 0


# well under what docs/results/suitability.md reports, since another processor rounds otherwise
AUC = 0.79


# --- facts and texts of all sorts --------------------------------------------------------------------------------


@pytest.mark.model
@pytest.mark.parametrize(
    "fact",
    [
        "I'm allergic to peanuts, " + "and I live in a house with a red door and a big dog, " * 9,
        "<b>I'm allergic to peanuts</b> <script>alert(1)</script>",
        "**I'm allergic to peanuts** | table |",
        "Ich bin Veganerin und esse weder Fleisch noch Käse.",
        "ピーナッツアレルギーです",
        "🥜🚫",
        "\ud800 broken",
        "I'm allergic to everything",
        "a" * 5000,
    ],
)
def test_odd_facts_give_a_probability(judge: ByTags, fact: str) -> None:
    assert 0 <= clash(judge, fact, "peanut butter on toast") <= 1


@pytest.mark.model
def test_facts_that_contradict_each_other_are_judged_each_by_itself(judge: ByTags) -> None:
    rows = judge.clashes(["I love peanuts.", "I have a peanut allergy."], ["peanut butter on toast"], NEVER)
    assert rows[0][0] < judge.threshold <= rows[1][0]


@pytest.mark.model
def test_nothing_clashes_with_nothing(judge: ByTags) -> None:
    assert judge.clashes(["", "  "], ["peanut butter"], NEVER) == [[0.0], [0.0]]
    assert judge.clashes(["I'm vegan."], ["", "\n"], NEVER) == [[0.0, 0.0]]
    assert judge.clashes([], ["cheese"], NEVER) == []
    assert judge.clashes(["I'm vegan."], [], NEVER) == [[]]


@pytest.mark.model
def test_a_batch_is_as_good_as_one_by_one_and_from_threads(judge: ByTags) -> None:
    facts, texts = ["I'm vegan.", "My name is Anna.", "I can't swim."], ["gouda", "a swim to the island", "lentil soup"]
    together = judge.clashes(facts, texts, NEVER)
    alone = [[clash(judge, fact, text) for text in texts] for fact in facts]
    assert [pytest.approx(row, abs=0.01) for row in together] == alone
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: judge.clashes(facts, texts, NEVER), range(4)):
            assert found == together


@pytest.mark.model
def test_two_hundred_facts_and_a_stop(judge: ByTags) -> None:
    facts = [f"I have visited {n} towns." for n in range(200)]
    assert len(judge.clashes(facts, ["gouda"], NEVER)) == 200
    stop = Event()
    stop.set()
    assert judge.clashes(["I'm vegan."], ["a slice of ripe gouda"], stop) == [[0.0]]


@pytest.mark.model
def test_it_takes_a_few_milliseconds_a_pair(judge: ByTags) -> None:
    facts, texts = ["I'm vegan.", "I can't swim."], [f"Stir {n} spoons of cream into the soup." for n in range(16)]
    judge.clashes(facts, texts, NEVER)
    times = []
    for _ in range(5):
        start = process_time()
        judge.clashes(facts, texts, NEVER)
        times.append(process_time() - start)
    assert median(times) / 32 < 0.1  # processor time on any machine; docs/results/suitability.md has the real figure


# --- its files ---------------------------------------------------------------------------------------------------


def test_it_is_small_and_says_where_it_comes_from() -> None:
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 8e6
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    for said in ("Licence", "train suitability", "--seed", "AUC", "fails"):
        assert said in card
    assert 0 < Knowledge.load(SHIPPED).threshold < 1


@pytest.mark.parametrize("name", [ARRAYS, NOTES, NAMES])
def test_a_missing_file_is_told_in_a_sentence(tmp_path: Path, name: str) -> None:
    shutil.copytree(SHIPPED, tmp_path / "judge")
    (tmp_path / "judge" / name).unlink()
    with pytest.raises(ModelError, match=r"The suitability judge can't be used: .* (get|give) "):
        Knowledge.load(tmp_path / "judge")


def test_a_file_that_was_cut_short_is_told_in_a_sentence(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED, tmp_path / "judge")
    weights = tmp_path / "judge" / ARRAYS
    weights.write_bytes(weights.read_bytes()[:100_000])
    with pytest.raises(ModelError, match="The suitability judge can't be used"):
        Knowledge.load(tmp_path / "judge")


def test_no_folder_at_all(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="The suitability judge can't be used"):
        Knowledge.load(tmp_path / "nothing")


def test_another_embedder_is_told_in_a_sentence() -> None:
    with pytest.raises(ModelError, match=r"trained for .*; set embedder\.model back"):
        ByTags(Knowledge.load(SHIPPED), WORDS)


# --- measuring ---------------------------------------------------------------------------------------------------

ROWS = [
    {"fact": "I'm vegan.", "text": "cheese", "clash": 1, "kind": "item"},
    {"fact": "I'm vegan.", "text": "beans", "clash": 0, "kind": "item"},
    {"fact": "My name is Anna.", "text": "cheese", "clash": 0, "kind": "harmless"},
    {"fact": "I can't swim.", "text": "surfing", "clash": 1},
]


def test_measures_by_hand(tmp_path: Path) -> None:
    pairs = read_pairs(lines(tmp_path / "p.jsonl", *ROWS))
    said = {"cheese": 0.9, "beans": 0.1, "surfing": 0.2}
    found, each = measure(pairs, lambda pair: said[pair.text], 0.5)
    assert [row["probability"] for row in each] == [said[pair.text] for pair in pairs]
    assert found["auc"] == pytest.approx((0.5 + 1 + 0 + 1) / 4)
    assert (found["precision"], found["recall"], found["false_alarms"]) == (0.5, 0.5, 0.5)
    assert found["kinds"]["harmless"]["false_alarms"] == 1.0
    assert found["kinds"]["item"]["recall"] == 1.0
    assert measure(pairs[:1], lambda pair: 0.1, 0.5)[0]["auc"] is None


def test_a_pair_may_have_the_question_that_is_replied_to(tmp_path: Path) -> None:
    [pair] = read_pairs(lines(tmp_path / "p.jsonl", {**ROWS[3], "question": "What can I do by the sea?"}))
    asked: list[str] = []

    class Listening:
        def clashes(self, facts, texts, stop: Event, question: str = "") -> list[list[float]]:
            asked.append(question)
            return [[0.5]]

    assert by_judge(Listening())(pair) == 0.5
    assert asked == ["What can I do by the sea?"]


def test_a_text_may_stand_in_a_passage(tmp_path: Path) -> None:
    corpus = lines(tmp_path / "c.jsonl", {"id": "a", "title": "Soup", "contents": "Boil it. Add the cream. Serve."})
    row = {"source": "a", "start": 9, "end": 23, "fact": "I'm vegan.", "clash": 1}
    path = lines(tmp_path / "p.jsonl", row)
    assert read_pairs(path, [corpus]) == [Pair("I'm vegan.", "Add the cream.", True)]
    with pytest.raises(DataError, match=r"points to 'a', .* --corpus"):
        read_pairs(path)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"text": "cheese", "clash": 1}, "is no pair of fact and text: 'fact': Field required"),
        ({"fact": "I'm vegan.", "text": " ", "clash": 1}, "is no pair of fact and text: 'text'"),
        ({"fact": "I'm vegan.", "text": "cheese", "clash": "yes"}, "'clash'"),
        ({"fact": "I'm vegan.", "text": "cheese"}, "'clash'"),
        ({"fact": "I'm vegan.", "clash": 1}, "is no pair of fact and text: 'text'"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, row: dict[str, object], said: str) -> None:
    with pytest.raises(DataError, match=rf"line 1, .*{said}"):
        read_pairs(lines(tmp_path / "p.jsonl", row))


def test_no_pairs(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").touch()
    with pytest.raises(DataError, match="no pairs"):
        read_pairs(tmp_path / "p.jsonl")


def test_the_language_model_is_asked_yes_or_no() -> None:
    llm = ScriptedLLM(choices=[{"yes": 0.7, "no": 0.3}])
    assert by_llm(llm)(Pair("I'm vegan.", "cheese", 1)) == 0.7
    assert llm.asked[0][-1].content == "Person: I'm vegan.\nText: cheese\nDoes it clash? yes or no"


@pytest.mark.model
def test_the_command(tmp_path: Path) -> None:
    path = lines(tmp_path / "p.jsonl", *ROWS)
    done = CliRunner().invoke(app, ["evaluate", "suitability", "--pairs", str(path), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert {"auc", "precision", "recall", "false_alarms", "ms"} <= set(found)
    shown = CliRunner().invoke(app, ["evaluate", "suitability", "--pairs", str(path)])
    assert "auc " in shown.stdout
