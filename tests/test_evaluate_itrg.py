"""ITRG, its baselines and few-shot answers in an answers run, from files to report, with a scripted model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import sleep

import pytest

from assistant.errors import DataError, SettingsError
from assistant.evaluation import ranking
from assistant.evaluation.answer_methods import Method, parse_method
from assistant.evaluation.answers import Experiment, SettingGrid, claim, prepare
from assistant.evaluation.few_shot import Demonstrator, draw_demonstrations
from assistant.evaluation.scores import Setting
from assistant.evaluation.searching import Finder, check_loops
from assistant.experiment.datasets import Question
from assistant.experiment.measures import answer_recall
from assistant.protocols import Parts, silent
from assistant.types import Message, Messages, Options
from tests.scripted import FixedRetriever, ScriptedLLM
from tests.test_evaluate_answers import CAPITALS, files, passages, ran  # noqa: F401 - a fixture is among them
from tests.test_evaluation_data import lines
from tests.test_iterations import Library


class Writer(ScriptedLLM):
    """Writes a document or answers, whatever it is asked for, by a function of the prompt."""

    def __init__(self, reply: Callable[[str], str]) -> None:
        super().__init__()
        self._reply = reply

    def _next(self, messages: Messages) -> str:
        return self._reply(messages[-1].content)

    def asked_for(self, text: str) -> list[Messages]:
        return [prompt for prompt in self.prompts if text in prompt[-1].content]


def knows_after_a_detour(prompt: str) -> str:
    """The first document of a question names its country's capital; the second does not; answers come from a text."""
    if "Write the paragraph" in prompt:
        # what a search with the document has found
        return "It is unclear." if "France: " in prompt else "The city of Oslo, says France."
    return "Oslo" if "Oslo" in prompt else "unknown"


def asked(files: tuple[Path, Path], *strategies: str, **more: object) -> Experiment:  # noqa: F811
    return Experiment(*files, strategies, **{"settings": (Setting(k=2),), **more})


@pytest.fixture
def norway(tmp_path: Path) -> tuple[Path, Path]:
    corpus = lines(tmp_path / "c.jsonl", *({"id": c, "contents": c} for c in CAPITALS))
    question = {"id": "q", "question": "capital of Norway?", "answers": ["Oslo"], "gold": ["Norway"]}
    return corpus, lines(tmp_path / "q.jsonl", question)


def test_each_iterations_document_is_measured(norway, parts: Parts, tmp_path: Path) -> None:
    llm = Writer(knows_after_a_detour)
    parts = replace(parts, llm=llm, retriever=Library("Norway", "France"))
    summary, run, _ = ran(asked(norway, "document", loop="itrg_refresh"), parts, tmp_path / "out")
    [row] = run.rows.values()
    assert [one["recall"] for one in row["iterations"]] == [1, 0, 1]
    assert [one["passages"] for one in row["iterations"]] == [["norway"], ["norway", "france"], ["norway"]]
    assert row["iterations"][1]["query"] == "capital of Norway? The city of Oslo, says France."
    assert row["answer"] == "Oslo"
    recalls = summary["strategies"]["document"]["recall"]
    assert [one["value"] for one in recalls] == [1, 0, 1]
    text = (tmp_path / "out" / "report.md").read_text()
    assert "| recall |" in text
    # three documents, the third asked for in the words of the first, and an answer
    assert len(llm.prompts) == 3
    assert row["prompt_tokens"] == sum(llm.count(prompt) for prompt in (*llm.prompts, llm.prompts[0]))


def test_what_a_loop_costs_counts_for_each_strategy_behind_it_also_when_a_run_goes_on(
    norway, parts: Parts, tmp_path: Path
) -> None:
    def slowly(prompt: str) -> str:
        sleep(0.2 if "Write the" in prompt else 0)
        return "The city of Oslo."

    parts = replace(parts, retriever=Library("Norway", "France"))
    names = ("itrg_refresh/document", "itrg_refresh/concat", "itrg_refresh/post_fusion")
    ran(asked(norway, *names[:1]), replace(parts, llm=Writer(slowly)), tmp_path / "out")
    quick = Writer(lambda prompt: "Oslo")
    _, run, _ = ran(asked(norway, *names), replace(parts, llm=quick), tmp_path / "out")
    assert quick.asked_for("Write the") == []
    assert [row["seconds"] >= 0.2 for row in run.rows.values()] == [True] * 3


