"""Which models this computer runs: what was measured, how it is scaled, and what is offered."""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Timer

import psutil
import pytest
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.errors import ModelError
from assistant.llm import rating
from assistant.llm.backends.llama_cpp import LlamaCpp
from assistant.llm.catalogue import Catalogue
from assistant.llm.known_models import AddedServer, KnownModels
from assistant.llm.load import SMALL
from assistant.llm.rating import Rating, Verdict, better_model, model_ratings
from assistant.llm.speed_test import MeasuredSpeed, measure_speed, processor_of, speeds
from assistant.settings import LLMSettings, Settings
from assistant.types import Completion, Messages, Options
from tests.scripted import ScriptedLLM

GIB = 1 << 30
CODER = "qwen2.5-coder-1.5b-instruct"
memory = namedtuple("memory", "available")


@pytest.fixture
def here(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path, hub=False, llm=LLMSettings(backend="llama.cpp"))


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    def have(gib: float) -> None:
        monkeypatch.setattr(psutil, "virtual_memory", lambda: memory(int(gib * GIB)))

    have(64)
    return have


def noted(settings: Settings, *, model: str = CODER, size: int | None = None, **values: object) -> None:
    """One more speed in the file, of this machine unless said otherwise."""
    entry = Catalogue.load().listed_entry(model)
    backend = settings.llm.backend
    speed = {
        "model": model,
        "backend": backend,
        "processor": processor_of(backend, settings.llm),
        "size": entry.size if size is None else size,
        "read": 100.0,
        "written": 10.0,
        **values,
    }
    file = settings.data_dir / "speeds.json"
    file.write_text(json.dumps([*(json.loads(file.read_text()) if file.exists() else []), speed]))


def by_name(ratings: list[Rating]) -> dict[str, Rating]:
    return {one.entry.name: one for one in ratings}


# --- rating ---------------------------------------------------------------------------------------------------------


def test_before_anything_is_measured_memory_alone_decides_and_nothing_is_offered(here, free) -> None:
    free(4.0)
    ratings = model_ratings(here)
    verdicts = {name: one.verdict for name, one in by_name(ratings).items()}
    assert verdicts[SMALL] is verdicts[CODER] is Verdict.FITS
    assert verdicts["qwen2.5-7b-instruct"] is verdicts["llama-3.1-8b-instruct-gguf"] is Verdict.TOO_LARGE
    assert all(one.seconds is None and not one.here and not one.best for one in ratings)
    assert better_model(ratings, "default") is None
    sizes = [one.entry.parameters for one in ratings]
    assert sizes == sorted(sizes)


def test_a_turns_time_follows_from_the_speed_and_the_size(here, free) -> None:
    noted(here)
    found = by_name(model_ratings(here))
    coder = found[CODER].seconds
    assert coder == pytest.approx(1.5 + 600 / 100 + 50 / 10)
    seven = found["qwen2.5-7b-instruct"]
    assert seven.seconds - 1.5 == pytest.approx((coder - 1.5) * seven.entry.size / found[CODER].entry.size)
    assert seven.verdict is Verdict.SLOW
    assert found["llama-3.2-3b-instruct"].verdict is Verdict.FITS


def test_a_model_for_tests_is_never_the_best(here, free) -> None:
    noted(here, read=1.0, written=0.1)
    patient = here.model_copy(update={"llm": here.llm.model_copy(update={"target_turn_seconds": 150.0})})
    [only] = [one for one in model_ratings(patient) if one.verdict is Verdict.FITS]
    assert (only.entry.name, only.best) == ("smollm2-135m", False)


def test_the_models_own_speed_counts_and_else_that_of_the_nearest(here, free) -> None:
    noted(here)
    noted(here, model="qwen2.5-7b-instruct", read=50.0, written=5.0)
    found = by_name(model_ratings(here))
    assert found["qwen2.5-7b-instruct"].seconds == pytest.approx(1.5 + 12 + 10)
    eight, seven = found["llama-3.1-8b-instruct-gguf"], found["qwen2.5-7b-instruct"]
    assert eight.seconds == pytest.approx(1.5 + 22 * eight.entry.size / seven.entry.size)


