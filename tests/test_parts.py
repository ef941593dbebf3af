"""The loader makes what the settings name, and hands out the retriever that a turn chose."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest
from mcp import Client

from assistant import turn as flow
from assistant.api.answers import Answers
from assistant.api.mcp import server
from assistant.api.replies import MODEL
from assistant.chat import Chat
from assistant.errors import ModelError
from assistant.library.shelves import own_library
from assistant.parts import Loader
from assistant.settings import RelevanceSettings, RetrieverName, Settings, TurnSettings
from assistant.types import Choices, Passage, Relevance, Turn
from assistant.web.server import serve
from tests.browser.fake import Loaded, Script, house
from tests.scripted import WORDS, ScriptedLLM, library_of
from tests.test_turn_queue import until

CHOSEN = Choices(library="docs")


@pytest.fixture
def load(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Loader]:
    """A loader over a small library and the doubles of the models, that has been started."""
    monkeypatch.setattr("assistant.parts.load_embedder", lambda *_: WORDS)
    monkeypatch.setattr("assistant.llm.load.load_or_fall_back", lambda *_: ScriptedLLM())
    monkeypatch.setattr("assistant.library.starter.ensure_starter", lambda *_: Path())
    # the first search imports torch and faiss, which takes a busy machine longer than a person would wait
    monkeypatch.setattr("assistant.parts.PATIENCE", 120.0)
    library_of(settings, "docs", [Passage("cat", "Cats", "The cat sleeps."), Passage("dog", "Dogs", "The dog barks.")])

    def loaded(retriever: RetrieverName = "bm25", encoder: str = "", encode_up_to: int = 50_000) -> Loader:
        chosen = {"retriever": retriever, "encoder": encoder, "encode_up_to": encode_up_to}
        knobs = settings.retrieve.model_copy(update=chosen)
        loader = Loader(settings.model_copy(update={"library": "docs", "retrieve": knobs}))
        loader.start()
        return loader

    return loaded


def found(loader: Loader, retriever: RetrieverName, query: str, user: str = "me") -> list[Passage]:
    return loader.parts(user, replace(CHOSEN, retriever=retriever)).retriever.search(query, 3)


@pytest.mark.lucene
def test_each_retriever_can_be_chosen_for_a_turn(load: Callable[..., Loader]) -> None:
    loader = load()
    loader.wait()
    assert "Search by meaning" not in [stage.name for stage in loader.stages()]
    assert found(loader, "bm25", "barks")[0].found_by == ()
    assert 0 < found(loader, "dense", "the dog barks")[0].score <= 1.001
    assert found(loader, "hybrid", "the dog barks")[0].found_by == ("bm25", "dense")


@pytest.mark.lucene
def test_a_large_library_is_searched_by_words_until_search_by_meaning_is_chosen(load: Callable[..., Loader]) -> None:
    loader = load("hybrid", encode_up_to=1)
    loader.wait()
    assert found(loader, "hybrid", "the dog barks")[0].found_by == ()
    assert not (loader.settings.data_dir / "dense").exists()
    found(loader, "dense", "the dog barks")
    assert found(loader, "hybrid", "the dog barks")[0].found_by == ("bm25", "dense")


@pytest.mark.lucene
def test_own_documents_are_encoded_when_they_change(load: Callable[..., Loader], settings: Settings) -> None:
    loader = load()
    loader.wait()
    for text in ("the parrot talks", "the parrot sings"):
        library_of(settings, own_library("ann"), [Passage("mine", "", text)])
        assert found(loader, "dense", text, "ann")[0].text == text
    assert "mine" not in [one.id for one in found(loader, "dense", "the parrot sings", "bob")]


@pytest.mark.lucene
@pytest.mark.parametrize("retriever", ["bm25", "dense", "hybrid"])
def test_own_documents_are_ranked_alone_as_well_so_that_a_library_does_not_hide_them(
    load: Callable[..., Loader], settings: Settings, retriever: RetrieverName
) -> None:
    loader = load()
    loader.wait()
    library_of(settings, "docs", [Passage(f"dog {n}", "", f"The dog barks {n}.") for n in range(9)])
    library_of(settings, own_library("ann"), [Passage("mine", "", "My parrot barks.")])
    assert [one.own for one in found(loader, retriever, "the dog barks", "ann")] == [False, True, False]


@pytest.mark.lucene
def test_an_own_passage_is_found_by_one_of_its_sentences(load: Callable[..., Loader], settings: Settings) -> None:
    loader = load()
    loader.wait()
    told = [Passage("whole", "", "The parrot talks. Rent is due early. Bins go out late. Keys are kept downstairs.")]
    told += [Passage(f"other {n}", "", f"The parrot sings song {n} loudly.") for n in range(3)]
    library_of(settings, own_library("ann"), told)
    assert found(loader, "dense", "the parrot talks", "ann")[0].id == "whole"


@pytest.mark.lucene
@pytest.mark.parametrize("retriever", ["bm25", "dense", "hybrid"])
def test_own_documents_are_told_from_the_library(
    load: Callable[..., Loader], settings: Settings, retriever: RetrieverName
) -> None:
    loader = load()
    loader.wait()
    library_of(settings, own_library("ann"), [Passage("mine", "Cats", "The cat eats.")])
    own = {one.id: one.own for one in found(loader, retriever, "the cat eats or sleeps", "ann")}
    assert (own["mine"], own["cat"]) == (True, False)
    assert not any(one.own for one in found(loader, retriever, "the cat eats or sleeps", "bob"))


@pytest.mark.lucene
@pytest.mark.usefixtures("load")
def test_that_a_smaller_judge_stands_in_is_told_once_all_is_loaded(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> Path:
        raise ModelError("There is no network.")

    monkeypatch.setattr("assistant.judges.support.large.encoder", refused)
    loader = Loader(settings.model_copy(update={"library": "docs", "turn": TurnSettings(support="large")}))
    loader.start()
    loader.wait()
    assert loader.ready
    assert loader.judges.endswith("stand in for the larger ones, of support. There is no network.")


class Noting:
    """A relevance estimator that notes what it is asked."""

    name, calibration = "noting", ""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        self.asked.append(question)
        return [Relevance.of_confidence(0.9) for _ in passages]


@pytest.mark.lucene
@pytest.mark.usefixtures("load")
def test_who_waits_for_the_model_sees_sources_and_no_judge_reads_for_them_yet(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimator, says = Noting(), ScriptedLLM(["The dog barks."] * 20)
    monkeypatch.setattr("assistant.judges.load.relevance", lambda *_: lambda _: estimator)
    monkeypatch.setattr("assistant.llm.load.load_or_fall_back", lambda *_: says)
    judged = RelevanceSettings(estimator="cross_encoder")
    loader = Loader(settings.model_copy(update={"library": "docs", "relevance": judged}))
    loader.start()
    loader.wait()
    line, stop, rest = loader.models.line, Event(), list[Turn]()
    for n in range(settings.llm.slots):
        assert line.enter(f"other {n}", stop)
    with loader.lent("ann", CHOSEN) as parts:
        turns = flow.run(Turn("Why does the dog bark?", choices=CHOSEN), parts, stop)
        assert any(turn.passages for turn in turns)
        thread = Thread(target=lambda: rest.extend(turns), daemon=True)
        thread.start()
        until(lambda: line.ahead(stop) == 0)
        assert estimator.asked == []
        line.leave("other 0")
        thread.join(30)
    assert estimator.asked
    assert rest[-1].status == "done"


@pytest.fixture
def parrots(load: Callable[..., Loader], settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Loader:
    """Everything loaded over a library, and a document of Ann's that says something else."""
    says = ScriptedLLM(["The parrot of Ann talks."] * 20)
    monkeypatch.setattr("assistant.llm.load.load_or_fall_back", lambda *_: says)
    library_of(settings, "starter", [Passage("parrot", "Parrots", "Parrots talk in the evening.")])
    library_of(settings, own_library("ann"), [Passage("hers", "Parrots", "The parrot of Ann talks in the morning.")])
    loader = load()
    loader.wait()
    return loader


