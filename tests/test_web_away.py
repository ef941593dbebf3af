"""A real PostgreSQL that falls silent under a page with logins, as behind a network that lost it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from assistant.store import users
from assistant.store.database import BUSY_SECONDS, connect
from assistant.store.users import Logins
from assistant.web import entered
from assistant.web.server import Server, serve
from tests.browser.fake import Loaded, Script, house

PASSWORD = "oats ann tea"


class Relay:
    """Passes on what a client and the server say to each other, until it falls silent or is cut."""

    def __init__(self, to: int) -> None:
        self._to, self.silent = to, Event()
        self._ends: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        for one in (self._listening, *self._ends):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listening.accept()[0]
                there = socket.create_connection(("127.0.0.1", self._to))
                self._ends += [client, there]
                for source, target in ((client, there), (there, client)):
                    Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while said := source.recv(65536):
                if not self.silent.is_set():
                    target.sendall(said)


@pytest.fixture
def relay(postgres) -> Iterator[Relay]:
    made = Relay(postgres.port)
    yield made
    made.cut()


@pytest.fixture
def server(relay: Relay, postgres, postgres_emptied: str, tmp_path: Path, monkeypatch) -> Iterator[Server]:
    """A page whose log-ins are at the other end of the relay."""
    monkeypatch.setattr(users, "COST", 2**10)
    monkeypatch.setattr(entered, "DATABASE_SECONDS", 0.5)
    logins = Logins(connect(postgres_emptied.replace(f":{postgres.port}/", f":{relay.port}/")))
    logins.add("ann", PASSWORD)
    served = serve(house(tmp_path, Script(), Loaded())[0], logins)
    yield served
    served.close()


def test_a_database_that_is_silent_holds_nobody_up_and_is_named(server: Server, relay: Relay) -> None:
    with httpx.Client(base_url=server.url, timeout=20) as ann, ThreadPoolExecutor(1) as beside:
        assert ann.post("/login", data={"username": "ann", "password": PASSWORD}).json() == {"success": True}
        assert ann.get("/config").status_code == 200
        relay.silent.set()
        asked = beside.submit(ann.get, "/config")
        assert httpx.get(f"{server.url}healthz", timeout=20).elapsed.total_seconds() < 5
        assert (asked.result().status_code, asked.result().text) == (503, entered.DATABASE_SILENT)
        # the files that the page is made of, and what watches over it, never ask
        assert [ann.get(path).status_code for path in ("/healthz", "/readyz", "/js/page.js")] == [200] * 3
        relay.cut()
        said = ann.get("/config")
        assert said.status_code == 503
        assert "can't be reached; check that its server runs" in said.text
        said = ann.post("/login", data={"username": "ann", "password": PASSWORD})
        assert said.status_code == 503
        assert "can't be reached" in said.text


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux tells how long it waits")
def test_a_server_that_went_without_a_word_is_given_up_soon(postgres_emptied: str) -> None:
    with connect(postgres_emptied).connect() as connection:
        driver = connection.connection.driver_connection
        assert driver
        with socket.socket(fileno=os.dup(driver.fileno())) as wire:
            options = [
                wire.getsockopt(socket.IPPROTO_TCP, one) for one in (socket.TCP_USER_TIMEOUT, socket.TCP_KEEPIDLE)
            ]
    assert options == [BUSY_SECONDS * 1000, BUSY_SECONDS // 2]