def test_speeds_of_other_engines_and_processors_do_not_count(here, free) -> None:
    noted(here, backend="openvino")
    noted(here, processor="128 x Dream")
    noted(here, model="mine", size=0)
    assert all(one.seconds is None for one in model_ratings(here))


def test_the_largest_within_the_aim_is_offered_beside_a_smaller_one_alone(here, free) -> None:
    noted(here)
    ratings = model_ratings(here, "default")
    assert [one.entry.name for one in ratings if one.best] == ["llama-3.2-3b-instruct"]
    best = better_model(ratings, "default")
    assert best.entry.name == "llama-3.2-3b-instruct"
    assert better_model(ratings, CODER) == best
    for runs in ("llama-3.2-3b-instruct", "qwen2.5-7b-instruct", "gpu-default", "someone/else", "/mine.gguf", ""):
        assert better_model(ratings, runs) is None


def test_the_aim_is_a_setting(here, free) -> None:
    noted(here)
    hurried = here.model_copy(update={"llm": here.llm.model_copy(update={"target_turn_seconds": 13.0})})
    assert {one.verdict for one in model_ratings(hurried) if one.entry.parameters > 3} == {Verdict.SLOW}
    patient = here.model_copy(update={"llm": here.llm.model_copy(update={"target_turn_seconds": 99.0})})
    assert better_model(model_ratings(patient), "default").entry.name == "llama-3.1-8b-instruct-gguf"


def test_contexts_take_memory_and_that_of_the_model_that_runs_is_free_for_another(here, free) -> None:
    wide = here.model_copy(update={"llm": here.llm.model_copy(update={"context": 16384})})
    plain, much = (
        by_name(model_ratings(here))["llama-3.2-3b-instruct"],
        by_name(model_ratings(wide))["llama-3.2-3b-instruct"],
    )
    assert much.needs - plain.needs == 3 * 4096 * 4 * 114688
    free((plain.needs - GIB / 2) / GIB)
    assert by_name(model_ratings(here))[plain.entry.name].verdict is Verdict.TOO_LARGE
    assert by_name(model_ratings(here, "default"))[plain.entry.name].verdict is Verdict.FITS


def test_at_a_server_it_is_rated_what_this_computer_would_run_instead(here, free, monkeypatch) -> None:
    monkeypatch.setattr(
        rating, "backend_of", lambda chosen: "llama.cpp" if chosen.backend == "auto" else pytest.fail("asked")
    )
    noted(here)
    at_server = here.model_copy(update={"llm": LLMSettings(backend="server", server="http://127.0.0.1:9")})
    assert by_name(model_ratings(at_server))[CODER].seconds


@pytest.mark.parametrize("content", ["", "{nonsense", "{}", "[{}]", "[1]", '[{"model": "m"}]'])
def test_a_file_of_speeds_that_is_damaged_counts_as_none(here, content) -> None:
    (here.data_dir / "speeds.json").write_text(content)
    assert speeds(here) == ()


# --- measuring --------------------------------------------------------------------------------------------------------


