"""An answers run from files to report, with a scripted model that looks at its prompts."""

import json
import re
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from assistant.errors import DataError, SettingsError
from assistant.evaluation.answers import Answers, Experiment, GoldPlacementOption, SettingGrid, prepare
from assistant.evaluation.scores import Setting
from assistant.protocols import Parts
from assistant.types import Passage
from tests.scripted import FixedRetriever, ScriptedLLM
from tests.test_evaluation_data import lines

CAPITALS = {"France": "Paris", "Peru": "Lima", "Norway": "Oslo", "Kenya": "Nairobi"}


@dataclass
class Reader(ScriptedLLM):
    """Finds "The capital of X is Y." in what it is shown; from several passages it doesn't know unless told to."""

    together: bool = True
    knows: dict[str, str] = field(default_factory=dict)
    asked_for: list[str] = field(default_factory=list)

    def _next(self, messages) -> str:
        prompt = messages[-1].content
        country = re.findall(r"capital of (\w+)\?", prompt)[-1]
        self.asked_for.append(country)
        found = re.search(rf"The capital of {country} is (\w+)\.", prompt)
        several = prompt.count("The capital of") > 1
        if found and (self.together or not several):
            return found.group(1)
        return self.knows.get(country, "unknown")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    corpus = lines(
        tmp_path / "corpus.jsonl",
        *({"id": c, "title": c, "contents": f"The capital of {c} is {city}."} for c, city in CAPITALS.items()),
    )
    questions = lines(
        tmp_path / "questions.jsonl",
        *(
            {"id": f"q{c}", "question": f"capital of {c}?", "answers": [city], "gold": [c]}
            for c, city in CAPITALS.items()
        ),
    )
    return corpus, questions


def passages(*countries: str) -> list[Passage]:
    return [Passage(c, c, f"The capital of {c} is {CAPITALS[c]}.") for c in countries]


def ran(experiment: Experiment, parts: Parts, out: Path, jobs: int = 1):
    task = Answers(experiment, prepare(experiment), parts.llm.name)
    run = task.open(out)
    seen: list[tuple[int, int]] = []
    task.fill(run, parts, lambda done, total: seen.append((done, total)), jobs)
    summary = task.summarise(run.rows)
    task.write(run, summary, "evaluate answers")
    return summary, run, seen


def test_strategies_are_compared_on_the_same_questions_and_passages(files, parts, tmp_path) -> None:
    experiment = Experiment(*files, ("concat", "concat_pf"), (Setting(k=2),))
    parts = replace(parts, llm=Reader(together=False), retriever=FixedRetriever(passages("France", "Peru")))
    summary, run, seen = ran(experiment, parts, tmp_path / "out")
    strategies = summary["strategies"]
    assert strategies["concat"]["em"]["value"] == 0
    assert strategies["concat"]["unknown"]["value"] == 1
    assert strategies["concat_pf"]["em"]["value"] == 0.5
    assert strategies["concat_pf"]["unknown"]["value"] == 0.5
    assert summary["differences"]["concat_pf"]["em"]["value"] == 0.5
    assert strategies["concat_pf"]["prompt_tokens"]["value"] > strategies["concat"]["prompt_tokens"]["value"] > 0
    assert set(strategies["concat"]) >= {"em", "f1", "unknown", "nm", "prompt_tokens", "completion_tokens", "seconds"}
    assert seen[0] == (0, 8)
    assert seen[-1] == (8, 8)
    row = run.rows["concat_pf", 2, "none", 1, 0, "qPeru"]
    assert row["pool"] == [
        {"text": "unknown", "passage_id": "France", "votes": 0},
        {"text": "Lima", "passage_id": "Peru", "votes": 1},
    ]
    assert row["passages"] == ["France", "Peru"]
    assert row["gold"] == ["Lima"]
    assert row["gold_found"]
    text = (tmp_path / "out" / "report.md").read_text()
    assert "| concat_pf | 0.500 [" in text
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == summary
    assert (tmp_path / "out" / "em_and_unknown.png").read_bytes().startswith(b"\x89PNG")


