"""The reader of subtitles."""

from pathlib import Path

from assistant.library.readers import read

FILE = """1
00:00:01,000 --> 00:00:03,500
Lentils are rich
in protein.

2
00:00:04,000 --> 00:00:05,000
Oats hold fibre.
"""


def test_what_is_said_is_read_without_numbers_and_times(tmp_path: Path) -> None:
    (tmp_path / "film.srt").write_text(FILE, encoding="utf-8")
    blocks = read(tmp_path / "film.srt")
    assert [" ".join(block.text.split()) for block in blocks] == ["Lentils are rich in protein.", "Oats hold fibre."]
