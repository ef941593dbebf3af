"""Passages cut at citations, and templates: what they show, and that all text in them is escaped."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from types import SimpleNamespace as Made

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.library.excerpts import Excerpt, Paragraph
from assistant.library.finding import SearchHit
from assistant.library.watched import Happening
from assistant.parts import LoadingStage
from assistant.runs import END, Place, Run
from assistant.store.conversations import Conversation, MessageLink
from assistant.store.tokens import AccessToken
from assistant.store.usage import UserUsage
from assistant.types import (
    Answer,
    Candidate,
    Choices,
    Citation,
    Confidence,
    DroppedPassage,
    Fact,
    FactOffer,
    Iteration,
    Passage,
    RankedFact,
    Sentence,
    Span,
    Tokens,
    Turn,
    TurnEvent,
    Work,
    now,
)
from assistant.web import render
from assistant.web.collected import DocumentUse
from assistant.web.highlight import pieces, sources
from assistant.web.library import Document
from assistant.web.original import OpenedDocument
from assistant.web.searching import Results, SearchRequest
from assistant.web.sources import ShownPassage


def fact(text: str, name: str = "f") -> Fact:
    return Fact(name, text, now(), now())


def shown(*turns: Turn, facts: Sequence[Fact] = (), **more: object) -> str:
    """The HTML of a conversation with these turns."""
    return render.transcript(Conversation("i", EVIL, now(), now(), turns, **more), facts)


EVIL = '<img src=x onerror="x">${x}{{x}}'


def at(start: int, end: int, passage: str = "p", n: int = 1) -> Citation:
    return Citation(n, passage, start, end, "S", "Q", 1.0)


def test_a_passage_is_cut_where_its_citations_begin_and_end() -> None:
    found = list(pieces("abcdefghij", {0: at(2, 5), 3: at(4, 8)}))
    assert [(piece.text, piece.cites) for piece in found] == [
        ("ab", ()), ("cd", (0,)), ("e", (0, 3)), ("fgh", (3,)), ("ij", ()),
    ]  # fmt: skip


@given(st.text(), st.lists(st.tuples(st.integers(-5, 50), st.integers(-5, 50)), max_size=5))
def test_no_character_of_a_passage_is_lost(text: str, spans: list[tuple[int, int]]) -> None:
    cited = {n: at(start, end) for n, (start, end) in enumerate(spans)}
    assert "".join(piece.text for piece in pieces(text, cited)) == text


def test_cited_passages_come_first_by_number_then_the_others_as_ranked() -> None:
    passages = tuple(Passage(name, name, "text") for name in "abcd")
    turn = Turn("?", passages=passages, citations=(at(0, 1, "c", 1), at(0, 1, "a", 2), at(1, 2, "c", 1)))
    assert [(source.n, source.passage.id) for source in sources(turn)] == [(1, "c"), (2, "a"), (0, "b"), (0, "d")]


def evil_turn() -> Turn:
    return Turn(
        EVIL,
        known=(Fact("f", EVIL, now(), now()),),
        question=EVIL,
        rewritten=True,
        facts=(RankedFact("f", EVIL, 0.5, used=True, shows=True), RankedFact("g", EVIL, 0.5, True, True)),
        draft=EVIL,
        iterations=(Iteration(EVIL, (Passage("p", EVIL, EVIL),), EVIL), Iteration(EVIL, (Passage("q", EVIL, EVIL),))),
        passages=(Passage("p", EVIL, EVIL, 1.0, (EVIL,), EVIL, 0.4),),
        confidence=Confidence(0.4, 0.5, EVIL, EVIL),
        dropped=(DroppedPassage(Passage("d", EVIL, EVIL), EVIL, 0.9),),
        answer=Answer(EVIL, unknown=True),
        sentences=(Sentence(EVIL, state="not"),),
        citations=(Citation(1, "p", 0, 5, EVIL, EVIL, 1.0),),
        own_answer=EVIL,
        pool=(Candidate(EVIL, "p", 2),),
        offers=(FactOffer(EVIL), FactOffer(EVIL, "f")),
        events=(TurnEvent("other", EVIL),),
        cuts=(EVIL,),
        error=EVIL,
        timings={EVIL: 1.0},
        model=EVIL,
        status="done",
    )


def models_and_offer() -> list[str]:
    """The two templates on models, each with everything that comes from elsewhere being evil."""
    known = Made(id=EVIL, title=EVIL, about=EVIL, is_served=True)
    entry = Made(name=EVIL, size=1, commercial=False, terms=EVIL)
    servers = Made(
        problem=EVIL,
        cards=[Made(known=known, absence=EVIL, was_added=True)],
        found=[Made(address=EVIL, kind=EVIL, models=[EVIL])],
    )
    models = render.render(
        "models",
        mark=EVIL,
        running=Made(name=EVIL, known=known, speed=Made(replies=0)),
        engine=EVIL,
        notice=EVIL,
        judges=EVIL,
        change=Made(is_going_on=False, known=known, error=EVIL),
        fetching=Made(under_way=True, name=EVIL, fraction=None),
        cards=[Made(known=known, entry=entry, is_here=False, rating=None)],
        around=Made(looked=True, probed=Made(abilities=None, reason=EVIL, models=[EVIL, EVIL])),
        absence=EVIL,
        servers=servers,
        may=True,
    )
    offer = Made(entry=entry, seconds=3.0)
    return [models, render.render("offer", mark=EVIL, fetching=None, loading=None, offer=offer)]


def viewer(turn: Turn, **values: object) -> str:
    opened = OpenedDocument(document=EVIL, **values)
    return render.render("viewer", shown=ShownPassage(turn, turn.passages[0], EVIL), opened=opened, nonce="n")


def searched(passage: Passage | None) -> str:
    """The page of search, with a hit or with a problem."""
    results = Results([SearchHit(passage, (Span(0, 4),))], 0, True) if passage else None
    return render.render(
        "searching",
        style="",
        asked=SearchRequest(EVIL, EVIL, 2),
        places={EVIL: EVIL},
        results=results,
        problem="" if passage else EVIL,
        changing=(EVIL,),
        last=9,
        most=90,
    )


def test_no_template_lets_html_through() -> None:
    turn = evil_turn()
    compared = Run(iter([turn]), Event(), Place(turn.id, (EVIL, EVIL)))
    summary = {"id": "i", "title": EVIL, "changed": now()}
    rendered = [
        shown(turn, feedback={turn.id: 1}, compared={turn.id: (turn, turn)}),
        render.answering("i", turn),
        render.running("i", compared),
        render.notice(EVIL),
        render.render("sources", turn=turn),
        render.render(
            "facts",
            facts=[fact(EVIL), fact(EVIL, "g")],
            relevance={"f": turn.facts[0]},
            told={"typed": MessageLink("c", "t", EVIL)},
            used={"f": MessageLink("c", "t", EVIL)},
            outdated={"g": fact(EVIL)},
        ),
        *(shown(replace(turn, asks=asks, listed=turn.known), facts=turn.known) for asks in ("recall", "forget", "why")),
        shown(turn, facts=[replace(fact(EVIL), source=turn.id)]),
        render.render("conversations", items=[summary], current="i", search=EVIL, temporary=True),
        render.render("conversations", items=[], current="", search=EVIL, temporary=False),
        render.render(
            "documents",
            mark=EVIL,
            documents=[Document(EVIL, EVIL, 1)],
            problems=[EVIL],
            reading=(EVIL,),
            share=0.5,
            followed=Made(folder=EVIL, happenings=lambda: [Happening(now().isoformat(), EVIL, EVIL, EVIL)]),
        ),
        render.render(
            "collected",
            documents=[Document(EVIL, EVIL, 1)],
            names={EVIL: EVIL},
            collections={EVIL: [EVIL]},
            found=[],
            used=[DocumentUse(EVIL, EVIL, (EVIL,))],
            document=EVIL,
        ),
        render.render(
            "whole",
            documents=[Document(EVIL, EVIL, 1)],
            work=Work("table", (EVIL,), (EVIL,), (EVIL,)),
            cost=EVIL,
            kept=False,
        ),
        render.render("usage", used=[UserUsage(EVIL, 1, 2, 3, 60.0, "2026-01-01")], days=30),
        render.render("tokens", tokens=[AccessToken(EVIL, EVIL, "2026-01-01T00:00:00+00:00", "")], fresh=EVIL),
        render.render("account", word=EVIL, gone=False, login=True, shortest=12, last=EVIL, before=EVIL, renewed=True),
        render.render("strength", score=1, text=EVIL),
        viewer(turn, problem=EVIL),
        viewer(turn, text=Excerpt((Paragraph(((0, EVIL),), EVIL, ((EVIL, True), (EVIL, False))),), True, True, 1.0)),
        render.render(
            "passage",
            style="",
            passage=turn.passages[0],
            opened=OpenedDocument(problem=EVIL),
            gone="",
            asked=SearchRequest(EVIL),
        ),
        searched(turn.passages[0]),
        searched(None),
        render.render("exported", conversation=Conversation("i", EVIL, now(), now(), (turn,)), address=lambda _: EVIL),
        *models_and_offer(),
        render.render("composer", draft=EVIL, nonce="n"),
        render.render("download", name=EVIL, text=EVIL, nonce="n"),
        render.render("header", user=EVIL),
        render.render("loading", ready=False, error=EVIL, stages=[]),
        render.render("loading", ready=False, error="", stages=[LoadingStage(EVIL)]),
        render.render("welcome", examples=[EVIL], temporary=True),
    ]
    for html in rendered:
        assert "onerror" in html
        assert "<img" not in html
        assert 'onerror="' not in html


def test_every_template_is_rendered_here_or_is_part_of_one() -> None:
    parts = {"turn", "steps", "icons", "bars", "comparison", "confidence", "apart", "leaf"}
    rendered = {
        "transcript", "answering", "comparing", "notice", "sources", "facts", "conversations", "documents", "composer",
        "download", "header", "loading", "welcome", "tokens", "account", "viewer", "models", "offer",
        "collected", "whole", "usage", "exported", "searching", "passage", "strength",
    }  # fmt: skip
    assert {file.name.removesuffix(".html.j2") for file in Path(render.FOLDER).iterdir()} == parts | rendered


def test_a_missing_variable_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="draft"):
        render.render("composer", nonce="n")


def test_an_offer_taken_up_is_shown_as_such() -> None:
    turn = Turn("I'm vegan", status="done", offers=(FactOffer("I'm vegan."),), answer=Answer("Ok"))
    assert "Remember “I&#39;m vegan.”?" in shown(turn)
    assert "Remembered: “I&#39;m vegan.”" in shown(turn, facts=[fact("I'm vegan.")])


def test_a_reply_names_the_facts_it_depends_on_and_says_what_became_of_them() -> None:
    reasons = (RankedFact("f", "I'm vegetarian.", 0.5, True, True), RankedFact("g", "I run.", 0.4, True, False))
    turn = Turn("?", status="done", answer=Answer("Beans."), facts=reasons)
    same = shown(turn, facts=[fact("I'm vegetarian")])
    assert 'data-fix="f"' in same
    assert "wrong? fix it" in same
    assert 'data-fix="g"' not in same
    assert "Answer again with what is right now" not in same
    changed = shown(turn, facts=[fact("I'm vegan.")])
    assert '<s dir="auto">“I&#39;m vegetarian.”</s> now' in changed
    off = shown(turn, facts=[replace(fact("I'm vegetarian."), on=False)])
    for html, what in ((changed, "“I&#39;m vegan.”"), (off, "(switched off)"), (shown(turn), "(no longer among your")):
        assert what in html
        assert html.count("Answer again with what is right now") == 1


def test_a_replacement_names_both_facts_and_a_forgotten_one_is_no_replacement() -> None:
    old = fact("I'm vegetarian.")
    turn = Turn("?", status="done", known=(old,), offers=(FactOffer("I'm vegan.", "f"), FactOffer("I run.", "gone")))
    for html in (shown(turn, facts=[old]), render.answering("i", turn)):
        assert "Replace “I&#39;m vegetarian.” with “I&#39;m vegan.”?" in html
        assert "Remember “I run.”?" in html
    assert "Remember “I&#39;m vegan.”?" in shown(turn, facts=[fact("I'm a pescatarian.")])


def test_iterations_are_a_timeline_that_says_what_is_new() -> None:
    one, two = Passage("p", "Ada", "x"), Passage("q", "Anne", "y")
    rounds = (Iteration("who", (one,), "Ada."), Iteration("who Ada.", (one, two), "Anne."))
    turn = Turn("who", status="done", iterations=(*rounds, Iteration("who Anne.", (one, two), "Anne.")))
    html = " ".join(shown(turn).split())
    assert html.count('<p class="dim">Searched for</p>') == 3
    assert "who Ada.</p>" in html
    assert '<span dir="auto">Anne</span><span class="figure">new</span>' in html
    assert html.count(">new<") == 1
    assert '<blockquote dir="auto">Anne.</blockquote>' in html
    assert html.count("Nothing new was written") == 1
    assert "Searched and written, round by round" not in shown(Turn("who"))


def test_what_a_round_finds_after_one_that_found_nothing_is_new() -> None:
    turn = Turn("who", status="done", iterations=(Iteration("who", ()), Iteration("who", (Passage("p", "Ada", "x"),))))
    assert shown(turn).count(">new<") == 1


def test_while_a_round_runs_the_text_of_the_one_before_is_not_shown_as_its_own() -> None:
    rounds = (Iteration("who", (), "Ada."), Iteration("who Ada.", (), "Ada."))
    html = shown(Turn("who", iterations=rounds))
    assert html.count('<blockquote dir="auto">Ada.</blockquote>') == 1
    assert "Nothing new was written" not in html


def test_any_reply_can_be_answered_again_but_only_the_last_be_undone() -> None:
    html = shown(Turn("a", status="done"), Turn("b", status="done"), Turn("Hi", status="done", intent="small_talk"))
    assert html.count('data-event="undo"') == 1
    assert html.count('aria-label="Answer again"') == 3
    assert html.count('details class="pop way') == html.count('data-event="compare"') == 2


def test_work_on_whole_documents_is_done_again_in_no_other_way() -> None:
    html = shown(Turn("Summarise", status="done", work=Work("summary", ("d",), ("oats.pdf",))))
    assert 'aria-label="Answer again"' in html
    assert 'data-event="compare"' not in html
    assert "data-strategy" not in html


def test_a_reply_with_versions_says_which_it_is() -> None:
    html = shown(Turn("a", id="two", status="done"), versions={"two": ("one", "two", "three")})
    assert '<span class="figure">2/3</span>' in html
    assert re.findall(r'data-event="choose" data-turn="(\w*)"', html) == ["one", "three"]
    assert "disabled" not in html
    last = shown(Turn("a", id="two", status="done"), versions={"two": ("one", "two")})
    assert re.search(r'aria-label="Later version" disabled', last)


def test_what_is_written_again_leaves_its_place_open_wherever_it_stands() -> None:
    turns = tuple(Turn(name, id=name, status="done") for name in ("one", "two"))
    talk = Conversation("i", "", now(), now(), turns, versions={"two": ("old", "two")})
    html = render.transcript(talk, (), Place("old"))
    assert 'id="place-old" data-place' in html
    assert 'id="turn-one"' in html
    assert 'id="turn-two"' not in html
    compared = render.transcript(talk, (), Place("old", ("concat", "post_fusion")))
    assert 'id="turn-two"' in compared
    assert "Versions of this reply" not in compared


def test_only_the_last_message_can_be_taken_back_and_only_while_nothing_is_written() -> None:
    talk = Conversation("i", "", now(), now(), tuple(Turn(name, id=name, status="done") for name in ("one", "two")))
    assert re.findall(r'data-event="undo" data-turn="(\w+)"', render.transcript(talk, ())) == ["two"]
    assert 'data-event="undo"' not in render.transcript(talk, (), END)


def test_what_is_compared_shows_answers_sources_votes_and_costs() -> None:
    passages = (Passage("p", "Lentils", "Lentils hold protein."), Passage("q", "Tofu", "Tofu."))
    one = Turn("?", id="one", status="done", choices=Choices("concat"), answer=Answer("A. [1]"), passages=passages)
    one = replace(one, citations=(at(0, 7),), timings={"answer": 2.5}, spent={"answer": Tokens(1200, 30)})
    pool = (Candidate("B.", "p", 2, group=0), Candidate("B!", "q", 2, group=0))
    other = replace(one, id="other", choices=Choices("post_fusion"), pool=pool, citations=(), answer=Answer("B."))
    html = " ".join(shown(Turn("?", id="t", status="done"), compared={"t": (one, other)}).split())
    assert html.count('class="solid keep"') == 2
    assert html.index("All together") < html.index("One by one, by vote")
    assert '<span class="number">1</span><span dir="auto">Lentils</span>' in html
    assert html.count("<dd>2.5 s</dd>") == html.count("<dd>1,200</dd>") == 2
    assert html.count('<div class="ballots">') == 1
    assert '<li dir="auto">Tofu: “B!”</li>' in html
    alone = shown(Turn("?", id="t", status="done"), compared={"t": (replace(one, answer=None, error="No memory."),)})
    assert "stopped before there was a second reply" in alone
    assert "No memory." in alone
    assert "solid keep" not in alone


def test_days_and_percents() -> None:
    assert render.day(now()) == "Today"
    assert render.day(now() - timedelta(days=1)) == "Yesterday"
    assert render.day(now().replace(year=2020, month=3, day=7, hour=12)) == "7 Mar 2020"
    assert [render.percent(share) for share in (-0.2, 0.456, 3)] == [0, 46, 100]


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone can't be changed on Windows")
def test_days_are_those_of_the_clock_on_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "now", lambda: datetime(2026, 1, 2, 1, tzinfo=UTC))
    with monkeypatch.context() as there:
        there.setenv("TZ", "EST5")
        time.tzset()
        days = [render.day(datetime(2026, 1, 1, hour, tzinfo=UTC)) for hour in (22, 3)]
        old = render.day(datetime(2020, 3, 8, 1, tzinfo=UTC))
    time.tzset()
    assert [*days, old] == ["Today", "Yesterday", "7 Mar 2020"]
