"""What strangers, other sites and other users send: refused before anything of it is parsed, kept or fetched."""

from __future__ import annotations

import json
import os
import re
import socket
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from assistant.web.bodies import EVENT_BYTES, LOGIN_BYTES, MAX_FILES, MEGABYTE
from assistant.web.owners import MAX_SESSIONS_PER_USER, NOT_THERE, TabSessions, files, is_inside
from assistant.web.page import NO_VALUE
from assistant.web.security import DENY_ALL_POLICY, HEADERS, POLICY
from assistant.web.server import Server, serve
from benchmarks.attacks import PASSWORDS, Target, fuzz_events
from benchmarks.light import Served
from tests.browser.fake import Loaded, Script, house

JOIN, DATA = "/gradio_api/queue/join", "/gradio_api/queue/data"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A page with logins."""
    built, logins = house(tmp_path_factory.mktemp("attacked"), Script(), Loaded())
    for name, password in PASSWORDS.items():
        logins.add(name, password)
    server = serve(built, logins)
    yield server
    server.close()


@pytest.fixture(scope="module")
def stranger(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=20) as client:
        yield client


@contextmanager
def entered(server: Server, name: str) -> Iterator[httpx.Client]:
    """A client that is logged in."""
    with httpx.Client(base_url=server.url, timeout=20) as client:
        sent = {"username": name, "password": PASSWORDS[name]}
        assert client.post("/login", data=sent).json() == {"success": True}
        yield client


@pytest.fixture(scope="module")
def ann(server: Server) -> Iterator[httpx.Client]:
    with entered(server, "ann") as client:
        yield client


@pytest.fixture(scope="module")
def bob(server: Server) -> Iterator[httpx.Client]:
    with entered(server, "bob") as client:
        yield client


def handler(server: Server, name: str) -> int:
    """The number of the event that a piece of the page sends."""
    for number, fn in server.page.fns.items():
        if any(target[1] == name for target in fn.targets):
            return number
    raise AssertionError(name)


def event(server: Server, session: str, name: str = "stop", **more: Any) -> dict[str, Any]:
    return {"data": [], "event_data": {}, "fn_index": handler(server, name), "session_hash": session, **more}


def raw(server: Server, text: str, wait: float = 10) -> str:
    """What comes back where a client sends just this, and nothing more."""
    at = urllib.parse.urlsplit(server.url)
    with socket.create_connection((at.hostname, at.port), timeout=wait) as there:
        there.sendall(text.replace("\n", "\r\n").encode())
        said = b""
        while piece := there.recv(65536):
            said += piece
            if b"\r\n\r\n" in said and said.split(b"\r\n\r\n", 1)[1]:
                break
        return said.decode()


def announced(client: httpx.Client, path: str, length: int) -> str:
    """The beginning of a request of somebody who is logged in, whose body never comes."""
    cookie = "; ".join(f"{key}={value}" for key, value in client.cookies.items())
    return f"POST {path} HTTP/1.1\nHost: 127.0.0.1\nCookie: {cookie}\nContent-Length: {length}\n\n"


class TestBodies:
    def test_a_huge_event_is_refused_by_its_length_and_nothing_is_read(self, server: Server, ann) -> None:
        said = raw(server, announced(ann, JOIN, EVENT_BYTES + 1))
        assert said.startswith("HTTP/1.1 413")
        assert said.endswith("shorten it, or add long text as a document.")

    def test_strangers_are_refused_before_they_have_sent_anything(self, server: Server) -> None:
        said = raw(
            server,
            f"POST {JOIN} HTTP/1.1\nHost: 127.0.0.1\nContent-Type: application/json\nContent-Length: {EVENT_BYTES}\n\n",
        )
        assert said.startswith("HTTP/1.1 401")

    def test_what_comes_in_chunks_is_counted(self, ann) -> None:
        def chunks() -> Iterator[bytes]:
            yield b'{"data": ["'
            for _ in range(EVENT_BYTES // 2**16 + 1):
                yield b"x" * 2**16

        assert ann.post(JOIN, content=chunks(), headers=JSON).status_code == 413

    @pytest.mark.parametrize("length", ["-1", "1e3", "９", "9" * 400])
    def test_a_length_that_is_none_is_refused(self, server: Server, length: str) -> None:
        said = raw(server, f"POST /login HTTP/1.1\nHost: 127.0.0.1\nContent-Length: {length}\n\n")
        assert said.split()[1] in {"400", "413"}

    @pytest.mark.parametrize("kind", ["whole", "chunks"])
    def test_the_form_for_logging_in_is_small(self, stranger, kind: str) -> None:
        form = b"username=ann&password=" + b"x" * LOGIN_BYTES
        content = form if kind == "whole" else iter([form[:5000], form[5000:]])
        said = stranger.post("/login", content=content, headers={"Content-Type": "application/x-www-form-urlencoded"})
        assert said.status_code == 413

    def test_a_name_of_combining_marks_holds_up_nobody(self, stranger) -> None:
        began = time.perf_counter()
        name = "e" + "\u0316\u0301" * 500
        assert stranger.post("/login", data={"username": name, "password": "guess"}).status_code == 400
        assert time.perf_counter() - began < 10  # the whole way there and back, on a busy machine

    def test_uploads_are_larger_and_bounded(self, server: Server, ann) -> None:
        most = server.house.settings.web.max_upload_mb
        sent = {"files": ("a.txt", b"x" * 2 * MEGABYTE)}
        assert ann.post("/gradio_api/upload", files=sent).status_code == 200
        said = raw(server, announced(ann, "/gradio_api/upload", (MAX_FILES * most + 2) * MEGABYTE))
        assert said.startswith("HTTP/1.1 413")
        assert f"at most {most} MB" in said

    def test_the_programs_of_users_are_bounded_too(self, stranger) -> None:
        assert stranger.post("/v1/chat/completions", content=b"x" * (EVENT_BYTES + 1)).status_code == 413
        assert stranger.post("/v1/chat/completions", content=b"x").status_code == 401


class TestOwners:
    def test_anothers_session_is_neither_read_nor_steered(self, server: Server, ann, bob) -> None:
        assert ann.post(JOIN, json=event(server, "anns-tab")).status_code == 200
        assert bob.get(DATA, params={"session_hash": "anns-tab"}).status_code == 403
        assert bob.post(JOIN, json=event(server, "anns-tab")).status_code == 403
        assert "belongs to another login" in bob.post(JOIN, json=event(server, "anns-tab")).text
        with ann.stream("GET", DATA, params={"session_hash": "anns-tab"}) as stream:
            assert stream.status_code == 200
            assert "process_completed" in "".join(stream.iter_text())

    @pytest.mark.parametrize("upload", ["anns", ""])
    def test_anothers_upload_is_neither_watched_nor_added_to(self, ann, bob, upload: str) -> None:
        named = {"params": {"upload_id": upload}}
        sent = {**named, "files": {"files": ("a.txt", b"oats")}}
        assert ann.post("/gradio_api/upload", **sent).status_code == 200
        assert bob.get("/gradio_api/upload_progress", **named).status_code == 403
        assert bob.post("/gradio_api/upload", **sent).status_code == 403
        assert ann.post("/gradio_api/upload", **sent).status_code == 200

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("POST", "/gradio_api/cancel"),
            ("POST", "/gradio_api/reset"),
            ("GET", "/gradio_api/heartbeat/anns-tab"),
            ("GET", "/gradio_api/openapi.json"),
            ("GET", "/openapi.json"),
            ("GET", "/gradio_api/info"),
            ("GET", "/gradio_api/file=/etc/passwd"),
            ("GET", "/gradio_api/file=http://192.0.2.1/"),
            ("GET", "/gradio_api/proxy=http://192.0.2.1/"),
            ("POST", "/gradio_api/stream/1"),
            ("GET", "/gradio_api/stream/anns-tab/1/1/playlist.m3u8"),
            ("POST", "/gradio_api/run/predict"),
            ("POST", "/gradio_api/call/predict"),
            ("GET", "/gradio_api/call/predict/1"),
            ("GET", "/gradio_api/token"),
            ("POST", "/gradio_api/run-history/connect"),
            ("GET", "/gradio_api/run-history/buckets"),
            ("GET", "/gradio_api/run-history/records"),
            ("GET", "/gradio_api/run-history/records/ask/1/assets/a"),
            ("GET", "/gradio_api/runs"),
            ("GET", "/gradio_api/custom_component/1/client/a/b"),
            ("GET", "/gradio_api/vibe-code"),
            ("GET", "/monitoring"),
            ("GET", "/gradio_api/queue/status"),
            ("POST", "/gradio_api/component_server"),
            ("POST", "/gradio_api/process_recording"),
        ],
    )
    def test_what_the_page_does_not_need_is_not_there(self, stranger, ann, method: str, path: str) -> None:
        assert stranger.request(method, path).status_code == 401
        assert ann.request(method, path).status_code == 404

    @pytest.mark.parametrize("path", ["/search", "/search/?q=oats", "/passage?id=a"])
    def test_a_page_of_its_own_leads_strangers_to_where_one_logs_in(self, stranger, path: str) -> None:
        refused = stranger.get(path)
        assert (refused.status_code, refused.headers["location"]) == (303, "/")

    def test_there_is_no_history_of_runs_and_no_server_of_javascript(self, server: Server) -> None:
        """CVE-2026-134825 takes both; and the routes above are not only closed, but are not there."""
        assert server.page.run_history is False
        assert server.page.node_process is None
        assert [path for one in server.page.app.routes if "run-history" in (path := getattr(one, "path", ""))] == []

    @pytest.mark.parametrize(
        "path",
        [
            "http://192.0.2.1/a.txt",
            "https://[::1]/a.txt",
            "/etc/passwd",
            "{uploads}/../../etc/passwd",
            "file:///etc/passwd",
            "a.txt",
            "",
        ],
    )
    def test_a_file_that_was_not_uploaded_is_never_fetched(self, server: Server, ann, monkeypatch, path: str) -> None:
        asked: list[object] = []
        monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **_: asked.append(args) or [])
        folder = server.page.app.uploaded_file_dir
        file = {"path": path.format(uploads=folder), "meta": {"_type": "gradio.FileData"}}
        sent = event(server, "files", "upload", data=[[file]])
        said = ann.post(JOIN, json=sent)
        assert (said.status_code, said.text) == (403, "This file was not uploaded here; choose it again.")
        assert asked == []

    @pytest.mark.parametrize(
        "body", [b"", b"[]", b"{}", b'{"session_hash": 1}', b"[" * 100_000, b"\xff", b'{"session_hash": null}']
    )
    def test_what_is_no_event_is_told(self, ann, body: bytes) -> None:
        assert ann.post(JOIN, content=body, headers=JSON).status_code == 400

    def test_a_session_stays_its_users_whatever_others_send(self) -> None:
        sessions = TabSessions()
        assert sessions.claim("tab", "ann")
        for n in range(3 * MAX_SESSIONS_PER_USER):
            assert sessions.claim(f"tab {n}", "bob")
        assert not sessions.claim("tab", "bob")
        assert sessions.claim("tab", "ann")
        assert sessions.claim("tab 0", "ann")  # forgotten, as bob's oldest

    def test_files_are_found_however_deep(self) -> None:
        file = {"path": "/a", "meta": {}}
        assert list(files({"data": [[{"x": [file]}], {"path": "/b"}]})) == ["/a"]
        deep: Any = file
        for _ in range(5000):
            deep = [deep]
        assert list(files(deep)) == ["/a"]

    @pytest.mark.parametrize(
        ("path", "inside"), [("/up/x/a.txt", True), ("/up/../a", False), ("/upper/a", False), ("up/a", False)]
    )
    def test_inside(self, path: str, inside: bool) -> None:
        assert is_inside(path, "/up") is inside


class TestValues:
    """Values that no component of the page sends: each is refused with a sentence, and nothing is in the log."""

    @pytest.mark.parametrize("data", [[], [1], ["/etc/passwd"], [[{"path": 1}]], [{"a": {}}], [[[None]]]])
    def test_where_files_belong(self, server: Server, ann, capsys, data: list[Any]) -> None:
        assert ann.post(JOIN, json=event(server, "files", "upload", data=data)).status_code == 200
        with ann.stream("GET", DATA, params={"session_hash": "files"}) as stream:
            said = "".join(stream.iter_text())
        assert NO_VALUE in said
        assert "Traceback" not in "".join(capsys.readouterr())

    @pytest.mark.parametrize("value", [0, 21, True, 2.5, "4", None, [4], {"value": 4}])
    def test_where_a_number_belongs(self, server: Server, ann, capsys, value: object) -> None:
        sent = event(server, "k", fn_index=choice(server, "k"), data=[value])
        assert ann.post(JOIN, json=sent).status_code == 200
        with ann.stream("GET", DATA, params={"session_hash": "k"}) as stream:
            said = "".join(stream.iter_text())
        assert "be chosen any more" in said
        assert "k" not in server.house.conversations.preferences("ann")
        assert "Traceback" not in "".join(capsys.readouterr())


def choice(server: Server, name: str) -> int:
    """The number of the event that a field of the settings sends."""
    [field] = (number for number, one in server.page.blocks.items() if getattr(one, "elem_id", "") == name)
    return next(number for number, fn in server.page.fns.items() if fn.targets and fn.targets[0][0] == field)


class TestPolicies:
    """What scripts may do, and which sites may frame it."""

    def test_the_page_alone_may_run_scripts(self, ann, stranger) -> None:
        for client in (ann, stranger):
            assert client.get("/").headers["content-security-policy"] == POLICY
        for path in (
            "/config", "/js/page.js", "/theme.css", "/favicon.ico", "/healthz", "/readyz", "/metrics", "/v1/models",
            "/original/none", "/model-mark", "/gradio_api/app_id", "/login", "/openapi.json", "/monitoring",
        ):  # fmt: skip
            for client in (ann, stranger):
                assert client.get(path).headers["content-security-policy"] == DENY_ALL_POLICY, path

    def test_no_browser_keeps_what_is_a_users_own(self, ann, stranger) -> None:
        for path in ("/", "/config", "/gradio_api/login_check", "/model-mark", "/v1/models", "/metrics", "/none"):
            for client in (ann, stranger):
                assert client.get(path).headers["cache-control"] == "no-store", path
        assert stranger.get("/js/page.js").headers["cache-control"] == "no-cache"
        assert "cache-control" not in stranger.get("/theme.css").headers

    def test_what_is_refused_has_the_headers_too(self, server: Server, stranger) -> None:
        for sent, status in (({"Origin": "http://evil.example"}, 403), ({"Origin": "x"}, 400)):
            said = stranger.get("/config", headers=sent)
            assert (said.status_code, said.headers["content-security-policy"]) == (status, DENY_ALL_POLICY)
            assert {name: said.headers[name] for name in HEADERS} == HEADERS


class TestOriginals:
    def test_they_are_given_to_their_owner_alone_and_as_files(
        self, server: Server, ann, bob, stranger, tmp_path
    ) -> None:
        active = b"<script>alert(1)</script><p>The key hangs behind the door."
        (tmp_path / 'a"\n.html').write_bytes(active)
        server.house.documents.add("ann", [tmp_path / 'a"\n.html'], lambda *_: None, Event())
        [document] = server.house.documents.list("ann")
        path = f"/original/{urllib.parse.quote(document.id)}"
        given = ann.get(path)
        assert (given.status_code, given.content) == (200, active)
        assert given.headers["content-type"] == "application/octet-stream"
        assert given.headers["content-disposition"].startswith("attachment;")
        assert given.headers["x-content-type-options"] == "nosniff"
        assert given.headers["cache-control"] == "private, no-store"
        refused = bob.get(path)
        assert (refused.status_code, refused.text) == (404, NOT_THERE)
        assert stranger.get(path).status_code == 401
        assert ann.post(path).status_code == 404

    @pytest.mark.parametrize("path", ["none", "..%2f..%2fsequitur.db", "%2e%2e/config", "a/b", "", "%00"])
    def test_other_files_are_not_there(self, ann, path: str) -> None:
        assert ann.get(f"/original/{path}").status_code == 404


class TestOtherSites:
    @pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1"])
    def test_a_preflight_of_another_site_is_refused(self, stranger, origin: str) -> None:
        asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        said = stranger.options(JOIN, headers=asked)
        assert said.status_code == 403
        assert "access-control-allow-origin" not in said.headers

    def test_the_pages_own_preflight_is_answered(self, server: Server, stranger) -> None:
        own = server.url.rstrip("/")
        asked = {"Origin": own, "Access-Control-Request-Method": "POST"}
        assert stranger.options(JOIN, headers=asked).headers["access-control-allow-origin"] == own

    @pytest.mark.parametrize(
        "origin", ["http://[", "http://[12]", "http://a b", "x", "http://a:99999999", "http://", "javascript:1"]
    )
    def test_a_malformed_origin_is_told(self, stranger, origin: str) -> None:
        assert stranger.get("/", headers={"Origin": origin}).status_code == 400

    @pytest.mark.parametrize(
        "host", ["[", "[::1", "[12]", "[::::]", "a b", "127.0.0.1:x", "127.0.0.1:7860/x", "@127.0.0.1", "ä"]
    )
    def test_a_malformed_host_is_told(self, server: Server, host: str) -> None:
        assert raw(server, f"GET / HTTP/1.1\nHost: {host}\n\n").startswith("HTTP/1.1 400")

    def test_two_hosts_are_told(self, server: Server) -> None:
        assert raw(server, "GET / HTTP/1.1\nHost: 127.0.0.1\nHost: evil.example\n\n").startswith("HTTP/1.1 400")

    @pytest.mark.parametrize("header", ["X-Forwarded-Host", "X-Gradio-Server"])
    def test_what_claims_that_the_page_is_elsewhere_is_not_believed(self, ann, header: str) -> None:
        assert "evil.example" not in ann.get("/", headers={header: "http://evil.example"}).text

    def test_logging_out_takes_the_pages_own_button(self, server: Server) -> None:
        with entered(server, "bob") as client:
            assert client.get("/logout").status_code == 405
            assert client.post("/logout", headers={"Origin": "http://evil.example"}).status_code == 403
            assert client.get("/config").status_code == 200
            said = client.post("/logout", headers={"Origin": server.url.rstrip("/")})
            assert (said.status_code, said.headers["location"]) == (303, "./")
            assert client.get("/config").status_code == 401


class TestCookies:
    """What a log-in leaves in the browser: out of reach of scripts and other sites, and by HTTPS never without TLS."""

    @pytest.mark.parametrize(("scheme", "secure"), [("https", [True, True]), ("http", [False, True])])
    def test_of_the_token(self, server: Server, scheme: str, secure: list[bool]) -> None:
        # as a proxy with TLS on this computer says it
        proxied = {"X-Forwarded-Proto": scheme}
        elsewhere = httpx.get(server.url, headers={**proxied, "Host": "page.example"})
        assert ("strict-transport-security" in elsewhere.headers) is (scheme == "https")
        with httpx.Client(base_url=server.url, headers=proxied) as client:
            said = client.post("/login", data={"username": "ann", "password": PASSWORDS["ann"]})
            cookies = said.headers.get_list("set-cookie")
            attributes = [cookie.lower().split("; ") for cookie in cookies]
            assert sorted("secure" in cookie for cookie in attributes) == secure
            assert all("httponly" in cookie and "samesite=lax" in cookie for cookie in attributes)
            for cookie in cookies:
                sent = {**proxied, "Cookie": cookie.partition(";")[0]}
                assert httpx.get(f"{server.url}config", headers=sent).status_code == 200


def test_made_up_values_of_any_event_are_answered_with_a_sentence(server: Server, capsys) -> None:
    row = fuzz_events(Target(Served(server.url, os.getpid(), None)), 60, 1)
    assert row.through == ()
    assert row.tries >= 60
    assert "Traceback" not in "".join(capsys.readouterr())


def test_gradio_makes_no_table_of_its_events_after_each_of_them(server: Server) -> None:
    queue = server.page._queue  # noqa: SLF001 - Gradio gives it under no other name
    rows = [{"function": "ask", "status": "success", "process_time": 1.0, "session_hash": "s"}] * 3
    assert queue.compute_analytics_summary(rows) == {"functions": {}}
    assert queue.ANALYTICS_MAX_EVENTS == 1


def test_a_log_in_holds_at_another_process_on_the_same_database(server: Server) -> None:
    another = serve(*house(server.house.settings.data_dir, Script(), Loaded()))
    try:
        with entered(server, "ann") as here, httpx.Client(base_url=another.url, cookies=here.cookies) as there:
            assert (there.get("/config").status_code, there.get("/gradio_api/login_check").status_code) == (200, 200)
            there.post("/logout", headers={"Origin": another.url.rstrip("/")})
            assert [client.get("/config").status_code for client in (here, there)] == [401, 401]
    finally:
        another.close()


def test_too_many_guesses_are_told_with_the_time_to_wait(server: Server, stranger) -> None:
    for _ in range(5):
        assert stranger.post("/login", data={"username": "eve", "password": "guess"}).status_code == 400
    said = stranger.post("/login", data={"username": "eve", "password": "guess"})
    assert (said.status_code, said.headers["retry-after"]) == (429, "2")
    assert json.loads(said.text)["detail"].endswith("wait and try again.")
    with entered(server, "ann") as client:
        assert client.get("/config").status_code == 200


def test_a_page_without_logins_is_guarded_as_well(tmp_path: Path) -> None:
    built, logins = house(tmp_path, Script(), Loaded())
    server = serve(built, logins)
    try:
        with httpx.Client(base_url=server.url, timeout=20) as client:
            assert client.get("/config").status_code == 200
            assert client.post(JOIN, content=b"x" * (EVENT_BYTES + 1), headers=JSON).status_code == 413
            assert client.get("/gradio_api/heartbeat/tab").status_code == 404
            file = {"path": "http://192.0.2.1/", "meta": {"_type": "gradio.FileData"}}
            assert client.post(JOIN, json=event(server, "tab", "upload", data=[[file]])).status_code == 403
    finally:
        server.close()


def test_a_stranger_can_make_no_login(tmp_path: Path) -> None:
    built, logins = house(tmp_path, Script(), Loaded())
    logins.add("ann", PASSWORDS["ann"])
    server = serve(built, logins)
    wished = {"username": "eve", "name": "eve", "user": "eve", "password": "oats eve tea", "confirm": "oats eve tea"}
    usual = [f"/{name}" for name in ("signup", "sign-up", "register", "users", "users/add", "v1/users", "accounts")]
    # a parameter of a route is taken to be the name that is wished for
    routes = [re.sub(r"\{[^}]*\}", "eve", str(getattr(route, "path", ""))) for route in server.page.app.routes]
    try:
        with httpx.Client(base_url=server.url, timeout=20) as stranger:
            for path in [*usual, *filter(None, routes)]:
                for method in ("POST", "PUT"):
                    stranger.request(method, path, json=wished)
                    stranger.request(method, path, data=wished)
            assert len(routes) > 20
            assert logins.names() == ["ann"]
            assert stranger.get("/config").status_code == 401
        with httpx.Client(base_url=server.url, timeout=20) as eve:
            tried = eve.post("/login", data=wished)
            assert tried.status_code in {400, 429}, tried.text
    finally:
        server.close()
