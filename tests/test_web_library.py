"""Documents that a user adds: what the page is told of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.settings import Settings
from assistant.web.library import OwnDocuments


@pytest.mark.lucene
def test_only_what_was_not_there_yet_counts_as_added(settings: Settings, tmp_path: Path) -> None:
    documents, file = OwnDocuments(settings), tmp_path / "key.txt"
    for text, problems in (
        ("The key hangs behind the door.", []),
        ("The key hangs behind the door.", ["key.txt: it was there already and has not changed"]),
        ("The key hangs in the shed.", []),
    ):
        file.write_text(text)
        assert documents.add("ann", [file], lambda done, total: None) == problems
    assert [one.name for one in documents.list("ann")] == ["key.txt"]
