"""Two pages behind HAProxy on a real PostgreSQL, one of them killed as people click: nothing acknowledged is lost."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from assistant.errors import SettingsError
from benchmarks import load
from benchmarks.commands import app
from benchmarks.proxy import CONFIGURATION, configured
from benchmarks.visitor import RefusedError, Visitor
from benchmarks.workers import LIMIT, Level

needs_haproxy = pytest.mark.skipif(shutil.which("haproxy") is None, reason="HAProxy is not installed")


@needs_haproxy
def test_a_worker_that_is_killed_costs_no_acknowledged_click(postgres_url: str) -> None:
    asked = ["workers", "--database", postgres_url, "--people", "2", "--clicks", "3", "--kills", "1"]
    asked += ["--clock", "60", "--json"]
    done = CliRunner().invoke(app, asked)
    assert done.exception is None
    found = json.loads(done.stdout)["killed"]
    assert sum(found["acknowledged"].values()) >= 6
    assert (found["lost"], found["mixed"], found["stuck"], found["logins_again"]) == ([], [], [], 0)
    again = CliRunner().invoke(app, asked)
    assert isinstance(again.exception, SettingsError)
    assert "not empty" in str(again.exception)


def test_a_file_of_sqlite_is_refused() -> None:
    done = CliRunner().invoke(app, ["workers", "--database", "sqlite://"])
    assert isinstance(done.exception, SettingsError)


@needs_haproxy
def test_the_documented_configuration_of_haproxy_is_one(tmp_path: Path) -> None:
    file = tmp_path / "haproxy.cfg"
    file.write_text(configured(CONFIGURATION.read_text(), 8080, [7001, 7002]))
    done = subprocess.run(["haproxy", "-c", "-f", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr


def test_people_count_as_held_by_time_and_by_what_they_got() -> None:
    level = Level(2, 8, 1.5, 2.0, LIMIT, (), ())
    assert level.held
    assert not Level(2, 8, 1.5, 2.0, LIMIT + 0.1, (), ()).held
    assert not Level(2, 8, 1.5, 2.0, 3.0, ("no reply",), ()).held
    assert not Level(2, 8, 1.5, 2.0, 3.0, (), ("p1x got p2x1",)).held
    assert not Level(2, 8, 0.0, -1.0, load.percentile([], 95), (), ()).held


def served_by(answer: str, status: int = 200) -> Visitor:
    """A visitor of a page that answers so, whatever is asked."""

    def respond(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/config"):
            pieces = {"components": [{"id": 1, "props": {"elem_id": "files"}}]}
            return httpx.Response(
                200, json={**pieces, "dependencies": [{"id": 0, "targets": [[1, "upload"]], "inputs": []}]}
            )
        if request.url.path.endswith("/data"):
            return httpx.Response(status, text=answer)
        return httpx.Response(200, json=["a.txt"] if request.url.path.endswith("/upload") else {"event_id": "e"})

    visitor = Visitor("http://page")
    visitor.client = httpx.Client(base_url="http://page", transport=httpx.MockTransport(respond))
    return visitor


def test_a_document_that_was_not_added_is_no_acknowledged_one() -> None:
    html = json.dumps(
        '<div class="problems" role="alert">\n<p>Not added:</p>\n<ul><li dir="auto">a.txt: it is too long</li></ul>'
    )
    over = '{"msg": "process_completed", "success": true}'
    with pytest.raises(RefusedError, match="it is too long"):
        served_by(f"data: {html}\n\ndata: {over}\n\n").upload("a.txt", b"x")
    assert served_by(f"data: {over}\n\n").upload("a.txt", b"x").text


def test_a_proxy_whose_server_ended_is_a_server_that_is_gone() -> None:
    with pytest.raises(httpx.HTTPError):
        served_by("", 502).upload("a.txt", b"x")
