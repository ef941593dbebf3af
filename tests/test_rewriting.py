from dataclasses import replace
from pathlib import Path

import pytest

from assistant.errors import DataError
from assistant.evaluation.rewriting import Rewriting, read_follow_ups, rouge1, sample_follow_ups
from assistant.experiment.options import Sample
from assistant.protocols import silent
from tests.conftest import ScriptedLLM
from tests.test_evaluation_data import lines
from tests.test_ranking import ByWord

CANARD = {
    "dialog_id": "d",
    "turns": [
        {"n": 1, "question": "Who is Frank Zappa?", "rewrite": "Who is Frank Zappa?", "history_answer": "A musician."},
        {
            "n": 2,
            "question": "Where was he born?",
            "rewrite": "Where was Frank Zappa born?",
            "history_answer": "Baltimore.",
        },
        {"n": 3, "question": "And when?", "rewrite": "When was Frank Zappa born?", "history_answer": "1940."},
    ],
}
IKAT = {
    "collection": "2023_train",
    "number": "1-1",
    "turns": [
        {"qid": "1-1_1", "utterance": "Hi", "resolved_utterance": "Hi", "response": "Hello."},
        {"qid": "1-1_2", "utterance": "stay here", "resolved_utterance": "stay in Holland", "response": "Fine."},
    ],
}


def test_rouge_counts_a_word_as_often_as_both_have_it() -> None:
    assert rouge1("where was he born", "Where was Frank Zappa born?") == {"recall": 3 / 5, "f1": 2 * 3 / 9}
    assert rouge1("the the the", "the cat") == {"recall": 1 / 2, "f1": 2 / 5}
    assert rouge1("", "the cat") == {"recall": 0, "f1": 0}


def test_both_forms_of_dialogues_are_read_with_their_history(tmp_path: Path) -> None:
    second, third, stay = read_follow_ups(lines(tmp_path / "d.jsonl", CANARD, IKAT))
    assert (second.id, third.id, stay.id) == ("d/2", "d/3", "2023_train/1-1_2")
    assert [one.utterance for one in third.history] == ["Who is Frank Zappa?", "Where was he born?"]
    assert third.history[1].question == "Where was Frank Zappa born?"
    assert third.history[1].reply == "Baltimore."
    assert stay.human == "stay in Holland"


def test_a_line_that_is_no_dialogue_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"d.jsonl, line 2, is neither .* 'turns' is missing"):
        read_follow_ups(lines(tmp_path / "d.jsonl", CANARD, {"dialog_id": "x"}))
    with pytest.raises(DataError, match="no follow-ups"):
        read_follow_ups(lines(tmp_path / "e.jsonl", {"dialog_id": "x", "turns": []}))


def test_null_is_a_rewrite_that_nobody_made_and_a_reply_that_nobody_gave(tmp_path: Path) -> None:
    first, second, third = CANARD["turns"]
    bare = {"rewrite": None, "history_answer": None}
    path = lines(tmp_path / "d.jsonl", {"dialog_id": 7, "turns": [first | bare, second | bare, third]})
    born, when = read_follow_ups(path)
    assert (born.id, born.human, when.human) == ("7/2", "", "When was Frank Zappa born?")
    assert [(one.question, one.reply) for one in when.history] == [
        ("Who is Frank Zappa?", ""), ("Where was he born?", ""),
    ]  # fmt: skip
    assert sample_follow_ups([born, when], Sample(), None) == {when.id: when}
    unsaid = IKAT | {"turns": [turn | {"resolved_utterance": None, "response": None} for turn in IKAT["turns"]]}
    [stay] = read_follow_ups(lines(tmp_path / "i.jsonl", unsaid))
    assert (stay.human, stay.history[0].reply) == ("", "")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"turns": None}, "turns"),
        ({"turns": ["Hi"]}, "turns"),
        ({"dialog_id": None}, "dialog_id"),
        ({"turns": [CANARD["turns"][0] | {"question": None}]}, "question"),
        ({"turns": [CANARD["turns"][0] | {"rewrite": ["x"]}]}, "rewrite"),
        ({"turns": [CANARD["turns"][0] | {"history_answer": 7}]}, "history_answer"),
    ],
)
def test_a_field_of_another_kind_is_named(tmp_path: Path, change: dict, field: str) -> None:
    says = rf"line 1, is neither .*: '{field}' is missing or holds something else; mend or remove the line"
    with pytest.raises(DataError, match=says):
        read_follow_ups(lines(tmp_path / "d.jsonl", CANARD | change))


def test_rewrites_are_compared_with_peoples(parts, tmp_path) -> None:
    path = lines(tmp_path / "d.jsonl", CANARD)
    task = Rewriting(path, {one.id: one for one in read_follow_ups(path)}, "m")
    llm = ScriptedLLM(["Where was Frank Zappa born?", "When was he born?"])
    run = task.open(tmp_path / "out")
    task.fill(run, replace(parts, llm=llm), silent)
    # the model is given the canonical history: for "And when?" the question before it, as people rewrote that
    assert "Where was Frank Zappa born?" in llm.prompts[1][-1].content
    found = task.summarise(run.rows)["against_human"]
    assert found["ours"]["EM"]["value"] == 0.5
    assert found["utterance"]["EM"]["value"] == 0
    assert found["ours"]["ROUGE-1 recall"]["value"] == pytest.approx((1 + 3 / 5) / 2)
    assert found["ours"]["BLEU"] > found["utterance"]["BLEU"] > 0


def test_the_history_is_as_people_rewrote_it_whatever_the_model_wrote(parts, tmp_path) -> None:
    path = lines(tmp_path / "d.jsonl", CANARD)
    task = Rewriting(path, {one.id: one for one in read_follow_ups(path)}, "m")
    llm = ScriptedLLM(["In which town was he born?", "When was he born?"])
    task.fill(task.open(tmp_path / "out"), replace(parts, llm=llm), silent)
    assert "Where was Frank Zappa born?" in llm.prompts[1][-1].content
    assert "In which town" not in llm.prompts[1][-1].content


def test_the_share_of_the_gap_that_rewriting_closes(parts, tmp_path) -> None:
    path = lines(tmp_path / "d.jsonl", CANARD, IKAT)
    qrels = {"d/2": {"birth": 1}, "2023_train/1-1_2": {"holland": 1}}
    follow_ups = sample_follow_ups(read_follow_ups(path), Sample(), qrels)
    assert set(follow_ups) == set(qrels)
    (last,) = sample_follow_ups(read_follow_ups(path), Sample(skip=1), qrels)
    assert last == list(follow_ups)[1]
    with pytest.raises(DataError, match="No follow-up has both"):
        sample_follow_ups([replace(one, human="") for one in follow_ups.values()], Sample(), qrels)
    retriever = ByWord(birth="zappa birth", holland="in holland")
    task = Rewriting(path, follow_ups, "m", 0, retriever, qrels)
    run = task.open(tmp_path / "out")
    better = {"Where was he born?": "Zappa birth ?", "stay here": "stay here"}

    def rewrite(messages) -> str:
        return next(ours for raw, ours in better.items() if f"A: {raw}\n\nRewrite" in messages[-1].content)

    task.fill(run, replace(parts, llm=ScriptedLLM([rewrite] * 2)), silent, jobs=2)
    found = task.summarise(run.rows)["retrieval"]
    values = {variant: measures["nDCG@10"]["value"] for variant, measures in found["variants"].items()}
    assert values == {"utterance": 0, "ours": 0.5, "searched": 0.5, "human": 1}
    assert found["gap_closed"] == 0.5
    assert found["gain"]["value"] == 0.5