def test_methods_with_loops_of_their_own_are_compared_in_one_run(files, parts: Parts, tmp_path: Path) -> None:  # noqa: F811
    llm = Writer(lambda prompt: "The city of Lima." if "Write the" in prompt else "Lima")
    parts = replace(parts, llm=llm, retriever=FixedRetriever(passages("France", "Peru", "Norway")))
    names = ("retrieve_then_read", "concat", "closed_book", "chain_of_thought", "generate/document")
    names = (*names, "itrg_refine/document", "itrg_refresh/document")
    summary, run, _ = ran(asked(files, *names, limit=2), parts, tmp_path / "out")
    found = summary["strategies"]
    assert set(found) == set(names)
    assert summary["settings"][0]["base"] == "retrieve_then_read"
    assert set(summary["differences"]) == {*names} - {"retrieve_then_read"}
    assert {name: len(found[name]["recall"]) for name in names} == {
        "retrieve_then_read": 0,
        "concat": 0,
        "closed_book": 0,
        "chain_of_thought": 0,
        "generate/document": 1,
        "itrg_refine/document": 3,
        "itrg_refresh/document": 3,
    }
    read = {name: row["passages"] for (name, *_), row in run.rows.items()}
    assert read["closed_book"] == read["chain_of_thought"] == []
    assert read["generate/document"] == ["France", "Peru"]
    tokens = {name: measures["prompt_tokens"]["value"] for name, measures in found.items()}
    assert tokens["itrg_refresh/document"] > tokens["itrg_refine/document"] > tokens["generate/document"]
    # the documents of refine stay as they are, since nothing new is found
    assert len(llm.asked_for("Earlier paragraph")) == 0
    # one from what the model knows, and one from the passages, which all rounds of refine and refresh have in common
    assert len(llm.asked_for("Write the paragraph")) == 2 * (1 + 1)


def test_a_thought_is_kept_apart_from_its_answer(files, parts: Parts, tmp_path: Path) -> None:  # noqa: F811
    llm = Writer(lambda prompt: "It lies in the Andes.\nAnswer: Lima")
    parts = replace(parts, llm=llm, retriever=FixedRetriever([]))
    _, run, _ = ran(asked(files, "chain_of_thought", limit=1), parts, tmp_path / "out")
    assert [row["answer"] for row in run.rows.values()] == ["Lima"]


def test_shots_are_questions_from_outside_the_sample(files, parts: Parts, tmp_path: Path) -> None:  # noqa: F811
    llm = Writer(lambda prompt: "A paragraph." if "Write the" in prompt else "Lima")
    parts = replace(parts, llm=llm, retriever=FixedRetriever(passages("France", "Peru")))
    varied = SettingGrid(k=(2,), shots=(0, 2)).settings
    experiment = asked(files, "closed_book", "itrg_refresh/document", limit=2, settings=varied)
    summary, run, _ = ran(experiment, parts, tmp_path / "out")
    material = prepare(experiment)
    inside = {question.text for question in material.questions}
    outside = {question.text for question in material.demonstrations}
    assert len(inside) == len(outside) == 2
    assert not inside & outside
    assert {key[4] for key in run.rows} == {0, 2}
    answers = llm.asked_for("Answer in a few words:")
    assert sorted({len(prompt) for prompt in answers}) == [2, 6]
    for prompt in answers:
        if len(prompt) == 6:
            assert {prompt[1].content, prompt[3].content} == {
                f"Question: {text}\nAnswer in a few words:" for text in outside
            }
            assert [message.role for message in prompt[1:]] == ["user", "assistant", "user", "assistant", "user"]
    # documents are written without them, and once for both settings and all rounds, which find the same passages
    documents = llm.asked_for("Write the paragraph")
    assert {len(prompt) for prompt in documents} == {2}
    assert len(documents) == 2
    assert [block["shots"] for block in summary["settings"]] == [0, 2]
    assert "| shots |" in (tmp_path / "out" / "report.md").read_text()
    assert (tmp_path / "out" / "em_against_shots.png").exists()


def test_more_questions_keep_their_demonstrations() -> None:
    questions = [Question(str(n), f"{n}?", (str(n),) if n % 2 else ()) for n in range(20)]
    few = draw_demonstrations(questions, questions[:0], 3, seed=5)
    assert draw_demonstrations(questions, questions[:0], 1, seed=5) == few[:1]
    assert all(question.answers for question in few)
    assert draw_demonstrations(questions, questions[:0], 3, seed=6) != few


def test_no_questions_left_for_demonstrations_is_told(files) -> None:  # noqa: F811
    with pytest.raises(DataError, match="No 1 questions are left over to demonstrate answers with; lower --limit"):
        prepare(asked(files, "concat", settings=(Setting(2, shots=1),)))
    with pytest.raises(DataError, match="No 5 questions"):
        prepare(asked(files, "concat", settings=(Setting(2, shots=5),), limit=1))


def test_what_thinks_first_is_not_shown_answers_without_a_thought(files) -> None:  # noqa: F811
    prepare(asked(files, "chain_of_thought", limit=1))
    with pytest.raises(SettingsError, match="'chain_of_thought' thinks first; ask it without --shots"):
        prepare(asked(files, "closed_book", "chain_of_thought", settings=(Setting(2, shots=1),), limit=1))


