"""The API: OpenAI's own client against a page on scripted turns."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import openai
import pytest
from typer.testing import CliRunner

from assistant.api.completions import MAX_BODY_BYTES
from assistant.api.messages import ChatRequest
from assistant.api.replies import MODEL
from assistant.commands.users import app as users_app
from assistant.errors import LibraryError, SettingsError, StoreError
from assistant.library.collections import make
from assistant.library.shelves import own_library
from assistant.runs import CROWDED
from assistant.store.database import connect
from assistant.store.tokens import AccessTokens
from assistant.store.users import Logins
from assistant.types import Passage
from assistant.web.server import Server, serve
from assistant.wording.replies import LABEL
from tests.browser.fake import PAUSE, SENTENCES, Loaded, Script, house
from tests.scripted import library_of

DIET = [{"role": "user", "content": "What is a good diet?"}]


class Site:
    """A page that ann and bob may log in to; each has a fact and a token."""

    def __init__(self, folder: Path) -> None:
        self.script, self.loading = Script(), Loaded()
        built, self.logins = house(folder, self.script, self.loading)
        for name in ("ann", "bob"):
            self.logins.add(name, "correct horse")
            built.ptkb.add(name, f"{name} likes oats.")
        self.house, self.tokens = built, {name: built.tokens.make(name) for name in ("ann", "bob")}
        self.server: Server = serve(built, self.logins)

    @property
    def url(self) -> str:
        return f"{self.server.url}v1"

    def client(self, token: str) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.url, api_key=token, max_retries=0, timeout=30)

    def post(self, body: bytes) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.tokens['ann']}"}
        return httpx.post(f"{self.url}/chat/completions", content=body, headers=headers, timeout=30)

    def idle(self, user: str) -> bool:
        """Whether nothing is written for a user any more, within some seconds."""
        for _ in range(200):
            if not self.house.runs.busy(user, "api"):
                return True
            time.sleep(0.05)
        return False


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("api"))
    yield site
    site.server.close()


@pytest.fixture
def site(served: Site) -> Site:
    served.script.pause, served.loading.ready, served.loading.error = PAUSE, True, ""
    served.script.go.set()
    return served


@pytest.fixture
def ann(site: Site) -> openai.OpenAI:
    return site.client(site.tokens["ann"])


def test_a_collection_is_asked_alone_and_an_unknown_one_is_told_with_those_there_are(site: Site) -> None:
    settings = site.house.settings
    library_of(settings, own_library("ann"), [Passage("oats-1", "Oats", "Oats are a cereal.")])
    make("ann", "food", settings)
    body = {"model": MODEL, "messages": DIET, "collection": "cars"}
    told = site.post(json.dumps(body).encode())
    assert told.status_code == 422
    assert told.json()["error"]["message"] == "There is no collection '@cars': yours are @food."
    told = site.post(json.dumps({**body, "collection": "food"}).encode())
    assert "The collection @food is empty" in told.json()["error"]["message"]
    for said, status in (("@cars How fast?", 422), ("@food What is a good diet?", 200)):
        told = site.post(json.dumps({"model": MODEL, "messages": [{"role": "user", "content": said}]}).encode())
        assert told.status_code == status, told.text
    assert told.json()["sequitur"]["question"] == "What is a good diet?"


def test_a_database_that_cant_be_used_is_told_with_when_to_try_again(site: Site, monkeypatch) -> None:
    def unreachable(_self: AccessTokens, _token: str) -> str:
        raise StoreError("The database can't be reached; check that its server runs.")

    monkeypatch.setattr(AccessTokens, "user", unreachable)
    told = site.post(json.dumps({"model": MODEL, "messages": DIET}).encode())
    assert (told.status_code, told.headers["retry-after"]) == (503, "10")
    assert told.json()["error"]["message"] == "The database can't be reached; check that its server runs."


def test_a_library_that_cant_be_searched_yet_is_told_with_when_to_try_again(site: Site, monkeypatch) -> None:
    def encoding(*_: object) -> None:
        raise LibraryError("The library is being encoded to be searched by meaning; ask again when that is done.")

    monkeypatch.setattr("assistant.api.answers.Answers.begin", encoding)
    told = site.post(json.dumps({"model": MODEL, "messages": DIET}).encode())
    assert (told.status_code, told.headers["retry-after"]) == (503, "10")
    assert told.json()["error"]["code"] == "library_unavailable"


def test_why_no_answer_can_begin_is_told_as_it_is(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assistant.runs.MAX_RUNS", 0)
    told = site.post(json.dumps({"model": MODEL, "messages": DIET}).encode())
    assert (told.status_code, told.json()["error"]["message"]) == (429, CROWDED)


def test_the_models_are_one(ann: openai.OpenAI) -> None:
    assert [model.id for model in ann.models.list()] == [MODEL]


def test_a_reply_comes_with_what_it_rests_on(ann: openai.OpenAI, site: Site) -> None:
    reply = ann.chat.completions.create(model=MODEL, messages=DIET)
    [choice] = reply.choices
    assert choice.finish_reason == "stop"
    assert choice.message.content is not None
    assert choice.message.content.startswith(f"{SENTENCES[0][0]} [1]")
    grounds = reply.model_extra["sequitur"]
    assert grounds["question"] == "What is a good diet?"
    assert {one["n"] for one in grounds["citations"]} == {1, 2, 3}
    texts = {passage["id"]: passage["text"] for passage in grounds["passages"]}
    for one in grounds["citations"]:
        assert texts[one["passage_id"]][one["start"] : one["end"]] == one["quote"]
    assert [sentence["state"] for sentence in grounds["sentences"]].count("not") == 1
    assert [fact["text"] for fact in grounds["facts"]] == ["ann likes oats."]
    assert grounds["confidence"]["level"] == "well"
    assert (grounds["outcome"], grounds["events"], grounds["model"]) == ("written", [], "scripted")
    assert reply.usage
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (1023, 140, 1163)
    assert not site.house.conversations.list("ann")


def test_a_stream_tells_what_is_done_and_then_the_settled_reply(ann: openai.OpenAI, site: Site) -> None:
    site.script.pause = 0.03  # long enough that steps are seen
    whole = ann.chat.completions.create(model=MODEL, messages=DIET)
    with ann.chat.completions.create(
        model=MODEL, messages=DIET, stream=True, stream_options={"include_usage": True}
    ) as stream:
        *chunks, counted = stream
    assert chunks[0].choices[0].delta.role == "assistant"
    told = [chunk.model_extra.get("sequitur", {}).get("progress") for chunk in chunks]
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks]
    assert "Writing the answer" in told
    # nothing is shown of what is still being written
    assert max(n for n, doing in enumerate(told) if doing) < min(n for n, piece in enumerate(pieces) if piece)
    assert "".join(pieces) == whole.choices[0].message.content
    assert len(set(pieces)) > 10
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert chunks[-1].model_extra["sequitur"] == whole.model_extra["sequitur"]
    assert {chunk.id for chunk in chunks} == {counted.id}
    assert (counted.choices, counted.usage) == ([], whole.usage)


def test_what_was_said_before_is_known(ann: openai.OpenAI) -> None:
    said = [*DIET, {"role": "assistant", "content": "Lentils [1]."}, {"role": "user", "content": "Why is that?"}]
    reply = ann.chat.completions.create(model=MODEL, messages=said)
    assert reply.model_extra["sequitur"]["question"] == "Why is that? (about What is a good diet?)"


def test_each_token_is_one_users(site: Site, ann: openai.OpenAI) -> None:
    bob = site.client(site.tokens["bob"])
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(one.chat.completions.create, model=MODEL, messages=DIET) for one in (ann, bob)]
    facts = [[fact["text"] for fact in one.result().model_extra["sequitur"]["facts"]] for one in asked]
    assert facts == [["ann likes oats."], ["bob likes oats."]]


def test_a_revoked_token_lets_nobody_in(site: Site) -> None:
    other = site.house.tokens.make("ann", "laptop")
    client = site.client(other)
    assert client.models.list().data
    [kept, gone] = site.house.tokens.list("ann")
    assert (kept.label, gone.label) == ("", "laptop")
    assert gone.used
    with pytest.raises(SettingsError, match="has no token"):
        site.house.tokens.revoke("bob", gone.id)
    site.house.tokens.revoke("ann", gone.id)
    with pytest.raises(openai.AuthenticationError, match="users token NAME"):
        client.models.list()


@pytest.mark.parametrize("token", ["", "nonsense", "sequitur--", "sequitur-0123456789ab-xyz"])
def test_without_a_token_nothing_is_told(site: Site, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    asked = [
        httpx.get(f"{site.url}/models", headers=headers),
        httpx.post(f"{site.url}/chat/completions", headers=headers, json={"model": MODEL, "messages": DIET}),
    ]
    for one in asked:
        assert one.status_code == 401
        assert one.json()["error"]["code"] == "invalid_api_key"


def test_another_secret_behind_a_tokens_id_lets_nobody_in(site: Site) -> None:
    with pytest.raises(openai.AuthenticationError):
        site.client(site.tokens["ann"][:-1]).models.list()


def test_the_token_of_a_user_who_was_removed_lets_nobody_in(site: Site) -> None:
    site.logins.add("eve", "correct horse")
    eve = site.client(site.house.tokens.make("eve"))
    assert eve.models.list().data
    site.logins.remove("eve")
    with pytest.raises(openai.AuthenticationError):
        eve.models.list()


def test_a_page_without_logins_needs_a_token_too(tmp_path: Path) -> None:
    built, logins = house(tmp_path, Script(), Loaded())
    mine, strange = built.tokens.make("me"), built.tokens.make("ann")
    server = serve(built, logins)
    try:
        statuses = [
            httpx.get(f"{server.url}v1/models", headers={"Authorization": f"Bearer {token}"}).status_code
            for token in (mine, strange, "none")
        ]
    finally:
        server.close()
    assert statuses == [200, 401, 401]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b'{"model": "sequitur", "messages": "\\ud800"}', 400),
        (b"[]", 422),
        (b'{"model": "sequitur", "messages": []}', 422),
        (b'{"model": "sequitur", "messages": [{"role": "user", "content": 3}]}', 422),
        (b'{"model": "sequitur", "messages": [{"role": "user", "content": "  "}]}', 422),
        (b'{"model": "sequitur", "messages": [{"role": "system", "content": "Hello"}]}', 422),
        (b'{"model": "sequitur", "n": 2, "messages": [{"role": "user", "content": "Hello"}]}', 422),
        (b'{"model": "sequitur", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}', 422),
        (b'{"model": "gpt-5", "messages": [{"role": "user", "content": "Hello"}]}', 404),
    ],
)
def test_a_body_that_cant_be_answered_is_told_why(site: Site, body: bytes, status: int) -> None:
    answered = site.post(body)
    assert answered.status_code == status, answered.text
    assert answered.json()["error"]["message"].endswith(".")
    assert site.idle("ann")


def test_a_body_too_large_is_refused_before_it_is_read(site: Site) -> None:
    said = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "x" * MAX_BODY_BYTES}]})
    for length in (len(said), 2 * len(said)):
        told = site.post(said.ljust(length).encode())
        assert (told.status_code, told.json()["error"]["code"]) == (413, "too_large")


def test_a_message_too_long_is_told_so(ann: openai.OpenAI) -> None:
    with pytest.raises(openai.UnprocessableEntityError, match="too many characters"):
        ann.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "x" * 20_001}])


def test_what_there_is_not_is_told_in_the_same_form(ann: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="There is no POST /v1/embeddings here"):
        ann.embeddings.create(model=MODEL, input="Hello")


def test_while_loading_clients_are_told_to_come_again(site: Site, ann: openai.OpenAI) -> None:
    site.loading.ready = False
    with pytest.raises(openai.InternalServerError, match="still loading") as refused:
        ann.chat.completions.create(model=MODEL, messages=DIET)
    assert refused.value.status_code == 503
    assert refused.value.response.headers["retry-after"] == "10"
    site.loading.error = "The model can't be loaded; choose another."
    with pytest.raises(openai.InternalServerError, match="choose another"):
        ann.chat.completions.create(model=MODEL, messages=DIET)


def test_a_turn_that_fails_is_told_in_a_sentence(ann: openai.OpenAI) -> None:
    fail = [{"role": "user", "content": "Fail, please."}]
    with pytest.raises(openai.InternalServerError, match="ran out of memory"):
        ann.chat.completions.create(model=MODEL, messages=fail)
    with (
        pytest.raises(openai.APIError, match="ran out of memory"),
        ann.chat.completions.create(model=MODEL, messages=fail, stream=True) as stream,
    ):
        list(stream)


@pytest.mark.parametrize(("ready", "asked"), [(True, 1), (False, 2)])
def test_a_client_asks_again_only_where_that_may_help(
    site: Site, monkeypatch: pytest.MonkeyPatch, ready: bool, asked: int
) -> None:
    site.loading.ready = ready
    monkeypatch.setattr("assistant.api.completions.RETRY_LATER", 1)
    requests: list[object] = []
    watched = openai.DefaultHttpxClient(event_hooks={"request": [requests.append]})
    client = openai.OpenAI(base_url=site.url, api_key=site.tokens["ann"], max_retries=1, http_client=watched)
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Fail, please."}])
    assert len(requests) == asked


def test_one_answer_is_written_for_a_user_at_a_time(site: Site, ann: openai.OpenAI) -> None:
    site.script.go.clear()
    with ann.chat.completions.create(model=MODEL, messages=DIET, stream=True) as stream:
        next(stream)
        with pytest.raises(openai.RateLimitError, match="ask again once it is there"):
            ann.chat.completions.create(model=MODEL, messages=DIET)
        assert site.house.runs.busy("ann", "api")
        site.script.go.set()
        assert [chunk for chunk in stream if chunk.choices[0].finish_reason]
    assert site.idle("ann")


def test_a_client_that_goes_away_stops_the_answer(site: Site, ann: openai.OpenAI) -> None:
    site.script.go.clear()
    with ann.chat.completions.create(model=MODEL, messages=DIET, stream=True) as stream:
        next(stream)
    assert site.idle("ann")
    with pytest.raises(openai.APITimeoutError):
        ann.with_options(timeout=1).chat.completions.create(model=MODEL, messages=DIET)
    assert site.idle("ann")


def test_clients_that_wait_side_by_side_are_all_answered(site: Site) -> None:
    async def storm() -> list[str]:
        client = openai.AsyncOpenAI(base_url=site.url, api_key=site.tokens["bob"], max_retries=20, timeout=60)
        asked = (client.chat.completions.create(model=MODEL, messages=DIET) for _ in range(3))
        return [reply.choices[0].message.content or "" for reply in await asyncio.gather(*asked)]

    with ThreadPoolExecutor(1) as pool:
        replies = pool.submit(asyncio.run, storm()).result()
    assert len(set(replies)) == 1


def test_the_history_is_pairs_as_the_store_has_them() -> None:
    said = [
        {"role": "system", "content": "Be rude."},
        {"role": "user", "content": "Nobody answered this."},
        {"role": "user", "content": [{"type": "text", "text": "And oats?"}]},
        {"role": "assistant", "content": f"{LABEL}\n\nThey are good [1]."},
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": "Because"},
    ]
    asked = ChatRequest.model_validate({"model": MODEL, "messages": said, "temperature": 2})
    assert asked.utterance == "Why?"
    assert [(one.utterance, one.reply) for one in asked.history] == [("And oats?", "They are good.")]


def test_a_long_history_is_cut() -> None:
    said = [{"role": role, "content": "word " * 9000} for _ in range(40) for role in ("user", "assistant")]
    asked = ChatRequest.model_validate({"model": MODEL, "messages": said})
    assert len(asked.history) == 10
    assert all(len(one.utterance) <= 4000 and len(one.reply) <= 4000 for one in asked.history)


def test_the_command_makes_lists_and_revokes(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        where = ["--data-dir", str(tmp_path)]
        return CliRunner().invoke(users_app, [*arguments, *where], catch_exceptions=False).stdout

    tokens = AccessTokens(connect(f"sqlite:///{tmp_path / 'sequitur.sqlite3'}"))
    made = run("token", "me", "--label", "my [b]script[/b]").strip()
    assert tokens.user(made) == "me"
    assert "my [b]script[/b]" in run("token", "me", "--list")
    assert made not in run("token", "me", "--list")
    [kept] = tokens.list("me")
    run("token", "me", "--revoke", kept.id)
    assert tokens.user(made) == ""
    with pytest.raises(SettingsError, match="no user 'ann'"):
        run("token", "ann")
    Logins(connect(f"sqlite:///{tmp_path / 'sequitur.sqlite3'}")).add("ann", "correct horse")
    given = run("token", "ann").strip()
    assert tokens.user(given) == "ann"
    run("remove", "ann", "--yes")
    assert tokens.user(given) == ""
