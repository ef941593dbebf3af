"""Two people at two workers on one PostgreSQL and one data folder: neither gets, stops or changes what is the other's.

The workers are pages in processes of their own. Bob knows all ids of Ann's, and sends every event of the page with
them, at his worker and at hers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pytest
from sqlalchemy import MetaData, select, text

from assistant.api.replies import MODEL
from assistant.library.collections import collections
from assistant.library.index import list_documents, originals_of
from assistant.library.shelves import own_library
from assistant.settings import Settings
from assistant.store.database import connect
from assistant.store.tokens import AccessTokens
from assistant.store.users import Logins
from assistant.web.logins import FREE_TRIES
from assistant.web.owners import NOT_THERE
from benchmarks.clicks import Stores
from benchmarks.light import light_settings, served
from benchmarks.visitor import DATA, JOIN, RefusedError, Visitor
from tests.fixtures_postgres import Server

pytestmark = pytest.mark.lucene
PASSWORDS = {"ann": "oats ann tea", "bob": "oats bob tea"}
WORKERS = (0, 1)  # Ann's, and Bob's
PAUSE = 0.3  # seconds a word
WAIT = 60.0
HERS = "p1x"  # begins each mark in what Ann wrote, of which none may come to Bob

Enter = Callable[[str, int], Visitor]


@dataclass(frozen=True)
class Site:
    """Two workers, and what lies behind them."""

    settings: Settings
    urls: tuple[str, ...]

    def kept(self, *words: str) -> list[str]:
        """All rows of the database that say one of the words."""
        engine, tables = connect(self.settings.database_url), MetaData()
        tables.reflect(engine)
        with engine.connect() as connection:
            rows = [f"{one.name} {row}" for one in tables.sorted_tables for row in connection.execute(select(one))]
        engine.dispose()
        return sorted(row for row in rows if any(word in row for word in words))

    def files(self, user: str) -> list[tuple[str, Path | None, bytes]]:
        """A user's documents, as they were uploaded, and in which collections they are."""
        library = own_library(user)
        originals = originals_of(library, self.settings)
        listed = [(one.name, originals.path(one.hash)) for one in list_documents(library, self.settings)]
        named = [(f"{one}", None, b"") for one in collections(user, self.settings).items()]
        return [(name, path, path.read_bytes() if path else b"") for name, path in listed] + named


