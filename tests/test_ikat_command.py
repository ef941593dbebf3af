"""The commands of TREC iKAT as they are typed: a real index, a real (small) model, real files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from assistant.commands import ikat
from assistant.commands.option_groups import Group
from assistant.errors import DataError, LibraryError, ModelError, SettingsError
from tests.fixtures_models import sharing_models
from tests.test_ikat_topics import topics_of, write
from tests.test_quality_step import MANNERS, trained

pytest_plugins = ["tests.fixtures_models"]


def typed(*words: object) -> Result:
    app = Group()
    app.command("ikat")(ikat.ikat)
    app.command("ikat-validate")(ikat.validate)
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def passages(folder: Path) -> Path:
    path = folder / "passages.jsonl"
    texts = [
        "The DASH diet is rich in vegetables.",
        "Oslo is the capital of Norway.",
        "A healthy diet has little salt.",
        f"Which diet suits me? {MANNERS['junk']}",
    ]
    records = [{"id": f"clueweb22-en0000-00-00000:{n}", "contents": text} for n, text in enumerate(texts)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.model
@pytest.mark.lucene
@pytest.mark.usefixtures("no_second_look")
def test_a_run_end_to_end_that_is_not_played_twice(smollm_path, embedder, tmp_path: Path) -> None:
    topics = write(tmp_path, topics_of(2025)[1:])
    out = tmp_path / "run"
    words = ["ikat", "--topics", topics, "--index", passages(tmp_path), "--run-name", "tiny", "--out", out]
    words += ["--model", "smollm2-135m", "--strategy", "concat", "--k", 3, "--data-dir", sharing_models(tmp_path)]
    words += ["--quality", trained(tmp_path)]
    result = typed(*words)
    assert result.exit_code == 0
    assert "tiny.jsonl: 0 errors" in result.stdout
    [line] = (out / "tiny.jsonl").read_text().splitlines()
    assert json.loads(line)["turn_id"] == "9-2_1"
    assert (out / "tiny.trec").read_text().startswith("9-2_1 Q0 clueweb22-en0000-00-00000:")
    rows = (out / "rows.jsonl").read_text()
    assert json.loads(rows)["dropped"] == {"clueweb22-en0000-00-00000:3": "junk"}
    again = typed(*words, "--reply", "digests")
    assert again.exit_code == 0
    assert (out / "rows.jsonl").read_text() == rows
    with pytest.raises(DataError, match="holds a run with another model and quality"):
        typed(*words[:-2])


def test_bad_input_is_told_before_anything_is_loaded(tmp_path: Path) -> None:
    good = write(tmp_path, topics_of(2023))
    words = ["ikat", "--run-name", "r", "--out", tmp_path / "out"]
    with pytest.raises(DataError, match=r"nowhere\.json can't be read"):
        typed(*words, "--topics", tmp_path / "nowhere.json")
    with pytest.raises(DataError, match="can't name a run"):
        typed("ikat", "--run-name", "my run", "--out", tmp_path / "out", "--topics", good)
    with pytest.raises(DataError, match="'rows' is what the run's own files are called"):
        typed("ikat", "--run-name", "rows", "--out", tmp_path / "out", "--topics", good)
    (tmp_path / "2025").mkdir()
    with pytest.raises(DataError, match="'our team' can't name the team"):
        typed(*words, "--topics", write(tmp_path / "2025", topics_of(2025)), "--team", "our team")
    with pytest.raises(SettingsError, match="'best' is not one of the loops"):
        typed(*words, "--topics", good, "--loop", "best")
    with pytest.raises(LibraryError, match="give one of them"):
        typed(*words, "--topics", good, "--library", "mine", "--index", tmp_path)
    with pytest.raises(ModelError, match=r"nowhere\.npz is no model of passage quality"):
        typed(*words, "--topics", good, "--quality", tmp_path / "nowhere.npz")
    with pytest.raises(LibraryError, match="There is no index in"):
        typed(*words, "--topics", good, "--index", tmp_path)
    assert not (tmp_path / "out").exists()


@pytest.mark.lucene
def test_what_holds_nothing_is_refused(tmp_path: Path) -> None:
    words = ["ikat", "--run-name", "r", "--out", tmp_path / "out", "--topics", write(tmp_path, topics_of(2023))]
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    with pytest.raises(LibraryError, match=r"empty\.jsonl can't be used: it holds no text"):
        typed(*words, "--index", empty, "--data-dir", tmp_path)
    with pytest.raises(LibraryError, match="nothing-there"):
        typed(*words, "--library", "nothing-there", "--data-dir", tmp_path)


def test_validating_says_what_is_wrong_and_fails(tmp_path: Path) -> None:
    topics, run = write(tmp_path, topics_of(2023)), tmp_path / "r.trec"
    run.write_text("9-1_1 Q0 clueweb22-en0000-00-00000:1 1 1.0 r\n9-1_2 Q0 p 1 1.0 r\n9-2_1 Q0 p 1 1 r\n")
    result = typed("ikat-validate", run, "--topics", topics)
    assert result.exit_code == 0
    assert "warning: 9-1_2: the ranking has ids that are not ClueWeb22's, such as p" in result.stdout
    run.write_text("9-1_1 Q0 p 1 1.0\n" * 30)
    with pytest.raises(DataError, match=r"iKAT 2023 would refuse r\.trec"):
        typed("ikat-validate", run, "--topics", topics)
