from dataclasses import replace
from math import log
from threading import Event

import numpy as np
import pytest

from assistant.errors import ChoiceError, DataError
from assistant.evaluation.answers import Experiment, prepare
from assistant.evaluation.scores import Setting
from assistant.evaluation.uncertainty import UncertaintyTests, at_threshold
from assistant.judges.uncertainty import WAYS, PromptedAnswer, confidences, unknown
from assistant.protocols import Parts, silent
from assistant.settings import Uncertainty
from assistant.types import Completion, Message, Passage, Relevance
from tests.conftest import FixedRetriever, ScriptedLLM
from tests.test_evaluate_answers import CAPITALS, Reader, files, passages  # noqa: F401 - a fixture

PROMPT = (Message("system", "You answer."), Message("user", "Passage: ... Question: ...?"))


def asked(text: str, *probabilities: float) -> PromptedAnswer:
    return PromptedAnswer(PROMPT, Completion(text, logprobs=tuple(map(log, probabilities))))


def knowing(parts: Parts, way: Uncertainty, threshold: float, llm: ScriptedLLM) -> Parts:
    """Parts whose settings tell unknown answers in this way."""
    turn = parts.settings.turn.model_copy(update={"uncertainty": way, "unknown_threshold": threshold})
    return replace(parts, llm=llm, settings=parts.settings.model_copy(update={"turn": turn}))


@pytest.mark.parametrize(
    ("way", "confidence"),
    [("word", 1), ("mean_logprob", 0.5), ("lowest_logprob", 0.25), ("holds", 0.7), ("p_unknown", 0.6)],
)
def test_each_way_gives_a_confidence(way, confidence, parts) -> None:
    llm = ScriptedLLM(choices=[{"yes": 0.7, "no": 0.3} if way == "holds" else {"Lake": 0.6, "unknown": 0.4}])
    found = confidences([asked("Lake Garda", 1.0, 0.25)], way, replace(parts, llm=llm), Event())
    assert found == [pytest.approx(confidence)]


@pytest.mark.parametrize("way", WAYS)
def test_the_word_is_believed_whatever_the_way_and_costs_nothing(way, parts) -> None:
    llm = ScriptedLLM()
    assert confidences([asked("unknown"), asked("")], way, replace(parts, llm=llm), Event()) == [0, 0]
    assert unknown([asked("Unknown. Nothing says it.")], "factoid", knowing(parts, way, 0.0, llm), Event()) == [True]
    assert llm.asked == []


def test_a_copied_title_hides_no_unknown(parts) -> None:
    copied = replace(asked("Norway - Geography: unknown"), passages=(Passage("no", "Norway - Geography", "Fjords."),))
    assert unknown([copied], "factoid", knowing(parts, "word", 0.0, ScriptedLLM()), Event()) == [True]


def test_answers_below_the_threshold_are_unknown(parts) -> None:
    batch = [asked("Oslo", 0.9), asked("unknown"), asked("Bergen", 0.3)]
    doubting = knowing(parts, "mean_logprob", 0.5, ScriptedLLM())
    assert unknown(batch, "factoid", doubting, Event()) == [False, True, True]
    assert unknown(batch, "chat", doubting, Event()) == [False, True, False]
    assert unknown(batch, "factoid", knowing(parts, "word", 0.5, ScriptedLLM()), Event()) == [False, True, False]


def test_a_backend_without_probabilities_is_trusted_by_its_words(parts) -> None:
    assert confidences([asked("Oslo")], "mean_logprob", parts, Event()) == [1]
    assert confidences([asked("Oslo")], "lowest_logprob", parts, Event()) == [1]


def test_the_model_is_asked_on_top_of_what_it_has_read(parts) -> None:
    llm = ScriptedLLM(choices=[{"yes": 0.2, "no": 0.8}, {"yes": 0.9, "no": 0.1}])
    found = confidences([asked("Oslo"), asked("unknown"), asked("Bergen")], "holds", replace(parts, llm=llm), Event())
    assert found == [0.2, 0, 0.9]
    assert llm.asked[0][:3] == (*PROMPT, Message("assistant", "Oslo"))
    assert '"Oslo"' in llm.asked[0][3].content


