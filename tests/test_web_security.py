"""Who may ask for the page, and where it may listen."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx
import pytest
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from assistant.errors import SettingsError
from assistant.settings import Settings, WebSettings
from assistant.web.security import Guard, is_loopback, refusal_reason
from assistant.web.server import free_port, serve
from tests.browser.fake import Loaded, Script, house


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.3.2.1", True), ("0.0.0.0", False), ("", False),
     ("192.168.1.4", False), ("::", False), ("my.host", False)],
)  # fmt: skip
def test_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize(
    ("host", "origin", "local", "ok"),
    [
        ("127.0.0.1:7860", None, True, True),
        ("localhost:7860", "http://localhost:7860", True, True),
        ("[::1]:7860", "http://[::1]:7860", True, True),
        ("127.0.0.2:7860", "http://127.0.0.2:7860", True, True),
        ("127.0.0.2:7860", "http://127.0.0.1:7860", True, False),
        ("127.0.0.2.evil.example", None, True, False),
        ("192.168.1.4:7860", None, True, False),
        ("evil.example", None, True, False),
        ("localhost.evil.example", None, True, False),
        ("", None, True, False),
        ("localhost:7860", "http://evil.example", True, False),
        ("localhost:7860", "http://localhost:9999", True, False),
        ("localhost:7860", "null", True, False),
        ("192.168.1.4:7860", "http://192.168.1.4:7860", False, True),
        ("192.168.1.4:7860", "http://evil.example", False, False),
    ],
)
def test_hosts_and_origins(host: str, origin: str | None, local: bool, ok: bool) -> None:
    headers = {"host": host} | ({"origin": origin} if origin is not None else {})
    assert (refusal_reason(Headers(headers), local) == "") is ok


@pytest.mark.parametrize(
    ("url", "origin", "status", "bound"),
    [
        ("https://page.example", "https://page.example", 200, "max-age=31536000"),
        ("https://page.example", "https://evil.example", 403, "max-age=31536000"),
        ("http://page.example", "http://page.example", 200, None),
        ("https://localhost:8443", "https://localhost:8443", 200, None),
        ("https://[::1]:8443", "https://[::1]:8443", 200, None),
        ("https://[::1]", "https://[::1]", 200, None),
    ],
)
def test_a_host_that_is_reached_by_https_is_reached_by_nothing_else(
    url: str, origin: str, status: int, bound: str | None
) -> None:
    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(Guard(PlainTextResponse("here"), local=False))
        async with httpx.AsyncClient(transport=transport, base_url=url) as client:
            return await client.get("/", headers={"Origin": origin})

    with ThreadPoolExecutor(1) as pool:  # a browser's tests leave a running event loop in this thread
        response = pool.submit(asyncio.run, answer()).result()
    assert (response.status_code, response.headers.get("strict-transport-security")) == (status, bound)


def test_a_port_in_use_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"Port {port} is in use; choose another with --port"):
            free_port(WebSettings(port=port))


def test_an_address_that_is_not_this_computers_is_told() -> None:
    with pytest.raises(SettingsError, match="choose another --host"):
        free_port(WebSettings(host="203.0.113.7", port=0))


def test_other_computers_need_logins(tmp_path) -> None:
    built, logins = house(tmp_path, Script(), Loaded(), host="0.0.0.0")
    assert isinstance(built.settings, Settings)
    with pytest.raises(SettingsError, match="users add NAME"):
        serve(built, logins)


def test_a_password_being_checked_holds_up_nobody_else(tmp_path, monkeypatch) -> None:
    built, logins = house(tmp_path, Script(), Loaded())
    logins.add("ada", "correct horse")
    begun, go, check = Event(), Event(), logins.check

    def slow(name: str, password: str) -> bool:
        begun.set()
        return go.wait(20) and check(name, password)

    monkeypatch.setattr(logins, "check", slow)
    server = serve(built, logins)
    try:
        with ThreadPoolExecutor(1) as pool, httpx.Client(base_url=server.url, timeout=60) as client:
            sent = {"username": "ada", "password": "correct horse"}
            login = pool.submit(httpx.post, f"{server.url}login", data=sent, timeout=60)
            assert begun.wait(20)
            assert client.get("/").status_code == 200
            assert not login.done()
            go.set()
            assert login.result().json() == {"success": True}
            assert client.post("/login", data={**sent, "password": "a guess"}).status_code == 400
    finally:
        server.close()


@pytest.mark.skipif(not socket.has_ipv6, reason="this computer has no IPv6")
@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_the_page_can_listen_on_an_address_of_ipv6(tmp_path, host: str) -> None:
    built, logins = house(tmp_path, Script(), Loaded(), host=host)
    try:
        server = serve(built, logins)
    except SettingsError as error:
        pytest.skip(f"this computer has no IPv6: {error}")
    try:
        assert server.url.startswith("http://[::1]:")
        assert httpx.get(server.url).status_code == 200
    finally:
        server.close()
