"""The reader of text that is written backwards."""

from __future__ import annotations

from pathlib import Path

from assistant.library.readers import read, suffixes


def test_lines_are_read_backwards(tmp_path: Path) -> None:
    file = tmp_path / "lentils.rev"
    file.write_text("nietorp dloh slitneL\n\nnori dloh staO\n", encoding="utf-8")
    assert ".rev" in suffixes()
    assert [block.text for block in read(file)] == ["Lentils hold protein", "Oats hold iron"]
