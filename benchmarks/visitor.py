"""A person at the page: sends its events over HTTP as a browser does, and reads what comes back."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

JOIN, DATA = "/gradio_api/queue/join", "/gradio_api/queue/data"
UPLOAD, PROGRESS = "/gradio_api/upload", "/gradio_api/upload_progress"
UNEXPLAINED_FAILURE = "failed without a sentence"
GONE = {502, 503, 504}  # what a proxy says of a server that ends in the middle, or isn't there
_ERROR = re.compile(r'class=\\?"notice error\\?"[^>]*><span[^>]*>([^<]*)<')
_NOT_ADDED = re.compile(r"Not added:.*?<li[^>]*>([^<]*)<")
_SOURCE = re.compile(r'class=\\?"passage')


class RefusedError(Exception):
    """The server did not do what it was asked; the message is what it said."""


@dataclass(frozen=True, slots=True)
class EventReply:
    """What came back for an event, all of it; times in seconds from the click, -1 where there was none."""

    text: str
    first_source: float
    seconds: float


class Visitor:
    """One tab. Log in first where there are logins.

    `events` has the number of each event that a piece may send, `inputs` how many values of components come with it,
    `loads` both for what a browser asks for by itself as it opens the page.
    """

    def __init__(self, url: str, address: str = "127.0.0.1") -> None:
        """`address` is one of this computer's, from which the person seems to come."""
        transport = httpx.HTTPTransport(local_address=address)
        self.client = httpx.Client(base_url=url, timeout=120.0, transport=transport)
        self.events: dict[tuple[str, str], int] = {}
        self.inputs: dict[tuple[str, str], int] = {}
        self.loads: dict[int, int] = {}
        self.session = uuid4().hex[:12]

    def log_in(self, name: str, password: str) -> None:
        """Enter.

        Raises:
            RefusedError: with what was said.
        """
        response = self.client.post("/login", data={"username": name, "password": password})
        if response.status_code != 200:
            raise RefusedError(response.text)

    def reload(self) -> bool:
        """Open the page anew, in a tab that remembers nothing; whether that was let in.

        Raises:
            httpx.HTTPError: the server is gone.
            RefusedError: it answers with an error.
        """
        self.session = uuid4().hex[:12]
        self.events.clear()
        response = self.client.get("/config")
        return response.status_code != 401 and bool(self._checked(response))

    def move(self, url: str) -> None:
        """Turn to another address of the same page."""
        self.client.base_url = httpx.URL(url)
        self.events.clear()

    def number(self, piece: str, event: str) -> int:
        """The number under which the server knows an event of a piece of the page."""
        if not self.events:
            config = self._checked(self.client.get("/config")).json()
            names = {component["id"]: component["props"].get("elem_id") for component in config["components"]}
            for dependency in config["dependencies"]:
                if any(name == "load" for _, name in dependency["targets"]):
                    self.loads[dependency["id"]] = len(dependency["inputs"])
                for target, name in dependency["targets"]:
                    self.events[str(names.get(target)), name] = dependency["id"]
                    self.inputs[str(names.get(target)), name] = len(dependency["inputs"])
        return self.events[piece, event]

    def open(self) -> None:
        """Open the page: what fills it is asked for all at once, and is waited for.

        Raises:
            RefusedError: a part of it failed.
            httpx.HTTPError: the server is gone.
        """
        self.number("composer", "ask")
        for number, inputs in self.loads.items():
            self._join(number, self.session, [""] * inputs, {})
        pending_count = len(self.loads)
        for line in self.stream(self.session):
            if '"process_completed"' in line:
                _check(line)
                pending_count -= 1
                if not pending_count:
                    return
        raise httpx.ReadError("The stream ended in the middle.")

    def send(self, piece: str, event: str, *data: Any, **values: Any) -> EventReply:
        """Send an event of this tab with its values, and wait until it is done; see `send_of`."""
        return self.send_of(self.session, piece, event, *data, **values)

    def send_of(self, session: str, piece: str, event: str, *data: Any, **values: Any) -> EventReply:
        """As `send`, of another tab of the same person, in which one event may be under way at a time.

        Raises:
            RefusedError: the server refused it, failed at it, or showed a banner.
            httpx.HTTPError: the server is gone.
        """
        start = time.perf_counter()
        self.join(piece, event, session, data, values)
        text, first_source = "", -1.0
        for line in self.stream(session):
            text += line
            if first_source < 0 and _SOURCE.search(line):
                first_source = time.perf_counter() - start
            if '"process_completed"' in line:
                _check(line)
                break
        else:
            raise httpx.ReadError("The stream ended in the middle.")
        if error_match := _ERROR.search(text):
            raise RefusedError(error_match[1])
        return EventReply(text, first_source, time.perf_counter() - start)

    def join(
        self, piece: str, event: str, session: str, data: Sequence[Any] = (), values: Mapping[str, Any] | None = None
    ) -> str:
        """Queue an event; returns its id."""
        return self._join(self.number(piece, event), session, data, values or {})

    def _join(self, number: int, session: str, data: Sequence[Any], values: Mapping[str, Any]) -> str:
        body = {"data": list(data), "event_data": values, "fn_index": number, "session_hash": session}
        event_id: str = self._checked(self.client.post(JOIN, json=body)).json()["event_id"]
        return event_id

    def stream(self, session: str) -> Generator[str, None, None]:
        """The messages of a session as they come."""
        with self.client.stream("GET", DATA, params={"session_hash": session}) as stream:
            self._checked(stream)
            for line in stream.iter_lines():
                if line:
                    yield line

    def upload(self, name: str, content: bytes) -> EventReply:
        """Add a document, and wait until it is searchable.

        Raises:
            RefusedError: it was not added, or as `send` has it.
            httpx.HTTPError: the server is gone.
        """
        [path] = self._checked(self.client.post(UPLOAD, files={"files": (name, content)})).json()
        file = {"path": path, "orig_name": name, "meta": {"_type": "gradio.FileData"}}
        reply = self.send("files", "upload", [file])
        if refusal_match := _NOT_ADDED.search(reply.text):
            raise RefusedError(refusal_match[1])
        return reply

    def close(self) -> None:
        """Leave."""
        self.client.close()

    @staticmethod
    def _checked(response: httpx.Response) -> httpx.Response:
        if response.status_code in GONE:
            raise httpx.ReadError(f"The proxy answers with {response.status_code}.")
        if response.status_code >= 400:
            raise RefusedError(f"{response.status_code}")
        return response


def _check(line: str) -> None:
    """Raises `RefusedError` where the message that ends an event says that it failed."""
    message = json.loads(line.removeprefix("data:"))
    if not message["success"]:
        raise RefusedError((message["output"] or {}).get("error") or f"{UNEXPLAINED_FAILURE}: {line[:500]}")
