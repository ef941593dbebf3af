"""Two workers on one PostgreSQL whose clocks differ by a minute: neither takes the other for dead, nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import monotonic, sleep

import pytest
from sqlalchemy import text

from assistant.settings import Settings
from assistant.store.database import connect
from assistant.store.shared import MAX_SILENT_SECONDS
from assistant.store.users import Logins
from benchmarks.clicks import Reply, Stores
from benchmarks.light import ahead, light_settings, served
from benchmarks.visitor import RefusedError, Visitor
from tests.fixtures_postgres import Server

MINUTE = 60.0
assert MINUTE > MAX_SILENT_SECONDS  # by the clock of a worker, the other's sign of life would be too old
PAUSE = 0.3  # seconds a word: an answer takes some
PASSWORD = "oats ann tea"
RIGHT, FAST = 0, 1


@dataclass(frozen=True)
class Site:
    """A worker whose clock is right, and one whose clock is a minute ahead."""

    settings: Settings
    urls: tuple[str, str]

    def tab(self, worker: int) -> Visitor:
        """A tab of Ann's, who has not logged in yet."""
        return Visitor(self.urls[worker])

    def stores(self) -> Stores:
        return Stores(self.settings, "ann")


@pytest.fixture(scope="module")
def site(postgres: Server, postgres_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = light_settings(tmp_path_factory.mktemp("clocks"), database=postgres.database(postgres_template))
    engine = connect(settings.database_url)
    Logins(engine).add("ann", PASSWORD)
    engine.dispose()
    with served(settings, PAUSE) as right, served(settings, PAUSE, partial(ahead, MINUTE)) as fast:
        yield Site(settings, (right.url, fast.url))


@pytest.mark.parametrize("worker", [RIGHT, FAST])
def test_a_log_in_holds_at_both(site: Site, worker: int) -> None:
    there, elsewhere = site.tab(worker), site.tab(1 - worker)
    there.log_in("ann", PASSWORD)
    elsewhere.client.cookies = there.client.cookies
    assert there.reload()
    assert elsewhere.reload()
    for tab in (there, elsewhere):
        tab.close()


@pytest.mark.parametrize("worker", [RIGHT, FAST])
def test_no_lease_is_taken_from_the_living(site: Site, worker: int) -> None:
    writing, other = site.tab(worker), site.tab(1 - worker)
    for tab in (writing, other):
        tab.log_in("ann", PASSWORD)
        tab.number("composer", "ask")  # takes a while at first
    asked = f"How rich in protein are lentils, p{worker}x1?"
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(partial(writing.send, "composer", "ask", utterance=asked))
        conversation = being_answered(site)
        with pytest.raises(RefusedError, match="An answer is being written in this conversation"):
            other.send("composer", "ask", conversation=conversation, utterance="And rice?")
        other.send("transcript", "open", conversation=conversation)
        answer.result(60)
    [reply] = of(site, f"p{worker}x1")
    assert (reply.conversation, reply.turn.status) == (conversation, "done")
    other.send("composer", "ask", conversation=conversation, utterance=f"And how rich is rice, p{worker}x2?")
    [later] = of(site, f"p{worker}x2")
    assert (later.conversation, later.turn.status) == (conversation, "done")
    if worker == RIGHT:
        assert (later.turn.created - reply.turn.created).total_seconds() > MINUTE  # the other's clock is ahead
    for tab in (writing, other):
        tab.close()


def test_what_both_write_is_kept(site: Site) -> None:
    tabs = [site.tab(worker) for worker in (RIGHT, FAST)]
    for tab in tabs:
        tab.log_in("ann", PASSWORD)
    told = [f"I like oats of kind {n}." for n in range(6)]
    for n, fact in enumerate(told):
        tabs[n % 2].send("facts", "store", text=fact)
    facts = {one.text: one.id for one in site.stores().facts()}
    assert set(told) <= facts.keys()
    tabs[RIGHT].send("facts", "edit", fact=facts[told[1]], text="I like rice.")  # told a minute later, by that clock
    tabs[FAST].send("facts", "drop", fact=facts[told[0]])
    left = {one.text for one in site.stores().facts()}
    assert left & {*told, "I like rice."} == {*told[2:], "I like rice."}
    for tab in tabs:
        tab.close()


def being_answered(site: Site) -> str:
    """The conversation in which an answer is being written, once there is one."""
    engine, end = connect(site.settings.database_url), monotonic() + 60
    while monotonic() < end:
        with engine.connect() as connection:
            if found := connection.scalar(text("SELECT conversation FROM answering")):
                engine.dispose()
                return str(found)
        sleep(0.05)
    raise AssertionError("no answer was begun")


def of(site: Site, mark: str) -> list[Reply]:
    """The replies to the question with a mark."""
    return site.stores().turns().get(mark, [])
