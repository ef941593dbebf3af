"""The suitability judge as a turn asks it, by tags and reader together: what it says, its files, how it is trained."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Event

import pytest
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.errors import ModelError
from assistant.evaluation.suitability import Pair, read_pairs
from assistant.judges import load
from assistant.judges.cross_encoder import PairReader
from assistant.judges.suitability.judge import BLEND, FACTS, READER, Blend, Both, judge_of
from assistant.judges.suitability.knowledge import SHIPPED
from assistant.judges.suitability.tags import ByTags
from assistant.protocols import Embedder, SuitabilityJudge
from assistant.settings import Settings
from assistant.training.suitability.questions import lend_questions
from assistant.training.suitability.reader import UNFITTED_BLEND, fit_blend
from assistant.training.suitability.written import ASKED_PATH, TELLING, WRITTEN_PATH, WrittenPair, read_written
from tests.scripted import WORDS
from tests.test_suitability import CLASHING, SUITING

DATA = Path(__file__).parent / "data"
FRESH = DATA / "suitability_fresh.jsonl"
UNLEARNED = (FRESH, *(DATA / f"suitability_{name}_fresh.jsonl" for name in ("second", "asked", "found")))
NEVER = Event()


@pytest.fixture(scope="module")
def judge(embedder: Embedder) -> Both:
    found = judge_of(SHIPPED, embedder)
    assert isinstance(found, Both)
    return found


def sure(judge: Both, fact: str, text: str) -> float:
    return judge.clashes([fact], [text], NEVER)[0][0]


# --- what it says ------------------------------------------------------------------------------------------------


@pytest.mark.model
@pytest.mark.parametrize(("fact", "text"), CLASHING)
def test_it_tells_what_clashes(judge: Both, fact: str, text: str) -> None:
    assert sure(judge, fact, text) >= judge.threshold


@pytest.mark.model
@pytest.mark.parametrize(("fact", "text"), [*SUITING, ("I love coriander.", "Scatter fresh coriander over the soup.")])
def test_it_leaves_alone_what_suits(judge: Both, fact: str, text: str) -> None:
    assert sure(judge, fact, text) < judge.threshold


@pytest.mark.model
def test_it_tells_more_than_the_tags_alone_of_pairs_that_it_never_saw(judge: Both) -> None:
    texts: dict[str, list[str]] = {}
    for pair in read_pairs(FRESH):
        texts.setdefault(pair.fact, []).append(pair.text)
    clash = {(pair.fact, pair.text): pair.clash for pair in read_pairs(FRESH)}
    labels = [clash[fact, text] for fact, some in texts.items() for text in some]

    def auc(asked: SuitabilityJudge) -> float:
        found = [one for fact, some in texts.items() for one in asked.clashes([fact], some, NEVER)[0]]
        return float(roc_auc_score(labels, found))

    assert auc(judge) > auc(judge.tags) + 0.05


# --- facts and texts of all sorts --------------------------------------------------------------------------------


@pytest.mark.model
@pytest.mark.parametrize(
    "fact",
    [
        "I'm allergic to peanuts, " + "and I live in a house with a red door and a big dog, " * 9,
        "<b>I'm allergic to peanuts</b> <script>alert(1)</script>",
        "Ich bin Veganerin und esse weder Fleisch noch Käse.",
        "ピーナッツアレルギーです",
        "\ud800 broken",
        "I'm allergic to everything",
        "a" * 5000,
    ],
)
def test_odd_facts_give_a_probability(judge: Both, fact: str) -> None:
    assert 0 <= sure(judge, fact, "peanut butter on toast") <= 1


@pytest.mark.model
def test_nothing_clashes_with_nothing_nor_once_it_is_stopped(judge: Both) -> None:
    assert judge.clashes(["", "  "], ["peanut butter"], NEVER) == [[0.0], [0.0]]
    assert judge.clashes(["I'm vegan."], ["", "\n"], NEVER) == [[0.0, 0.0]]
    assert judge.clashes([], ["cheese"], NEVER) == []
    assert judge.clashes(["I'm vegan."], [], NEVER) == [[]]
    stop = Event()
    stop.set()
    assert judge.clashes(["I'm vegan."], ["a slice of ripe gouda that nobody asked about"], stop) == [[0.0]]


@pytest.mark.model
def test_of_two_hundred_facts_those_are_read_that_rule_something_out(judge: Both, monkeypatch) -> None:
    asked: list[tuple[str, str]] = []
    read = PairReader.logits
    monkeypatch.setattr(
        PairReader, "logits", lambda self, pairs, *how: (asked.extend(pairs), read(self, pairs, *how))[1]
    )
    facts = [f"I have visited {n} towns." for n in range(200)]
    facts[150] = "I'm allergic to peanuts."
    rows = judge.clashes(facts, ["Spread the peanut butter on the bread."], NEVER)
    assert len({fact for fact, _ in asked}) == FACTS
    assert rows[150][0] >= judge.threshold
    assert sum(row[0] >= judge.threshold for row in rows) == 1


@pytest.mark.model
def test_what_was_read_is_kept(judge: Both, monkeypatch) -> None:
    first = sure(judge, "I can't stand aniseed.", "Finish the tart with aniseed.")
    monkeypatch.setattr(PairReader, "logits", lambda self, pairs, *_: pytest.fail("it was read again") if pairs else [])
    assert sure(judge, "I can't stand  aniseed.", "Finish the tart with aniseed. ") == first


# --- its files ---------------------------------------------------------------------------------------------------


def copied(folder: Path) -> Path:
    shutil.copytree(SHIPPED, folder / "judge")
    return folder / "judge"


@pytest.mark.model
@pytest.mark.parametrize("name", ["config.json", BLEND, "weights.int8.safetensors", "tokenizer.json"])
def test_a_missing_file_is_told_in_a_sentence(tmp_path: Path, embedder: Embedder, name: str) -> None:
    folder = copied(tmp_path)
    (folder / READER / name).unlink()
    with pytest.raises(ModelError, match=r"(get|give|train) "):
        judge_of(folder, embedder)


@pytest.mark.model
def test_a_broken_judge_says_so_when_it_is_asked(
    tmp_path: Path, settings: Settings, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied(tmp_path)
    weights = folder / READER / "weights.int8.safetensors"
    weights.write_bytes(weights.read_bytes()[:100_000])
    monkeypatch.setattr("assistant.judges.suitability.judge.SHIPPED", folder)
    with pytest.raises(ModelError, match=r"can't be read .*; get it again"):
        load.suitability(settings, embedder).clashes(["I'm vegan."], ["cheese"], NEVER)


@pytest.mark.model
def test_one_without_a_reader_goes_by_the_tags(tmp_path: Path, embedder: Embedder) -> None:
    folder = copied(tmp_path)
    shutil.rmtree(folder / READER)
    assert isinstance(judge_of(folder, embedder), ByTags)


def test_another_embedder_is_told_in_a_sentence() -> None:
    with pytest.raises(ModelError, match=r"trained for .*; set embedder\.model back"):
        judge_of(SHIPPED, WORDS)


def test_the_blend_is_kept_as_it_was(tmp_path: Path) -> None:
    blend = Blend(0.25, 0.5, 0.6, "nothing")
    blend.save(tmp_path / BLEND)
    assert Blend.load(tmp_path / BLEND) == blend
    (tmp_path / BLEND).write_text("{}")
    with pytest.raises(ModelError, match=r"can't be read \(reader: Field required\); get or train"):
        Blend.load(tmp_path / BLEND)


def test_a_thing_is_weighed_by_another_share_than_a_sentence() -> None:
    blend = Blend(0.25, 0.5, 0.6, "nothing")
    assert blend("Spread peanut butter on a slice of bread.", (1.0, -3.0)) == pytest.approx(0.5)
    assert blend("bread with peanut butter", (3.0, -3.0)) == pytest.approx(0.5)


class KnowsNothing:
    """Tags that know nothing of any fact."""

    def clashes(self, facts: list[str], texts: list[str], stop: Event, question: str = "") -> list[list[float]]:
        return [[0.0] * len(texts) for _ in facts]


class Reads:
    """A reader that is sure of each pair."""

    def logits(self, pairs: list[tuple[str, str]], stop: Event) -> dict[tuple[str, str], float]:
        return {pair: 2.0 if "clash" in pair[1] else -2.0 for pair in pairs}


def test_where_the_tags_know_nothing_of_a_fact_the_reader_decides() -> None:
    judge = Both(KnowsNothing(), Reads(), Blend(0.5, 0.3, 0.6, "nothing"))
    [[clashing, calm]] = judge.clashes(["I was born with phenylketonuria."], ["a clash", "calm"], NEVER)
    assert clashing > judge.threshold > calm


def test_a_reader_that_learned_questions_reads_a_text_as_the_reply_to_one() -> None:
    told = ["I can't swim."], ["Swimming trains nearly the whole body, and the heart."], NEVER
    for learned in (True, False):
        judge = Both(KnowsNothing(), Reads(), Blend(0.5, 0.3, 0.6, "nothing", questions=learned))
        assert judge.clashes(*told)[0][0] < 0.5
        assert (judge.clashes(*told, "a clash?")[0][0] > 0.5) is learned


# --- how it is trained -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [WRITTEN_PATH, ASKED_PATH])
def test_facts_kept_apart_are_not_learned(path: Path) -> None:
    learned, apart = read_written("train", path), read_written("dev", path)
    assert len(learned) > 4 * len(apart) > 1000
    assert not {one.fact.lower() for one in learned} & {one.fact.lower() for one in apart}
    for pairs in (learned, apart):
        assert 0.3 < sum(one.clash for one in pairs) / len(pairs) < 0.6
        assert len({(one.fact.lower(), one.question, one.text.lower()) for one in pairs}) == len(pairs)


def test_nothing_written_is_a_pair_to_measure_by() -> None:
    fresh = [pair for path in UNLEARNED for pair in read_pairs(path)]
    facts, texts = ({plain(words) for words in some} for some in zip(*((p.fact, p.text) for p in fresh), strict=True))
    files, parts = (WRITTEN_PATH, ASKED_PATH), ("train", "dev")
    for one in (one for path in files for part in parts for one in read_written(part, path)):
        assert plain(one.fact) not in facts
        assert plain(one.text) not in texts


def plain(words: str) -> str:
    return words.lower().strip(" .")


def test_pairs_without_a_question_are_lent_the_one_asked_for_what_is_most_like_them() -> None:
    pairs = [WrittenPair("I'm vegan.", text, True, "item") for text in ["cheese toast", "a bike tour"] * 20]
    pairs += [WrittenPair("I'm vegan.", "Cheese is made of milk.", False, TELLING)] * 20
    replies = [
        WrittenPair("I'm vegan.", "cheese toast with butter", True, "asked", "What can I eat?"),
        WrittenPair("I'm lame.", "a bike tour by the sea", True, "asked", "What can I do?"),
        WrittenPair("I'm vegan.", "cheese toast is old", False, "asked", "Where does cheese come from?"),
    ]
    lent = lend_questions(pairs, replies, WORDS, Random(1))
    assert {(one.text, one.question) for one in lent} == {
        ("cheese toast", ""), ("cheese toast", "What can I eat?"),
        ("a bike tour", ""), ("a bike tour", "What can I do?"),
        ("Cheese is made of milk.", ""),
    }  # fmt: skip
    assert [replace(one, question="") for one in lent] == pairs


TEXTS = ["clash", "rare clash", "rare", *["calm"] * 9]


class Sees:
    """Its tags are right but of what is rare, its reader is right but of what is misread."""

    blend = UNFITTED_BLEND

    def evidence(
        self, facts: list[str], texts: list[str], stop: Event, question: str = ""
    ) -> dict[tuple[int, int], tuple[float, float]]:
        return {(0, place): self.of(text) for place, text in enumerate(texts)}

    def of(self, text: str) -> tuple[float, float]:
        right = 2.0 if "clash" in text else -2.0
        return (-1.0 if "rare" in text else right, -right if "misread" in text else right)


def test_weight_and_threshold_find_most_with_few_false_alarms() -> None:
    pairs = [WrittenPair("a fact", text, "clash" in text, "") for text in TEXTS]
    others = [Pair("a fact", one.text, int(one.clash)) for one in pairs[:1] + pairs[2:]]
    blend = fit_blend(Sees(), {"of one kind": pairs, "of another": others})
    assert [blend(text, Sees().evidence(["a fact"], [text], NEVER)[0, 0]) >= blend.threshold for text in TEXTS[:4]] == [
        True, True, False, False,
    ]  # fmt: skip
    assert blend.reader > 0
    assert blend.few == blend.reader
    assert blend.chosen_on.startswith("12 pairs of one kind, 11 pairs of another: of the clashes 100%")


def test_texts_of_few_words_are_weighed_by_what_ranks_things_best() -> None:
    """Here the tags are right of things, and wrong of the one kind of sentences that the reader is right of."""
    sentences = [WrittenPair("a fact", f"{text} in a sentence of many words", "clash" in text, "") for text in TEXTS]
    things = [Pair("a fact", "clash", 1), Pair("a fact", "clash misread", 1), Pair("a fact", "calm misread", 0)]
    blend = fit_blend(Sees(), {"of one kind": sentences}, things)
    assert blend.reader > blend.few == 0.0
    assert blend.chosen_on.endswith("of few words: 3 things")


@pytest.mark.model
def test_the_command_trains_a_judge_that_can_be_asked(tmp_path: Path, embedder: Embedder, monkeypatch) -> None:
    from assistant.training.suitability import reader

    def few_written(part: str, path: Path = WRITTEN_PATH) -> tuple[WrittenPair, ...]:
        return read_written(part, path)[: 32 if part == "train" else 24]

    monkeypatch.setattr(reader, "read_written", few_written)
    few = ["--tables", "32", "--replies", "32", "--tellings", "32", "--times", "1", "--asked", "1"]
    done = CliRunner().invoke(app, ["train", "reader", "--out", str(tmp_path / "out"), *few])
    assert done.exit_code == 0, done.output
    model = tmp_path / "out" / "model"
    folder = copied(tmp_path)
    shutil.rmtree(folder / READER)
    shutil.copytree(model, folder / READER)
    found = judge_of(folder, embedder)
    assert 0 <= found.clashes(["I'm vegan."], ["cheese"], NEVER)[0][0] <= 1
    blend = Blend.load(model / BLEND)
    assert found.threshold == blend.threshold
    assert blend.questions
    (model / BLEND).unlink()
    done = CliRunner().invoke(app, ["train", "weigh", "--model", str(model)])
    assert done.exit_code == 0, done.output
    assert Blend.load(model / BLEND) == blend
