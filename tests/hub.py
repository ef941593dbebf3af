"""A Hugging Face hub for tests, which answers as the real one does: addresses with sizes and hashes, and ranges."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from assistant.llm.sources import hub_trouble

_PIECE, _SMALL = 1 << 14, 1000
_COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class StandInHub:
    """Repositories of files, by `owner/name/file`, and what may go wrong with them.

    Attributes:
        files: what each file is.
        sent: what is sent instead of what the hub states.
        cut: connections for files that break off after so many bytes each, one after the other.
        pause: seconds before each 16 kB.
        ranges: whether it knows them.
        status: what is answered for files instead, where it is not 0.
        asked: (method, path, range) of each request.
    """

    files: dict[str, bytes]
    sent: dict[str, bytes] = field(default_factory=dict)
    cut: list[int] = field(default_factory=list)
    pause: float = 0.0
    ranges: bool = True
    status: int = 0
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    keys_for_files: list[str] = field(default_factory=list)
    address: str = ""
    storage: str = ""

    def ranges_asked(self) -> list[str]:
        """The ranges of the requests for content, "" for whole files."""
        return [asked for method, path, asked in self.asked if method == "GET" and path.startswith("/storage/")]


class _Handler(BaseHTTPRequestHandler):
    hub: StandInHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> object:
        self.hub.asked.append((self.command, self.path, self.headers.get("range", "")))
        if self.path in {"", "/"}:
            return self._head(200, content_length="0")
        if self.path.startswith("/storage/"):
            self.hub.keys_for_files.append(self.headers.get("authorization", ""))
            return self._send(self.path.removeprefix("/storage/"))
        self.hub.keys.append(self.headers.get("authorization", ""))
        return self._resolve(self.path.strip("/").replace("/resolve/main/", "/"))

    def _resolve(self, name: str) -> object:
        """Small files are sent at once, with a hash of git's; of large ones it is told what and where they are."""
        if name not in self.hub.files:
            return self._head(404, content_length="0", x_error_code="EntryNotFound", x_error_message="Entry not found")
        content = self.hub.files[name]
        if len(content) < _SMALL:
            self._head(200, content_length=str(len(content)), etag='"37f7e91c1b9d1a2c3e4f5a6b7c8d9e0f11121314"')
            return self.wfile.write(content) if self.command == "GET" else None
        return self._head(
            302,
            location=f"{self.hub.storage}/storage/{name}",
            x_repo_commit=_COMMIT,
            x_linked_size=str(len(content)),
            x_linked_etag=f'"{hashlib.sha256(content).hexdigest()}"',
            content_length="0",
        )

    def _send(self, name: str) -> None:
        if self.hub.status:
            return self._head(self.hub.status, content_length="0")
        content = self.hub.sent.get(name, self.hub.files[name])
        asked = self.headers.get("range") if self.hub.ranges else None
        begin = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        told = {"content_range": f"bytes {begin}-{len(content) - 1}/{len(content)}"} if asked else {}
        self._head(206 if asked else 200, content_length=str(len(content) - begin), **told)
        end = begin + self.hub.cut.pop(0) if self.hub.cut else len(content)
        with suppress(BrokenPipeError, ConnectionResetError):
            for at in range(begin, min(end, len(content)), _PIECE):
                time.sleep(self.hub.pause)
                self.wfile.write(content[at : min(at + _PIECE, end)])
                self.wfile.flush()
        self.close_connection = True
        return None

    def _head(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()


@contextmanager
def stand_in_hub(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    """A running hub that the library takes for the real one; what it stores is at another address, as there."""
    hub = StandInHub(files)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.address, hub.storage = (f"http://{name}:{server.server_port}" for name in ("127.0.0.1", "localhost"))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.address)
    monkeypatch.setattr(
        "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE",
        hub.address + "/{repo_id}/resolve/{revision}/{filename}",
    )
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    hub_trouble.cache_clear()
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        hub_trouble.cache_clear()