def test_a_demonstrator_leaves_choosing_alone_and_counts_what_it_adds() -> None:
    llm = ScriptedLLM(["Oslo"])
    shown = Demonstrator(llm, [Question("1", "capital of Peru?", ("Lima", "City of Lima"))])
    prompt = (Message("system", "You answer."), Message("user", "capital of Norway?"))
    assert shown.count(prompt) > llm.count(prompt)
    assert shown.complete([prompt], Options(), Event())[0].text == "Oslo"
    assert llm.prompts[0][2] == Message("assistant", "Lima")
    shown.choose([prompt], ("yes", "no"), Event())
    assert llm.asked == [prompt]


def test_a_demonstrator_scores_with_demonstrations() -> None:
    class Scoring(ScriptedLLM):
        can_score = True

        def score(self, batch, stop) -> list[float]:
            return [-float(len(prompt)) for prompt, _ in batch]

    shown = [Question("1", "capital of Peru?", ("Lima",))]
    llm = Scoring()
    prompt = (Message("system", "You answer."), Message("user", "capital of Norway?"))
    assert Demonstrator(llm, ()).score([(prompt, "Oslo")], Event()) == [-2.0]
    assert Demonstrator(llm, shown).score([(prompt, "Oslo")], Event()) == [-4.0]


def test_a_document_for_a_question_too_long_for_the_model_counts_as_wrong(files, parts, tmp_path) -> None:  # noqa: F811
    llm = Writer(lambda prompt: "Lima")
    llm.context = 210
    parts = replace(parts, llm=llm, retriever=FixedRetriever(passages("France", "Peru")))
    summary, run, _ = ran(asked(files, "itrg_refresh/document", limit=1), parts, tmp_path / "out")
    [row] = run.rows.values()
    assert "does not fit the model's context" in row["error"]
    assert summary["strategies"]["itrg_refresh/document"]["failed"] == 1
    assert summary["strategies"]["itrg_refresh/document"]["recall"] == []


def test_names_that_do_not_exist_are_refused_before_anything_is_loaded(files) -> None:  # noqa: F811
    assert parse_method("itrg_refine/document", "question") == Method("document", "itrg_refine")
    assert parse_method("concat", "grg") == Method("concat", "grg")
    assert parse_method("ranked/concat@word+examples", "grg") == Method("concat", "ranked", "word", 0.0, examples=True)
    assert parse_method("concat@addresses:0.5", "grg") == Method("concat", "grg", "addresses", 0.5)
    for wrong in ("concat@doubt", "concat+example", "concat@", "concat+"):
        with pytest.raises(SettingsError, match="can't be asked; write STRATEGY@WAY"):
            prepare(asked(files, wrong))
    for wrong in ("concat@holds", "concat@word:2", "concat@holds:high"):
        with pytest.raises(SettingsError, match="needs a threshold from 0 to 1"):
            prepare(asked(files, wrong))
    with pytest.raises(SettingsError, match="'itrg' is not one of the loops"):
        prepare(asked(files, "itrg/document"))
    with pytest.raises(SettingsError, match="'closed' is not one of the strategies"):
        prepare(asked(files, "itrg_refine/closed"))
    check_loops(["itrg_refine", "itrg_refresh", "generate", "question"])


def test_another_number_of_iterations_is_another_run_and_the_usual_one_is_as_before(files) -> None:  # noqa: F811
    assert "iterations" not in claim(asked(files, "document"), "m")
    assert claim(asked(files, "document", iterations=5), "m")["iterations"] == 5


def test_rankings_by_itrg_search_with_the_question_and_the_document(norway, parts: Parts, tmp_path: Path) -> None:
    corpus, questions = norway
    experiment = ranking.Experiment(corpus, questions, questions, loops=("question", "itrg_refresh", "generate"))
    library = Library("Norway", "France")
    parts = replace(parts, llm=Writer(knows_after_a_detour), retriever=library)
    task = ranking.Ranking(experiment, ranking.prepare(experiment), "m")
    run = task.open(tmp_path / "out")
    task.fill(run, Finder(parts.settings, library, lambda: parts, iterations=2), silent)
    assert run.rows["itrg_refresh", "q"]["ranking"] == ["norway", "france"]
    assert run.rows["generate", "q"]["queries"] == [
        {"name": "document", "text": "capital of Norway? The city of Oslo, says France."}
    ]


@pytest.mark.parametrize(
    ("text", "recall"),
    [
        ("The capital is Oslo.", 1),
        ("Osloer say so.", 0),
        ("It was the City, of Oslo", 1),
        ("", 0),
    ],
)
def test_a_document_holds_an_answer_as_whole_words(text: str, recall: int) -> None:
    assert answer_recall(text, ["the Oslo", "city of oslo", "The"]) == recall
    assert answer_recall(text, []) == 0