class Writing(ScriptedLLM):
    """One that writes so many tokens."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.tokens = tokens

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        for n in range(1, min(self.tokens, options.max_tokens) + 1):
            Event().wait(0.01)
            yield Completion("a" * n, completion_tokens=n, finish="length" if n == options.max_tokens else "")


def test_what_is_measured_is_kept_and_the_newest_counts(here) -> None:
    noted(here, model="other", size=5)
    first = measure_speed(Writing(40), here, Event())
    second = measure_speed(Writing(40), here, Event())
    assert [one.model for one in speeds(here)] == ["other", first.model]
    assert speeds(here)[-1] == second
    assert 20 < second.written < 110


@pytest.mark.parametrize("tokens", [1, 2])
def test_one_that_writes_next_to_nothing(here, tokens) -> None:
    if tokens > 1:
        assert measure_speed(Writing(tokens), here, Event()).written > 0
        return
    with pytest.raises(ModelError, match="wrote too little to be measured"):
        measure_speed(Writing(tokens), here, Event())
    assert speeds(here) == ()


def test_a_stopped_measurement_keeps_nothing(here) -> None:
    stop = Event()
    stop.set()
    assert measure_speed(Writing(40), here, stop) is None
    assert speeds(here) == ()


def test_a_data_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    settings = Settings(data_dir=tmp_path / "file", hub=False, llm=LLMSettings(backend="llama.cpp"))
    with pytest.raises(ModelError, match=r"speeds\.json can't be written .*; free space or set data_dir"):
        measure_speed(Writing(40), settings, Event())


@pytest.mark.model
def test_a_real_engine_is_measured_and_can_be_stopped(smollm: LlamaCpp, here) -> None:
    speed = measure_speed(smollm, here, Event())
    assert (speed.model, speed.backend) == ("smollm2-135m", "llama.cpp")
    assert speed.size == Catalogue.load().entry("smollm2-135m").size
    assert speed.read > speed.written > 0
    stop = Event()
    Timer(0.3, stop.set).start()
    assert measure_speed(smollm, here, stop) is None
    assert speeds(here) == (speed,)


# --- the command line -------------------------------------------------------------------------------------------------


def call(settings: Settings, *words: str) -> str:
    result = CliRunner().invoke(app, ["models", *words, "--data-dir", str(settings.data_dir)], env={"COLUMNS": "200"})
    if isinstance(result.exception, ModelError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_ratings_on_the_command_line(here, free, monkeypatch) -> None:
    monkeypatch.setenv("SEQUITUR_LLM__BACKEND", "llama.cpp")
    monkeypatch.setattr("assistant.llm.load.hub_trouble", lambda: "unreachable")
    assert "How fast they would be isn't known yet: run `models measure`." in call(here)
    noted(here)
    told = call(here)
    assert "fits, the best" in told
    assert "qwen2.5-3b-instruct is under Qwen Research (no commercial use)." in told
    assert f"{CODER} read 100 and wrote 10.0 tokens a second on llama.cpp" in told
    result = CliRunner().invoke(app, ["models", "--data-dir", str(here.data_dir), "list"])
    assert result.exit_code == 2
    assert "put the options behind `list`" in result.output


def test_what_answers_is_told_on_the_command_line(here, monkeypatch) -> None:
    monkeypatch.setattr("assistant.llm.load.hub_trouble", lambda: "unreachable")
    assert call(here).startswith(f"The page answers with {CODER} (the default where there is no hub")
    known = KnownModels(here)
    server = known.add(AddedServer(address="http://127.0.0.1:9999", model="large"))
    known.choose(server.id)
    assert call(here).startswith("The page answers with large (server at 127.0.0.1:9999).")


def test_that_the_larger_judges_are_not_here_is_told_on_the_command_line(here, monkeypatch) -> None:
    monkeypatch.setattr("assistant.llm.load.hub_trouble", lambda: "unreachable")
    monkeypatch.setenv("SEQUITUR_TURN__SUPPORT", "large")
    assert "(all-mpnet-base-v2, 439 MB) is not here: the next start fetches it" in call(here)
    monkeypatch.setattr(Catalogue, "is_here", lambda *_: True)
    assert "larger judges" not in call(here)


@pytest.mark.model
def test_a_model_is_measured_on_the_command_line(smollm_path: Path, here) -> None:
    told = call(here, "measure", "--model", str(smollm_path), "--backend", "llama.cpp")
    assert "tokens a second on llama.cpp" in told
    assert [one.size for one in speeds(here)] == [smollm_path.stat().st_size]
    assert isinstance(speeds(here)[0], MeasuredSpeed)
