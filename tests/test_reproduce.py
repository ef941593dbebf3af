"""Tables that one command makes anew: what there is, whether its code has changed, and one of them made for real."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest
from typer import Exit

from assistant.commands.reproduce import Maker, reproduce
from assistant.errors import DataError, SettingsError
from assistant.evaluation import looked_at, tables
from assistant.evaluation.looked_at import LookedAtList, LookedAtSet, SampleSpec
from assistant.evaluation.table_changes import field_changes
from assistant.evaluation.tables import Data, Derived, Provenance, Registry, Table
from assistant.experiment.datasets import sample

SHARED = Path(__file__).parents[2] / "shared" / "data"
ROOT = tables.ROOT
REGISTRY = """
[tables.pairs]
title = "Two pairs"
page = "support.md"
model = "the judge"
modules = ["judge/*.py"]
columns = { pairs = "pairs", recall = "recall" }
runs = [{ label = "both", command = "evaluate support --pairs pairs.jsonl" }]
"""
PAIRS = [
    {"claim": "Lentils hold iron.", "evidence": "Lentils hold iron and protein.", "label": "supported"},
    {"claim": "Lentils hold gold.", "evidence": "Lentils hold iron and protein.", "label": "not_supported"},
]


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of one table, which measures one module."""
    root = tmp_path / "checkout"
    for name, text in {
        "docs/results/tables.toml": REGISTRY,
        "judge/one.py": "ONE = 1\n",
        "pairs.jsonl": "".join(json.dumps(pair) + "\n" for pair in PAIRS),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    git(root.parent, "init", "-q", str(root))
    git(root, "add", "-A")
    git(root, "commit", "-qm", "First")
    return root


def made(root: Path, **more: object) -> Provenance:
    table = tables.read_registry(root).table("pairs")
    runs = [{"label": "both", "command": "evaluate support", "summary": {"pairs": 2, "recall": 1.0}}]
    return Provenance(
        "pairs", tables.commit_of(root), tables.code_hash(table, root), "2026-01-02", "the judge", 0, runs=runs, **more
    )


def test_what_the_registry_names_is_there() -> None:
    registry = tables.read_registry()
    for name, table in registry.tables.items():
        assert tables.code_hash(table), name
        assert (ROOT / "docs/results" / table.page).exists(), name
        assert all(one in registry.data for one in table.data), name
        assert all(run.command.startswith(("evaluate ", "bench ")) for run in table.runs), name
    assert all(rule.of in registry.data for rule in registry.derived.values())


def test_every_kept_table_is_written_from_its_own_rows() -> None:
    registry = tables.read_registry()
    kept = {name: found for name in registry.tables if (found := tables.read_provenance(name))}
    assert kept
    for name, found in kept.items():
        page = ROOT / "docs/results/tables" / f"{name}.md"
        assert page.read_text(encoding="utf-8") == tables.rendered(found, registry.tables[name])
        assert all({"run", "id"} <= row.keys() for row in tables.read_stored_rows(name)), name


def test_a_table_says_by_itself_that_its_code_has_changed(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tables.read_registry(checkout).table("pairs")
    assert tables.state("pairs", table, checkout) == (
        False, "not made anew: its figures stand in support.md alone",
    )  # fmt: skip
    tables.store_rows(made(checkout), [{"id": "1", "claim": "Lentils.", "probability": 0.9}], table, checkout)
    is_current, says = tables.state("pairs", table, checkout)
    assert is_current
    assert says.startswith("as the code is (of 2026-01-02, commit ")
    reproduce(checkout=checkout, check=True)
    (checkout / "judge/one.py").write_text("ONE = 2\n", encoding="utf-8")
    git(checkout, "commit", "-qam", "Two, not one")
    assert "older than the code that it measures" in tables.state("pairs", table, checkout)[1]
    assert tables.state("pairs", table, checkout)[1].endswith(": 1 commits since, the last 'Two, not one'")
    reproduce(checkout=checkout)
    with pytest.raises(Exit):
        reproduce(checkout=checkout, check=True)
    assert capsys.readouterr().out.count("pairs: ") == 3


def test_rows_are_kept_without_what_the_data_says_and_the_same_rows_are_the_same_bytes(checkout: Path) -> None:
    table = tables.read_registry(checkout).table("pairs")
    row = {"id": "1", "claim": "Lentils.", "pool": [{"text": "iron", "votes": 2}], "passages": ["p1"], "answer": "iron"}
    path, page = tables.store_rows(made(checkout), [row], table, checkout)
    before = path.read_bytes()
    [first, second] = gzip.decompress(before).decode().splitlines()
    assert json.loads(first)["commit"] == tables.commit_of(checkout)
    assert json.loads(second) == {"id": "1", "pool": [{"votes": 2}], "passages": ["p1"], "answer": "iron"}
    assert "| both | 2 | 1.000 |" in page.read_text(encoding="utf-8")
    tables.store_rows(made(checkout), [row], table, checkout)
    assert path.read_bytes() == before
    page.unlink()
    reproduce(checkout=checkout, pages=True)
    assert "| both | 2 | 1.000 |" in page.read_text(encoding="utf-8")


def test_a_table_with_a_line_for_each_strategy() -> None:
    each = {"of": "strategies", "columns": {"EM": "em"}, "beside": {"difference": "differences.{}.em"}}
    run = {"label": "NQ", "command": "evaluate answers"}
    table = Table(title="T", page="p.md", modules=("x",), columns={}, each=each, runs=(run,))  # type: ignore[arg-type]
    em = {"value": 0.5, "low": 0.25, "high": 0.75}
    summary = {"strategies": {"concat": {"em": em}, "a@b:0.5": {"em": em}}, "differences": {"a@b:0.5": {"em": em}}}
    text = tables.rendered(Provenance("t", "", "", "", "", 0, runs=[{**run, "summary": summary}]), table)
    assert "| NQ: concat | 0.500 [0.250, 0.750] |  |" in text
    assert "| NQ: a@b:0.5 | 0.500 [0.250, 0.750] | 0.500 [0.250, 0.750] |" in text


def test_a_table_is_made_by_its_command(checkout: Path, tmp_path: Path) -> None:
    reproduce(names=["pairs"], checkout=checkout, data_dir=tmp_path / "data")
    found = tables.read_provenance("pairs", checkout)
    assert found
    assert found.commit == tables.commit_of(checkout).rstrip("+")
    assert found.runs[0]["summary"]["pairs"] == 2
    assert [row["label"] for row in tables.read_stored_rows("pairs", checkout)] == ["supported", "not_supported"]
    (checkout / "docs/results/tables.toml").write_text(
        REGISTRY.replace("evaluate support", "evalute"), encoding="utf-8"
    )
    with pytest.raises(DataError, match=r"evalute --pairs pairs.jsonl` failed"):
        reproduce(names=["pairs"], checkout=checkout, data_dir=tmp_path / "data")


def test_the_gate_says_what_moved_beyond_chance(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def making(*probabilities: float) -> None:
        rows = [{"run": "both", "id": str(n), "probability": one} for n, one in enumerate(probabilities)]
        monkeypatch.setattr(Maker, "make", lambda *_: (made(checkout), rows))

    def gate() -> str:
        reproduce(names=["pairs"], checkout=checkout, gate=True, data_dir=tmp_path)
        return capsys.readouterr().out

    making(0.9, 0.8, 0.1)
    reproduce(names=["pairs"], checkout=checkout, data_dir=tmp_path)
    capsys.readouterr()
    assert gate() == "pairs: as before.\n"
    making(0.9, 0.8, 0.2)
    assert gate() == "pairs: both: probability +0.033 [+0.000, +0.100] of 3.\n"
    making(0.5, 0.4, 0.0)
    with pytest.raises(Exit):
        gate()
    assert "both: probability -0.300 [-0.400, -0.100] of 3 (beyond chance)." in capsys.readouterr().out


def test_words_are_counted_and_times_are_not_compared() -> None:
    before = [
        {"run": "dev", "id": "1", "found": "question", "seconds": 1, "cost": {"tokens": 5}},
        {"run": "dev", "id": "2", "found": "talk", "seconds": 1, "cost": {"tokens": 5}},
        {"run": "dev", "id": "gone", "found": "talk", "seconds": 1, "cost": {"tokens": 5}},
    ]
    after = [{**row, "seconds": 2, "found": "question", "cost": {"tokens": 7}} for row in before[:2]]
    told = [str(one) for one in field_changes(before, [*after, {**after[0], "id": "new"}])]
    assert told == ["dev: found is another in 1 of 2", "dev: cost.tokens +2.000 [+2.000, +2.000] of 2"]


def test_what_is_missing_is_told_before_anything_runs(checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="'pears' is no table; there are: pairs"):
        reproduce(names=["pears"], checkout=checkout)
    with pytest.raises(DataError, match=r"7,347 passages of Wikipedia.* from .*github.com/nelson-liu"):
        reproduce(names=["relevance"], data=tmp_path)
    with pytest.raises(SettingsError, match="come with Sequitur's source alone"):
        reproduce(checkout=tmp_path)
    (checkout / "docs/results/tables.toml").write_text(REGISTRY + "colour = 1\n", encoding="utf-8")
    with pytest.raises(DataError, match="is broken"):
        reproduce(checkout=checkout)
    (checkout / "docs/results/tables.toml").write_text(REGISTRY.replace("judge/*", "jury/*"), encoding="utf-8")
    with pytest.raises(DataError, match=r"'jury/.*' of 'Two pairs' names no file"):
        reproduce(names=["pairs"], checkout=checkout, data_dir=tmp_path)


def questions(path: Path, count: int) -> Path:
    lines = [{"id": f"q{n}", "question": f"What is {n}?", "gold": [f"p{n % 2}"]} for n in range(count)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_files_are_derived_by_a_rule(tmp_path: Path) -> None:
    questions(tmp_path / "all.jsonl", 60)
    (tmp_path / "corpus.jsonl").write_text('{"id": "p0", "title": "Iron"}\n{"id": "p1", "title": "Gold"}\n')
    rules = {
        "third.jsonl": Derived(of="all.jsonl"),
        "titles.jsonl": Derived(of="all.jsonl", by="title", titles="corpus.jsonl"),
        "last.jsonl": Derived(of="all.jsonl", last=3),
    }
    registry = Registry(tables={}, data={"all.jsonl": Data(what="", source="", licence="")}, derived=rules)
    tables.derive(registry, list(rules), tmp_path, tmp_path / "work")
    third, titles, last = ((tmp_path / "work" / name).read_text().splitlines() for name in rules)
    assert 8 <= len(third) <= 32
    assert {json.loads(line)["gold"][0] for line in titles} < {"p0", "p1"} or len(titles) in {0, 30, 60}
    assert [json.loads(line)["id"] for line in last] == ["q57", "q58", "q59"]


def test_what_was_looked_at_is_told_by_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = questions(tmp_path / "all.jsonl", 20)
    drawn = SampleSpec(file=path.name, why="read", seed=1, skip=2, limit=3)
    found = looked_at.ids_of(
        LookedAtList(sets=(LookedAtSet(name="Q", samples=(drawn,)),)), Registry(tables={}), tmp_path
    )
    assert found == {"Q": sorted(f"q{n}" for n in sample(range(20), 3, 1, 2))}
    (tmp_path / "docs/results").mkdir(parents=True)
    looked_at.write(found, tmp_path)
    ids = looked_at.looked_at_ids(tmp_path)
    assert ids == set(found["Q"])
    monkeypatch.setattr(looked_at, "looked_at_ids", lambda: ids)
    [says] = looked_at.with_looked_at_remark({"remarks": {}}, ["new", *ids])["remarks"].items()
    assert says == ("of 4 questions that were looked at while this was made (docs/results/looked_at.toml)", 3)
    assert looked_at.with_looked_at_remark({"em": 1}, ["new"]) == {"em": 1}


@pytest.mark.skipif(not SHARED.exists(), reason="the data isn't here")
def test_the_ids_that_are_kept_are_those_of_the_samples() -> None:
    found = looked_at.ids_of(tables.read_list(ROOT / looked_at.LIST_FILE, LookedAtList), tables.read_registry(), SHARED)
    assert found == json.loads((ROOT / looked_at.IDS_FILE).read_text(encoding="utf-8"))
