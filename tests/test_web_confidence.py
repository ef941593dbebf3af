"""What the page says of relevance: in words, in numbers, and where an answer was not made from passages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Event

import pytest

from assistant import turn as flow
from assistant.errors import SettingsError
from assistant.protocols import Estimator, Parts
from assistant.steps.closed_book import unbacked
from assistant.store.conversations import Conversation
from assistant.types import Answer, Choices, Citation, Confidence, Passage, Relevance, Status, Turn, now
from assistant.web import render
from assistant.web.chat import picked
from assistant.web.confidence import about_passage, about_set, number, verdict
from assistant.web.tab import Tab
from assistant.wording.views import events, headline, unsourced_kind

CALIBRATED = "platt, on 2,000 passages of NQ"


def judged(value: float, calibration: str = CALIBRATED, **more: object) -> Turn:
    found = Confidence(value, 0.5, "cross-encoder:small", calibration)
    passage = Passage("p", "Lentils", "Lentils hold protein.", confidence=value)
    return Turn("?", id="t", status="done", passages=(passage,), confidence=found, answer=Answer("A."), **more)


def shown(turn: Turn) -> str:
    return render.transcript(Conversation("i", "", now(), now(), (turn,)), ())


@pytest.mark.parametrize(
    ("value", "words"), [(0.75, "Well supported"), (0.74, "Weakly supported"), (0.49, "Not in the library")]
)
def test_the_set_is_told_in_words(value: float, words: str) -> None:
    assert verdict(judged(value)) == words
    html = shown(judged(value))
    assert f"<span>{words}</span>" in html
    assert f'<span class="figure">{value}</span>' in html


def test_a_reply_without_an_answer_is_not_called_supported() -> None:
    lost = replace(judged(0.9), answer=Answer("Not held.", unknown=True, origin="pool"))
    assert verdict(lost) == "Relevant passages, but no answer"
    assert verdict(replace(lost, confidence=Confidence(0.1, 0.5, "e"))) == "Not in the library"


def test_a_reply_whose_sentences_were_found_is_in_the_library_whatever_was_expected() -> None:
    cited = judged(0.1, citations=(Citation(1, "p", 0, 21, "A.", "Lentils hold protein.", 0.9),))
    assert verdict(cited) == "Weakly supported"
    assert "found in the passages all the same" in " ".join(about_set(cited))
    assert verdict(replace(cited, citations=())) == "Not in the library"


@pytest.mark.parametrize(
    ("value", "words"), [(0.75, "Relevant passages"), (0.74, "Hardly relevant passages"), (0.49, "Not in the library")]
)
@pytest.mark.parametrize("status", ["running", "stopped", "failed"])
def test_a_reply_that_was_not_checked_is_not_called_supported(status: Status, value: float, words: str) -> None:
    unchecked = replace(judged(value), status=status)
    assert verdict(unchecked) == words
    cited = replace(unchecked, citations=(Citation(1, "p", 0, 21, "A.", "Lentils hold protein.", 0.9),))
    assert verdict(cited) == verdict(replace(cited, status="done"))


def test_turns_that_nobody_judged_look_as_before() -> None:
    turn = replace(judged(0.9), confidence=None, passages=(Passage("p", "Lentils", "Lentils."),))
    assert verdict(turn) == ""
    assert list(about_set(turn)) == []
    assert "tooltip" not in shown(turn) + render.render("sources", turn=turn)


def test_no_number_is_certain() -> None:
    assert [number(value) for value in (0.0003, 0.01, 0.5, 0.99, 0.9999)] == [
        "under 0.01", "0.01", "0.50", "0.99", "over 0.99",
    ]  # fmt: skip


def test_it_is_explained_and_said_whether_it_was_calibrated() -> None:
    text = " ".join(about_set(judged(0.8)))
    assert "0.80, between 0 (surely not) and 1 (surely)" in text
    assert "From 0.75" in text
    assert "under 0.5 the" in text
    assert "a small model trained" in text
    assert f"Calibrated ({CALIBRATED})" in text
    assert "Not calibrated" in " ".join(about_set(judged(0.8, "")))
    single = list(about_passage(0.8, Confidence(0.9, 0.5, "llm:qwen")))
    assert "this passage answers the question: 0.80" in single[0]
    assert "the language model" in single[1]
    assert "(odd)" in list(about_passage(0.8, Confidence(0.9, 0.5, "odd")))[1]


def test_each_source_has_its_bar_and_its_words() -> None:
    html = render.render("sources", turn=judged(0.42))
    assert '<i style="width: 42%"></i>' in html
    assert 'class="tip sure low"' in html
    assert 'aria-describedby="sure-t-0"' in html
    assert 'role="tooltip" id="sure-t-0"' in html


# --- where no passage answers ------------------------------------------------------------------------------------


@dataclass
class Unsure:
    """Finds nothing relevant."""

    name: str = "cosine:words"
    calibration: str = ""

    def estimate(self, _question: str, passages: object, _stop: Event) -> list[Relevance]:
        return [Relevance.of_confidence(0.001) for _ in passages]


def asked(parts: Parts, below: str) -> Turn:
    estimator: Estimator = Unsure()
    choices = Choices("concat", "retrieve_then_generate", k=2, below=below)
    parts = replace(parts, estimator=lambda _: estimator)
    parts.llm.replies[:] = ["Oat drink holds no lactose."]
    *_, turn = flow.run(Turn("Which drink holds no lactose?", choices=choices), parts, Event())
    return turn


@pytest.mark.parametrize(
    ("below", "kind"), [("refuse", "refused"), ("own", "own"), ("ask", "asked"), ("answer", ""), ("", "own")]
)
def test_what_a_user_chose_happens_and_is_labelled(parts: Parts, below: str, kind: str) -> None:
    turn = asked(parts, below)
    assert unsourced_kind(turn) == kind
    assert events(turn) == []  # the confidence tells it
    assert headline(turn).startswith("Looked at 2 passages" if kind else "Read 2 passages")
    html = shown(turn)
    assert ("Not in the library" in html) == (not turn.citations)
    assert ('data-below="answer"' in html) == bool(kind)
    assert ("Show what was found" in html) == bool(kind)
    assert ('data-below="own"' in html) == (kind in {"refused", "asked"})
    assert ("unbacked" in html) == ("Model's own knowledge" in html) == (kind == "own")
    assert bool(turn.citations) == (not kind)
    assert ('class="chip"' in html) == (not kind)
    closed, opened = (render.render("sources", turn=turn, opened=opened) for opened in (False, True))
    assert (
        ("not used" in closed)
        == ('<details class="found"' in closed)
        == ("doesn't seem to answer" in closed)
        == bool(kind)
    )
    assert (" open>" in opened) == bool(kind)
    assert " open>" not in closed


def test_what_was_read_and_gave_no_answer_is_folded_and_labelled_as_well() -> None:
    turn = replace(judged(0.9), answer=unbacked("A."))
    assert (verdict(turn), unsourced_kind(turn)) == ("Relevant passages, but no answer", "own")
    html, panel = shown(turn), render.render("sources", turn=turn)
    assert "Model's own knowledge" in html.replace("&#39;", "'")
    assert 'data-below="answer"' not in html  # they were answered from
    assert "read, not cited" in panel
    assert "<details" in panel


def test_another_answer_can_bepicked_and_nothing_else() -> None:
    usual = Choices(strategy="concat", below="ask")
    assert picked(Tab("me", data={"below": "own"}), usual) == replace(usual, below="own")
    assert picked(Tab("me", data={"strategy": "summary"}), usual) == replace(usual, strategy="summary")
    assert picked(Tab("me"), usual) == usual
    with pytest.raises(SettingsError, match="reload the page"):
        picked(Tab("me", data={"below": "guess"}), usual)
