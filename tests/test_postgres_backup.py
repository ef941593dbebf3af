"""The commands of docs/postgres.md write a backup of a real PostgreSQL and the documents beside it, and put it back."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from assistant.library.index import add_documents, list_documents
from assistant.library.shelves import open_library
from assistant.settings import Settings
from assistant.store.database import connect
from assistant.store.sessions import Sessions
from assistant.store.users import Logins
from ptkb.store import Ptkb
from tests.fixtures_postgres import Server

PAGE = Path(__file__).parents[1] / "docs" / "postgres.md"
PASSWORD = "correct horse"


def commands(name: str) -> str:
    """Those of the page beneath a comment of this name."""
    [found] = re.findall(rf"<!-- {name} -->\n```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


@pytest.mark.lucene
def test_what_is_put_back_is_what_was_there(postgres: Server, postgres_url: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", database=postgres_url)
    restored = Settings(data_dir=tmp_path / "data", database=postgres.url("sequitur_restored"))
    engine = connect(postgres_url)
    logins = Logins(engine)
    logins.add("ada", PASSWORD)
    Sessions(engine, logins)["secret"] = "ada"
    for name in ("before", "after"):
        (tmp_path / f"{name}.txt").write_text(f"Lentils cook in 20 minutes, {name} anything else.")

    def run(script: str) -> None:
        addresses = {"DATABASE": settings.database, "RESTORED": restored.database, "DATA": str(settings.data_dir)}
        environment = {**os.environ, **addresses, "PATH": f"{postgres.programs}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-e", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    Ptkb(engine).add("ada", "I'm vegan.")
    add_documents("documents", [tmp_path / "before.txt"], settings)
    run(commands("backup"))
    Ptkb(engine).add("ada", "I moved to Oslo.")
    add_documents("documents", [tmp_path / "after.txt"], settings)
    engine.dispose()
    run(commands("restore"))

    again = connect(restored.database_url)
    assert [fact.text for fact in Ptkb(again).facts("ada")] == ["I'm vegan."]
    assert Logins(again).check("ada", PASSWORD)
    assert Sessions(again, Logins(again)).get("secret") is None
    again.dispose()
    assert [document.name for document in list_documents("documents", restored)] == ["before.txt"]
    assert "before anything" in open_library("documents", restored).search("lentils", 1)[0].text
    kept = connect(postgres_url)
    assert [fact.text for fact in Ptkb(kept).facts("ada")] == ["I'm vegan.", "I moved to Oslo."]
    kept.dispose()