def test_what_strategies_ask_in_common_is_asked_once_and_counted_each_time(files, parts, tmp_path) -> None:
    llm = Reader(together=False)
    parts = replace(parts, llm=llm, retriever=FixedRetriever(passages("France", "Peru")))
    settings = (Setting(k=2), Setting(k=2, placement="insert"))
    _, run, _ = ran(Experiment(*files, ("post_fusion", "concat_pf"), settings), parts, tmp_path / "out")
    prompts = [tuple(prompt) for prompt in llm.prompts]
    assert len(prompts) == len(set(prompts))
    after, before = (run.rows[name, 2, "none", 1, 0, "qPeru"] for name in ("concat_pf", "post_fusion"))
    assert after["prompt_tokens"] > before["prompt_tokens"] > 0
    told = replace(Experiment(*files, ("concat",), settings), uncertainty="holds < 0.5")
    with pytest.raises(DataError, match="another uncertainty"):
        Answers(told, prepare(told), "scripted").open(tmp_path / "out")


def test_runs_with_other_settings_of_a_turn_share_replies(files, parts, tmp_path) -> None:
    asked = replace(Experiment(*files, ("concat",), (Setting(k=2),)), replies=tmp_path / "replies.sqlite")
    found = FixedRetriever(passages("France", "Peru"))
    ran(asked, replace(parts, llm=Reader(), retriever=found), tmp_path / "first")
    turn = parts.settings.turn.model_copy(update={"max_answer_tokens": 99})
    settings = parts.settings.model_copy(update={"turn": turn})
    again = Reader()
    ran(asked, replace(parts, settings=settings, llm=again, retriever=found), tmp_path / "second")
    assert again.prompts == []
    llm = settings.llm.model_copy(update={"context": 999})
    other = replace(parts, settings=settings.model_copy(update={"llm": llm}), llm=Reader(), retriever=found)
    with pytest.raises(DataError, match=r"holds replies of default, not of default, llm\.context = 999"):
        ran(asked, other, tmp_path / "third")


def test_a_killed_run_goes_on_and_makes_the_same_rows(files, parts, tmp_path) -> None:
    experiment = Experiment(*files, ("concat",), (Setting(k=2, placement="insert"),))
    parts = replace(parts, llm=Reader(), retriever=FixedRetriever(passages("France", "Peru")))
    _, whole, _ = ran(experiment, parts, tmp_path / "whole")
    ran(experiment, parts, tmp_path / "killed")
    path = tmp_path / "killed" / "rows.jsonl"
    written = path.read_bytes()
    path.write_bytes(written[: written.rindex(b'{"strategy"') + 40])
    (tmp_path / "killed" / "replies.sqlite").unlink()
    again = Reader()
    _, run, _ = ran(experiment, replace(parts, llm=again), tmp_path / "killed")
    assert len(again.asked_for) == 1
    timeless = [{key: row | {"seconds": 0} for key, row in one.rows.items()} for one in (whole, run)]
    assert timeless[0] == timeless[1]
    assert len(path.read_text().splitlines()) == 4


def test_questions_asked_side_by_side_make_the_same_rows_in_the_same_order(files, parts, tmp_path) -> None:
    class Counting(Reader):
        def complete(self, batch, options, stop):
            if threading.current_thread() is not threading.main_thread():
                batches.append(len(batch))
            return super().complete(batch, options, stop)

    experiment = Experiment(*files, ("post_fusion", "concat"), (Setting(k=2, placement="insert"),))
    parts, batches = replace(parts, llm=Counting(), retriever=FixedRetriever(passages("France", "Peru"))), []
    runs = [ran(experiment, parts, tmp_path / str(jobs), jobs)[1] for jobs in (1, 4)]
    assert max(batches) > 2  # the passages of one question
    alone, beside = ([row | {"seconds": 0} for row in run.rows.values()] for run in runs)
    assert alone == beside
    lines = [json.loads(line) | {"seconds": 0} for line in (tmp_path / "4" / "rows.jsonl").read_text().splitlines()]
    assert lines == alone