def test_a_short_answer_is_looked_at_beside_the_passages_that_say_it(parts) -> None:
    lakes = Passage("1", "Lakes", "Boats are for hire. Lake Como is the largest lake. Fish live there.")
    towns = Passage("2", "Towns", "Riva lies on the lake.")
    answer = replace(asked("Lake Como."), passages=(towns, lakes), question="What is the largest lake?")
    llm = ScriptedLLM(choices=[{"yes": 0.2, "no": 0.8}, {"yes": 0.2, "no": 0.8}])
    alone = replace(parts, llm=llm, support=None)
    assert confidences([answer], "addresses", alone, Event()) == [pytest.approx(0.2)]
    told = llm.asked[0][-1].content
    assert "Lake Como is the largest lake." in told
    assert "Boats" not in told
    assert "Riva" not in told
    assert "Question: What is the largest lake?\nReply: Lake Como." in told
    # one that no passage says is looked at beside what is nearest in any
    assert confidences([replace(answer, completion=Completion("Oslo"))], "addresses", alone, Event())
    assert "Lake Como is the largest lake." in llm.asked[1][-1].content


def test_what_a_threshold_does() -> None:
    confidence, right = np.array([0.9, 0.8, 0.4, 0.1]), np.array([True, False, True, False])
    found = at_threshold(confidence, right, 0.5)
    assert found == {
        "threshold": 0.5, "precision": 0.5, "recall": 0.5, "f1": 0.5, "j": 0.0, "unknown": 0.5, "right_of_known": 0.5,
    }  # fmt: skip


def test_ways_are_compared_on_questions(files, parts, tmp_path) -> None:  # noqa: F811
    class Wary(Reader):
        """Makes an answer up for what it was not shown, and admits so when asked."""

        def choose(self, batch, words, stop):
            said = batch[0][-2].content if len(batch[0]) > 2 else ""
            self.choices.append({words[0]: 0.1 if said == "Atlantis" else 0.8, words[1]: 0.2})
            return super().choose(batch, words, stop)

    experiment = Experiment(*files, (), (Setting(2),))
    material = prepare(experiment)
    llm = Wary(knows=dict.fromkeys(CAPITALS, "Atlantis"))
    parts = replace(parts, llm=llm, retriever=FixedRetriever(passages("France", "Peru")))
    task = UncertaintyTests(experiment, material, "scripted")
    run = task.open(tmp_path / "out")
    task.fill(run, parts, silent)
    summary = task.summarise(run.rows)
    assert summary["right"] == 0.5
    assert summary["ways"]["holds"]["auc"]["value"] == 1
    assert summary["ways"]["word"]["auc"]["value"] == 0.5
    best = summary["ways"]["holds"]["best_j"]
    assert (best["j"], best["unknown"], best["right_of_known"]) == (1, 0.5, 1)
    assert 0.1 < best["threshold"] < 0.8


def test_the_passages_of_the_prompt_stay_as_they_are_and_get_their_confidence(files, parts, monkeypatch) -> None:  # noqa: F811
    class Sure:
        name, calibration = "sure", ""

        def estimate(self, question, passages, stop):
            return [Relevance.of_confidence(0.001 if one.id == found[0].id else 0.9) for one in passages]

    def watched(prompted, test, parts, stop):
        seen.append(prompted[0].passages)
        return [1.0]

    found, seen = passages("France", "Peru"), []
    monkeypatch.setattr("assistant.evaluation.uncertainty.confidences", watched)
    experiment = Experiment(*files, (), (Setting(2),), limit=1)
    material = prepare(experiment)
    parts = replace(
        parts,
        llm=ScriptedLLM(["Paris"]),
        retriever=FixedRetriever(found),
        estimator=lambda _: Sure(),
        settings=parts.settings.changed(relevance={"rerank": True, "min_relative_confidence": 0.1}),
    )
    UncertaintyTests(experiment, material, "scripted").row(material.questions[0], parts)
    told = [(one.id, pytest.approx(confidence)) for one, confidence in zip(found, (0.001, 0.9), strict=True)]
    assert [(one.id, one.confidence) for one in seen[0]] == told


def test_all_right_or_all_wrong_tells_nothing(files, parts, tmp_path) -> None:  # noqa: F811
    experiment = Experiment(*files, (), (Setting(2),), limit=1)
    material = prepare(experiment)
    task = UncertaintyTests(experiment, material, "scripted")
    run = task.open(tmp_path / "out")
    parts = replace(parts, llm=ScriptedLLM(["wrong"]), retriever=FixedRetriever(passages("France", "Peru")))
    task.fill(run, parts, silent)
    with pytest.raises(DataError, match="All 1 answers are wrong"):
        task.summarise(run.rows)


def test_an_answer_that_begins_like_unknown_can_not_be_told_from_it(parts) -> None:
    class Alike(ScriptedLLM):
        def choose(self, batch, words, stop):
            raise ChoiceError(f"'{words[0]}' begins like another of them.")

    assert confidences([asked("United Kingdom")], "p_unknown", replace(parts, llm=Alike()), Event()) == [0.5]
