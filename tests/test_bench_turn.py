"""Whole turns timed: what counts as first source and first word, and the medians. Times themselves are not tested."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from typer.testing import CliRunner

from assistant.errors import DataError, SettingsError
from assistant.protocols import Parts
from assistant.types import Choices
from benchmarks import commands, peak
from benchmarks import turn as bench_turn
from benchmarks.turn import QUESTIONS, Timing, medians, peak_memory
from tests.scripted import FixedRetriever, ScriptedLLM

ANSWER = "Lentils are rich in protein."


class Talker(ScriptedLLM):
    """Says the same to everything."""

    def _next(self, messages: object) -> str:
        return ANSWER


def test_every_question_is_timed_with_what_it_took(parts: Parts) -> None:
    seen: list[Timing] = []
    timings = bench_turn.bench(replace(parts, llm=Talker()), Choices(), seen.append)
    assert timings == seen
    assert [timing.question for timing in timings] == [question for question, _ in QUESTIONS]
    for timing in timings:
        assert 0 < timing.first_source < timing.whole
        assert 0 < timing.first_word <= timing.whole
        assert 0 <= timing.share < 1
        assert timing.prompt_tokens > 0
        assert timing.completion_tokens > 0


def test_medians_are_over_the_turns_that_have_the_measure() -> None:
    def timing(first_source: float, whole: float) -> Timing:
        return Timing("q", first_source, 1.0, whole, 0.5, 100, 10, {}, {})

    found = medians([timing(-1, 2), timing(3, 4), timing(5, 9)])
    assert (found["first_source"], found["whole"]) == (4, 4)
    assert medians([timing(-1, 2)])["first_source"] == -1


def test_turns_without_a_source_are_told_as_such(parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without = replace(parts, llm=Talker(), retriever=FixedRetriever([]))
    loader = SimpleNamespace(settings=parts.settings, parts=lambda _user, _choices: without)
    monkeypatch.setattr(bench_turn, "load_with_bars", lambda _: loader)
    words = ["turn", "--runs", "1", "--out", str(tmp_path / "b"), "--data-dir", str(tmp_path)]
    result = CliRunner().invoke(commands.app, words, catch_exceptions=False, env={"COLUMNS": "160"})
    [row] = [line for line in result.stdout.splitlines() if "median" in line]
    assert row.startswith("| median |  |")
    report = json.loads((tmp_path / "b" / "turn.json").read_text())["auto"]
    assert len(report["runs"][0]) == len(QUESTIONS)
    assert report["medians"][0]["first_source"] == -1


def test_a_folder_that_takes_no_results_is_told_before_anything_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for into in (file, file / "below"):
        words = ["turn", "--out", str(into), "--data-dir", str(tmp_path / "data")]
        with pytest.raises(DataError, match=r"The results can't be written to .*; choose another"):
            CliRunner().invoke(commands.app, words, catch_exceptions=False)
    assert file.read_text() == "mine"


def test_results_that_can_not_be_written_are_told(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = replace(parts, llm=Talker(), retriever=FixedRetriever([]))
    loader = SimpleNamespace(settings=parts.settings, parts=lambda _user, _choices: silent)
    monkeypatch.setattr(bench_turn, "load_with_bars", lambda _: loader)
    (tmp_path / "b" / "turn.json").mkdir(parents=True)
    words = ["turn", "--runs", "1", "--out", str(tmp_path / "b"), "--data-dir", str(tmp_path)]
    with pytest.raises(DataError, match=r"The results can't be written to .*; choose another"):
        CliRunner().invoke(commands.app, words, catch_exceptions=False)


def test_the_command_line_starts_where_there_is_no_resource_module() -> None:
    # psutil itself takes it, but on Unix alone
    script = "import sys, psutil; sys.modules['resource'] = None; import assistant.__main__, benchmarks.commands"
    subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[1], timeout=120, check=True)


@pytest.mark.parametrize(("system", "count"), [("linux", 2_000_000), ("darwin", 2_048_000_000)])
def test_peak_memory_is_told_in_bytes_whatever_the_system_counts(
    system: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "Process", lambda: SimpleNamespace(children=lambda **_: []))
    resource = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda _: SimpleNamespace(ru_maxrss=count))
    monkeypatch.setitem(sys.modules, "resource", resource)
    monkeypatch.setattr(sys, "platform", system)
    assert peak.peak_bytes() == 2_048_000_000
    assert peak_memory() == pytest.approx(2.048)


def test_what_an_engine_holds_in_a_process_of_its_own_counts() -> None:
    before = peak.peak_bytes()
    code = "held = bytes(range(256)) * 400_000; print(flush=True); input()"  # 102 MB
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as engine:  # type: ignore[call-overload]
        engine.stdout.readline()
        assert peak.peak_bytes() > before + 90_000_000
        engine.communicate(b"\n")


def test_peak_memory_is_told_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    process = SimpleNamespace(memory_info=lambda: SimpleNamespace(peak_wset=7), children=lambda **_: [])
    monkeypatch.setattr(psutil, "Process", lambda: process)
    monkeypatch.setattr(sys, "platform", "win32")
    assert peak.peak_bytes() == 7


@pytest.mark.model
@pytest.mark.lucene
@pytest.mark.timeout(900)
def test_engines_are_asked_in_turns_and_told_apart(smollm_path: Path, tmp_path: Path) -> None:
    """One of them is the other with settings of its own: no second kind need be loaded to tell two apart."""
    brief = tmp_path / "brief.toml"
    brief.write_text('[llm]\nbackend = "llama.cpp"\n[turn]\nmax_answer_tokens = 8\n', encoding="utf-8")
    words = [
        "turn",
        "--engines",
        f"llama.cpp,{brief}",
        "--limit",
        "1",
        "--runs",
        "1",
        "--model",
        "smollm2-135m",
        "--json",
    ]
    command_line = [sys.executable, "-m", "assistant", "bench", *words]
    # so small a model passes no second look, and every passage would be asked alone
    quick = {**os.environ, "SEQUITUR_TURN__ADDRESSES_THRESHOLD": "0"}
    result = subprocess.run(command_line, capture_output=True, text=True, timeout=800, check=True, env=quick)
    found = json.loads(result.stdout)["engines"]
    assert set(found) == {"llama.cpp", "brief"}
    assert found["brief"]["written"] < found["llama.cpp"]["written"]
    for one in found.values():
        assert 0 < one["first_word"] <= one["whole"]
        assert one["read"] > 0
        assert one["written"] > 0
        assert 0.3 < one["memory_gb"] < 20


def test_an_engine_that_does_not_exist_is_told() -> None:
    with pytest.raises(SettingsError, match=r"no engine vllm; give some of llama\.cpp, openvino, server, transformers"):
        CliRunner().invoke(commands.app, ["turn", "--engines", "vllm"], catch_exceptions=False)


def test_engines_of_one_name_are_told(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "brief.toml").write_text("[turn]\nmax_answer_tokens = 8\n", encoding="utf-8")
    both = f"{tmp_path / 'a' / 'brief.toml'},{tmp_path / 'b' / 'brief.toml'}"
    with pytest.raises(SettingsError, match="Two of --engines have one name"):
        CliRunner().invoke(commands.app, ["turn", "--engines", both], catch_exceptions=False)


def test_a_file_with_settings_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"missing\.toml"):
        CliRunner().invoke(commands.app, ["turn", "--engines", str(tmp_path / "missing.toml")], catch_exceptions=False)