def test_breaking_off_ends_what_is_asked_beside_and_keeps_what_was_made(files, parts, tmp_path) -> None:
    experiment = Experiment(*files, ("concat",), (Setting(k=2),))
    material = prepare(experiment)
    first = material.questions[0]
    beside, answered, ended = threading.Event(), threading.Event(), []

    class InOrder(FixedRetriever):
        """Lets the second question be begun before the first is answered, and asked only after it."""

        def search(self, query, k):
            if query == first.text:
                beside.wait(20)
            else:
                beside.set()
                answered.wait(20)
            return super().search(query, k)

    class Endless(Reader):
        def complete(self, batch, options, stop):
            if answered.is_set():
                ended.append(stop.wait(20))
            answered.set()
            return super().complete(batch, options, stop)

    def interrupted(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    parts = replace(parts, llm=Endless(), retriever=InOrder(passages("France", "Peru")))
    task = Answers(experiment, material, parts.llm.name)
    with pytest.raises(KeyboardInterrupt):
        task.fill(task.open(tmp_path / "out"), parts, interrupted, jobs=2)
    assert set(ended) == {True}
    rows = [json.loads(line)["id"] for line in (tmp_path / "out" / "rows.jsonl").read_text().splitlines()]
    assert rows == [first.id]


def test_a_run_takes_more_strategies_but_no_other_data(files, parts, tmp_path) -> None:
    parts = replace(parts, llm=Reader(), retriever=FixedRetriever(passages("France", "Peru")))
    one = Experiment(*files, ("concat",), (Setting(k=2),), limit=2)
    ran(one, parts, tmp_path / "out")
    more = replace(one, strategies=("concat", "post_fusion"), limit=3)
    summary, run, _ = ran(more, parts, tmp_path / "out")
    assert summary["questions"] == 3
    assert len(run.rows) == 6
    with pytest.raises(DataError, match="another seed"):
        ran(replace(one, seed=1), parts, tmp_path / "out")
    files[1].write_text(files[1].read_text().replace("Lima", "Cusco"))
    with pytest.raises(DataError, match="another questions"):
        ran(one, parts, tmp_path / "out")


def test_k_gold_and_samples_vary_within_one_run(files, parts, tmp_path) -> None:
    parts = replace(parts, llm=Reader(), retriever=FixedRetriever(passages("France", "Peru", "Norway")))
    experiment = Experiment(
        *files,
        ("concat",),
        SettingGrid((1, 3), (GoldPlacementOption("none"), GoldPlacementOption("first")), (1, 3)).settings,
    )
    summary, run, _ = ran(experiment, parts, tmp_path / "out")
    found = {
        (b["k"], b["placement"], b["samples"]): b["strategies"]["concat"]["em"]["value"] for b in summary["settings"]
    }
    assert found[1, "none", 1] == 0.25
    assert found[3, "none", 1] == found[3, "none", 3] == 0.75
    assert found[1, "first", 1] == found[3, "first", 3] == 1
    assert summary["strategies"] == summary["settings"][0]["strategies"]
    assert run.rows["concat", 3, "first", 1, 0, "qKenya"]["passages"] == ["Kenya", "France", "Peru"]
    assert len(run.rows["concat", 3, "none", 3, 0, "qKenya"]["pool"]) == 3
    text = (tmp_path / "out" / "report.md").read_text()
    assert "em_against_k.png" in text
    assert "em_against_samples.png" in text


def test_what_the_model_knows_without_passages_is_left_out(files, parts, tmp_path) -> None:
    llm = Reader(knows={"Kenya": "Nairobi"})
    parts = replace(parts, llm=llm, retriever=FixedRetriever(passages("France", "Peru")))
    summary, _, _ = ran(Experiment(*files, ("concat",), (Setting(2),), filter_known=True), parts, tmp_path / "out")
    assert summary["questions"] == 3
    assert summary["left_out"] == {"questions that the model answers without passages": 1}
    assert summary["strategies"]["concat"]["em"]["value"] == pytest.approx(2 / 3)


def test_saying_unknown_is_right_for_an_unanswerable_question(files, parts, tmp_path) -> None:
    corpus, questions = files
    with questions.open("a") as file:
        file.write('{"id": "qMoon", "question": "capital of Moon?", "answers": [], "unanswerable": true}\n')
    parts = replace(parts, llm=Reader(), retriever=FixedRetriever(passages("France", "Peru", "Norway")))
    summary, run, _ = ran(Experiment(corpus, questions, ("concat",), (Setting(3),)), parts, tmp_path / "out")
    assert run.rows["concat", 3, "none", 1, 0, "qMoon"]["em"] == 1
    found = summary["strategies"]["concat"]
    # unknown to Kenya, whose passage is missing, and to Moon
    assert found["unknown_precision"]["value"] == 0.5
    assert found["unknown_recall"]["value"] == 1
    assert "unknown_precision" in (tmp_path / "out" / "report.md").read_text()


def test_what_cannot_be_asked_is_counted_and_shown(files, parts, tmp_path) -> None:
    corpus, questions = files
    with questions.open("a") as file:
        file.write('{"id": "x", "question": "capital of X?", "answers": []}\n')
        file.write('{"id": "y", "question": "capital of Y?", "answers": ["y"], "gold": ["lost"]}\n')
    parts = replace(parts, llm=Reader(), retriever=FixedRetriever(passages("France", "Peru")))
    experiment = Experiment(corpus, questions, ("concat",), (Setting(2, "insert"),))
    summary, _, _ = ran(experiment, parts, tmp_path / "out")
    assert summary["left_out"] == {
        "questions without accepted answers": 1,
        "questions with gold passages that the corpus lacks": 1,
    }
    assert "| questions without accepted answers | 1 |" in (tmp_path / "out" / "report.md").read_text()


def test_a_model_that_writes_nothing_is_counted_as_empty_and_unknown(files, parts, tmp_path) -> None:
    parts = replace(parts, llm=ScriptedLLM([""] * 4), retriever=FixedRetriever(passages("France", "Peru")))
    summary, _, _ = ran(Experiment(*files, ("concat",), (Setting(2),)), parts, tmp_path / "out")
    assert summary["strategies"]["concat"]["empty"] == 4
    assert summary["strategies"]["concat"]["unknown"]["value"] == 1
    assert "| empty |" in (tmp_path / "out" / "report.md").read_text()


def test_an_experiment_that_makes_no_sense_is_refused_before_anything_is_loaded(files, tmp_path) -> None:
    corpus, questions = files
    with pytest.raises(SettingsError, match="'best' is not one of the strategies"):
        prepare(Experiment(corpus, questions, ("best",)))
    with pytest.raises(SettingsError, match="not one of the loops"):
        prepare(Experiment(corpus, questions, ("concat",), (Setting(2),), loop="nope"))
    with pytest.raises(DataError, match=r"k is 5, but .* has only 4 passages"):
        prepare(Experiment(corpus, questions, ("concat",)))
    other = lines(tmp_path / "other.jsonl", *({"id": f"o{n}", "contents": "x"} for n in range(5)))
    with pytest.raises(DataError, match="no passage of the corpus as gold"):
        prepare(Experiment(other, questions, ("concat",), (Setting(2, "first"),)))
    empty = lines(tmp_path / "e.jsonl", {"id": "1", "question": "?", "answers": []})
    with pytest.raises(DataError, match="None of the 1 questions"):
        prepare(Experiment(corpus, empty, ("concat",), (Setting(2),)))


def test_a_broken_row_in_the_middle_is_named(files, parts, tmp_path) -> None:
    experiment = Experiment(*files, ("concat",), (Setting(2),))
    parts = replace(parts, llm=Reader(), retriever=FixedRetriever(passages("France", "Peru")))
    ran(experiment, parts, tmp_path / "out")
    path = tmp_path / "out" / "rows.jsonl"
    path.write_text("{broken\n" + path.read_text())
    with pytest.raises(DataError, match=r"rows.jsonl, line 1, is broken"):
        ran(experiment, parts, tmp_path / "out")
