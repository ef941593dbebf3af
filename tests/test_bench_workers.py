"""Two workers on a real PostgreSQL, one of them killed as it answers: nothing acknowledged is lost."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from assistant.errors import SettingsError
from benchmarks.commands import app


def test_a_worker_that_is_killed_costs_no_acknowledged_answer(postgres_url: str) -> None:
    asked = ["workers", "--database", postgres_url, "--people", "4", "--questions", "4", "--kills", "1"]
    done = CliRunner().invoke(app, [*asked, "--pause", "0.04", "--json"])
    assert done.exception is None
    found = json.loads(done.stdout)
    assert found["questions"] == found["acknowledged"] == 16
    assert (found["lost"], found["twice"], found["running"], found["strangers"]) == (0, 0, 0, 0)
    assert found["interrupted"]
    assert set(found["interrupted"]) <= {"absent", "stopped", "done"}


def test_a_file_of_sqlite_is_refused() -> None:
    done = CliRunner().invoke(app, ["workers", "--database", "sqlite://"])
    assert isinstance(done.exception, SettingsError)