@pytest.fixture(scope="module")
def site(postgres: Server, postgres_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = light_settings(tmp_path_factory.mktemp("isolation"), database=postgres.database(postgres_template))
    engine = connect(settings.database_url)
    for login in PASSWORDS.items():
        Logins(engine).add(*login)
    engine.dispose()
    with served(settings, PAUSE) as hers, served(settings, PAUSE) as his:
        yield Site(settings, (hers.url, his.url))


@pytest.fixture(scope="module")
def enter(site: Site) -> Iterator[Enter]:
    """Opens tabs of people who are logged in."""
    with ExitStack() as stack:

        def entered(name: str, worker: int) -> Visitor:
            visitor = Visitor(site.urls[worker])
            stack.callback(visitor.close)
            visitor.log_in(name, PASSWORDS[name])
            return visitor

        yield entered


@pytest.fixture(scope="module")
def hers(site: Site, enter: Enter) -> dict[str, str]:
    """The ids of what Ann has, all made at her worker."""
    ann, stores = enter("ann", 0), Stores(site.settings, "ann")
    ann.send("composer", "ask", utterance="How rich in protein are lentils, p1x1?")
    ann.send("facts", "store", text="I like oats of kind p1x2.")
    ann.upload("p1x3.txt", b"The key p1x3 hangs behind the green door.")
    [document], [fact], [reply] = stores.documents().values(), stores.facts(), stores.turns()["p1x1"]
    ann.send("collected", "make", name="keys")
    ann.send("collected", "put", name="keys", document=document)
    secret = re.findall(r"sequitur-(\w+)-[\w-]+", ann.send("tokens", "make", label="p1x4").text)
    return {
        "document": document,
        "fact": fact.id,
        "conversation": reply.conversation,
        "turn": reply.turn.id,
        "token": secret[0],
    }


def forged(hers: Mapping[str, str]) -> dict[str, Any]:
    """The values of all events of the page, with Ann's ids wherever one belongs."""
    same = {
        "conversation": ("target", "shown"),
        "turn": ("looked", "of"),
        "document": ("other",),
    }
    ids = dict(hers) | {name: hers[like] for like, names in same.items() for name in names}
    words = {"text": "Bob's", "title": "Bob's", "utterance": "Hello", "word": "ann", "name": "keys", "query": "key"}
    words |= {"collection": "keys", "passage": "one", "kind": "json", "task": "compare", "value": "1", "place": "0"}
    return {**ids, **words, "first": "concat", "second": "summary", "inside": "no", "address": "http://127.0.0.1:1/"}


def said(visitor: Visitor, piece: str, event: str, data: list[Any], values: Mapping[str, Any]) -> str:
    """All that comes back for an event, whatever that is."""
    visitor.join(piece, event, visitor.session, data, values)
    lines = list[str]()
    for line in visitor.stream(visitor.session):
        lines.append(line)
        if '"process_completed"' in line:
            return "\n".join(lines)
    raise AssertionError(f"{piece} {event}: the stream ended")


def test_who_has_them_finds_them_by_these_ids_at_the_other_worker(site: Site, enter: Enter, hers) -> None:
    ann = enter("ann", 1)
    for piece, event, mark in (
        ("transcript", "open", "p1x1"),
        ("conversations", "export", "p1x1"),
        ("facts", "export", "p1x2"),
        ("documents", "see", "p1x3"),
        ("collected", "uses", "p1x3"),
    ):
        assert mark in said(ann, piece, event, [], forged(hers)), (piece, event)
    assert b"p1x3" in ann.client.get(f"/original/{hers['document']}").content


@pytest.mark.parametrize("worker", WORKERS)
def test_no_event_with_anothers_ids_tells_or_changes_anything(site: Site, enter: Enter, hers, worker: int) -> None:
    bob, words = enter("bob", worker), ("ann", HERS, *hers.values())
    before, files = site.kept(*words), site.files("ann")
    bob.number("composer", "ask")
    events = [one for one in sorted(bob.events) if one[0] != "None" and not bob.inputs[one]]
    assert {("composer", "stop"), ("conversations", "export"), ("facts", "drop"), ("tokens", "revoke")} < set(events)
    for piece, event in events:
        assert HERS not in said(bob, piece, event, [], forged(hers)), (piece, event)
    assert site.kept(*words) == before
    assert site.files("ann") == files


@pytest.mark.parametrize("worker", WORKERS)
def test_anothers_document_is_not_given(enter: Enter, hers, worker: int) -> None:
    answer = enter("bob", worker).client.get(f"/original/{hers['document']}")
    assert (answer.status_code, answer.text) == (404, NOT_THERE)


@pytest.mark.parametrize("worker", WORKERS)
def test_anothers_tab_is_no_way_to_what_it_shows(enter: Enter, hers, worker: int) -> None:
    ann, bob = enter("ann", 0), enter("bob", worker)
    ann.join("transcript", "open", ann.session, [], forged(hers))
    sent = {"data": [], "event_data": {}, "fn_index": bob.number("composer", "stop"), "session_hash": ann.session}
    joined = bob.client.post(JOIN, json=sent)
    if worker == WORKERS[0]:
        read = bob.client.get(DATA, params={"session_hash": ann.session})
        assert (joined.status_code, read.status_code) == (403, 403)
    else:  # nobody's there: it is a tab of his from now on, in which nothing of hers happens
        assert joined.status_code == 200
        assert HERS not in "".join(bob.stream(ann.session))
    assert "p1x1" in "".join(ann.stream(ann.session))


@pytest.mark.parametrize("worker", WORKERS)
def test_a_program_asks_from_what_is_its_owners_alone(site: Site, enter: Enter, hers, worker: int) -> None:
    client = enter("bob", worker).client
    engine = connect(site.settings.database_url)
    token = AccessTokens(engine).make("bob")
    engine.dispose()
    own = token.split("-")[1]

    def asked(token: str, **more: str) -> tuple[int, str]:
        message = {"role": "user", "content": "What do you know about me, p2x1?"}
        body = {"model": MODEL, "messages": [message], **more}
        answer = client.post("/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {token}"})
        return answer.status_code, answer.text

    status, answer = asked(token)
    assert status == 200
    assert HERS not in answer
    status, answer = asked(token, collection="keys")
    assert (status, HERS in answer) == (422, False)
    assert asked(token.replace(own, hers["token"]))[0] == 401


def test_wrong_passwords_at_one_worker_keep_a_guesser_out_at_the_other(site: Site) -> None:
    here, there = (Visitor(url, "127.0.0.77") for url in site.urls)
    for _ in range(FREE_TRIES):
        with pytest.raises(RefusedError, match="Incorrect"):
            here.log_in("eve", "guess guess")
    with pytest.raises(RefusedError, match="too many wrong passwords"):
        there.log_in("eve", "guess guess")
    for visitor in (here, there):
        visitor.close()


def test_an_answer_that_is_being_written_is_stopped_and_seen_by_nobody_else(site: Site, enter: Enter, hers) -> None:
    ann, both = enter("ann", 0), [enter("bob", worker) for worker in WORKERS]
    assert all(bob.number("composer", "stop") for bob in (ann, *both))  # takes a while at first
    values = {"conversation": hers["conversation"], "utterance": "How rich in protein are lentils, p1x5?"}
    asking = Thread(target=lambda: ann.send("composer", "ask", **values))
    asking.start()
    end = monotonic() + WAIT
    while not running(site, hers):
        assert monotonic() < end
        sleep(0.05)
    for piece, event in (
        ("composer", "stop"),
        ("transcript", "open"),
        ("transcript", "undo"),
        ("conversations", "delete"),
    ):
        for bob in both:
            assert HERS not in said(bob, piece, event, [], forged(hers)), (piece, event)
        if event == "stop":
            assert running(site, hers) == [False]
    asking.join(WAIT)
    [reply] = Stores(site.settings, "ann").turns()["p1x5"]
    assert reply.turn.status == "done"
    assert "p1x5" in reply.turn.answer.text


def running(site: Site, hers: Mapping[str, str]) -> list[bool]:
    """Of each answer that is being written in Ann's conversation, whether it was asked to stop."""
    asked = text("SELECT stop FROM answering WHERE conversation = :conversation")
    engine = connect(site.settings.database_url)
    with engine.connect() as connection:
        stops = connection.scalars(asked, {"conversation": hers["conversation"]}).all()
    engine.dispose()
    return list(stops)