@pytest.mark.lucene
def test_a_token_of_the_api_reaches_the_documents_of_its_user_alone(parrots: Loader) -> None:
    built, logins = house(parrots.settings.data_dir, Script(), Loaded())
    tokens = {}
    for name in ("ann", "bob"):
        logins.add(name, "correct horse")
        tokens[name] = built.tokens.make(name)
    with closing(serve(replace(built, chat=Chat(built.conversations, built.ptkb, parrots)), logins)) as served:
        told = {name: told_by_api(served.url, token) for name, token in tokens.items()}
    assert "hers" in [one["id"] for one in told["ann"]["passages"]]
    assert told["bob"]["passages"]
    assert "morning" not in json.dumps(told["bob"])


@pytest.mark.lucene
def test_the_tool_of_mcp_reads_the_documents_of_the_user_whom_it_runs_as_alone(parrots: Loader) -> None:
    built, _ = house(parrots.settings.data_dir, Script(), Loaded())
    turns = list[Turn]()

    class Watched(Chat):
        """It keeps the turns: of what was read, the tool tells only what is cited."""

        def once(self, *given: Any) -> Iterator[Turn]:
            for turn in super().once(*given):
                turns.append(turn)
                yield turn

    chat = Watched(built.conversations, built.ptkb, parrots)

    async def asked(user: str) -> str:
        answers = Answers(chat, built.runs, lambda _: replace(CHOSEN, library="starter"))
        async with Client(server(answers, user, lambda: None)) as client:
            [content] = (await client.call_tool("ask", {"question": "When does the parrot talk?"})).content
            return content.text

    def read_by(user: str) -> tuple[str, list[str]]:
        turns.clear()
        with ThreadPoolExecutor(1) as pool:  # a browser that is open keeps a loop running in this thread
            said = pool.submit(asyncio.run, asked(user)).result()
        return said, [passage.id for passage in turns[-1].passages]

    assert "hers" in read_by("ann")[1]
    said, passages = read_by("bob")
    assert passages == ["parrot"]
    assert "morning" not in said


def told_by_api(url: str, token: str) -> dict[str, Any]:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "When does the parrot talk?"}]}
    asked = httpx.post(f"{url}v1/chat/completions", json=body, headers={"Authorization": f"Bearer {token}"}, timeout=60)
    assert asked.status_code == 200, asked.text
    grounds: dict[str, Any] = asked.json()["sequitur"]
    return grounds


@pytest.mark.lucene
def test_the_library_is_encoded_while_loading_where_the_settings_say_so(load: Callable[..., Loader]) -> None:
    loader = load("dense")
    loader.wait()
    done = [stage.name for stage in loader.stages() if stage.done and stage.name != "Language model"]
    assert done[2:] == ["Search by meaning", "Judges"]
    assert (loader.settings.data_dir / "dense" / "words" / "docs" / "manifest.json").exists()
    assert loader.prepare("me", replace(CHOSEN, retriever="dense")) == ""


@pytest.mark.lucene
def test_a_wrong_encoder_is_refused_at_the_start_or_when_chosen(load: Callable[..., Loader], tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.raises(ModelError, match="There is no model at"):
        load("hybrid", missing).wait()
    later = load("bm25", missing)
    later.wait()
    assert "There is no model at" in later.prepare("me", replace(CHOSEN, retriever="dense"))
    assert found(later, "bm25", "dog")
