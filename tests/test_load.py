"""Which backend runs which model, and what happens where it can't."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from assistant.errors import ModelError
from assistant.llm import backends
from assistant.llm import load as choice
from assistant.llm.backends import openvino
from assistant.llm.catalogue import Catalogue
from assistant.llm.engines.openvino_model import converted
from assistant.llm.subprocess_engine import SubprocessEngine
from assistant.protocols import silent
from assistant.settings import LLMSettings, Settings, load
from assistant.types import Message
from tests.fixtures_models import sharing_models
from tests.hub import stand_in_hub

pytestmark = pytest.mark.model


def settings_for(folder: Path, **llm: object) -> Settings:
    return Settings(data_dir=folder, hub=False, llm=LLMSettings.model_validate({"context": 1024, "slots": 1, **llm}))


@pytest.fixture(scope="module")
def folder(smollm_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that has no models but the smallest as OpenVINO runs it, where that is what runs it."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "models").mkdir()
    with suppress(ModelError):
        made = converted(smollm_path, load(), silent)
        (folder / "models" / made.name).symlink_to(made, target_is_directory=True)
    return folder


@pytest.fixture
def small_default(smollm_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model that runs everywhere, as small as it gets."""
    monkeypatch.setattr(choice, "BY_PIP", str(smollm_path))


def test_a_gguf_runs_in_a_process_of_its_own(smollm_path: Path, folder: Path) -> None:
    llm = choice.load(settings_for(folder, model=str(smollm_path)), silent)
    assert isinstance(llm, SubprocessEngine)
    llm.close()


def test_a_folder_runs_on_transformers(smollm_folder: Path, tmp_path: Path) -> None:
    llm = choice.load(settings_for(tmp_path, model=str(smollm_folder)), silent)
    assert type(llm).__name__ == "Transformers"


@pytest.mark.usefixtures("smollm_folder")
def test_a_gguf_runs_on_transformers_where_asked(smollm_path: Path, tmp_path: Path) -> None:
    llm = choice.load(settings_for(sharing_models(tmp_path), model=str(smollm_path), backend="transformers"), silent)
    assert type(llm).__name__ == "Transformers"


@pytest.mark.usefixtures("small_default")
@pytest.mark.parametrize(
    ("gpu", "asked", "why"),
    [
        (True, {}, "llama-3.1-8b-instruct could not be had"),
        (False, {"model": "meta-llama/Llama-2-13b-chat-hf"}, "Llama-2-13b-chat-hf could not be had"),
        (False, {"model": "llama-2-13b-chat"}, "llama-2-13b-chat could not be had"),
        (True, {"model": choice.AUTO}, "llama-3.1-8b-instruct could not be had"),
        (False, {"model": "/nowhere/model"}, "There is no model at /nowhere/model"),
    ],
)
def test_the_model_by_pip_answers_where_another_cannot_be_had(
    gpu: bool, asked: dict[str, str], why: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "sees_gpu", lambda: gpu)
    told: list[str] = []
    settings = settings_for(folder, **{"model": choice.BY_PIP, **asked})
    llm = choice.load_or_fall_back(settings, silent, told.append)
    assert isinstance(llm, SubprocessEngine)
    assert why in told[0]
    assert "the model that comes by pip answers" in told[0]
    llm.close()


# --- what is meant where nobody chose -------------------------------------------------------------------------------


def meant(settings: Settings, monkeypatch: pytest.MonkeyPatch, *, gpu: bool = False) -> str:
    monkeypatch.setattr(choice, "sees_gpu", lambda: gpu)
    return choice.model_of(settings)


def test_nobody_has_to_choose() -> None:
    assert LLMSettings().model == choice.AUTO


def test_without_a_hub_it_is_the_model_by_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "hub_trouble", lambda: pytest.fail("asked"))
    assert meant(settings_for(tmp_path), monkeypatch) == choice.BY_PIP
    monkeypatch.setattr(choice, "hub_trouble", lambda: "unreachable")
    assert meant(settings_for(tmp_path).model_copy(update={"hub": True}), monkeypatch) == choice.BY_PIP


@pytest.mark.parametrize("here", [choice.SMALL, choice.BY_PIP])
def test_what_is_here_is_taken_and_the_hub_not_asked(here: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(choice, "hub_trouble", lambda: pytest.fail("asked"))
    monkeypatch.setattr(Catalogue, "is_here", lambda _, name, __: name == here)
    assert meant(settings_for(tmp_path).model_copy(update={"hub": True}), monkeypatch) == here


def test_a_gpu_has_a_default_of_its_own_and_a_server_is_asked_for_its_model(tmp_path: Path, monkeypatch) -> None:
    for model in (choice.AUTO, choice.BY_PIP):
        assert meant(settings_for(tmp_path, model=model), monkeypatch, gpu=True) == choice.GPU_DEFAULT
        on_cpu = settings_for(tmp_path, model=model, backend="llama.cpp")
        assert meant(on_cpu, monkeypatch, gpu=True) == choice.BY_PIP
        at_server = settings_for(tmp_path, model=model, backend="server")
        assert meant(at_server, monkeypatch, gpu=True) == model
    assert meant(settings_for(tmp_path, model="fast"), monkeypatch, gpu=True) == "fast"


def test_the_name_that_people_have_written_means_what_it_did(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(choice, "hub_trouble", lambda: "")
    old = settings_for(tmp_path, model="default").model_copy(update={"hub": True})
    assert meant(old, monkeypatch) == "default"
    assert Catalogue.load().entry("default").wheels


def test_the_first_start_takes_the_small_chat_model_of_the_hub(smollm_path: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(choice, "sees_gpu", lambda: False)
    there = "Qwen/Qwen2.5-1.5B-Instruct-GGUF/qwen2.5-1.5b-instruct-q4_k_m.gguf"
    with stand_in_hub({there: smollm_path.read_bytes()}, monkeypatch) as hub:
        settings = settings_for(tmp_path, backend="llama.cpp").model_copy(update={"hub": True})
        llm = choice.load_or_fall_back(settings, silent, pytest.fail)
        assert llm.name == choice.SMALL
        assert llm.count((Message("user", "Hi"),)) > 0
        llm.close()
        assert len(hub.ranges_asked()) == 1
        hub.files.clear()
        choice.load(settings, silent).close()


@pytest.mark.usefixtures("small_default")
def test_a_hub_that_answers_and_has_no_model_gives_way_to_pip(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(choice, "sees_gpu", lambda: False)
    told: list[str] = []
    with stand_in_hub({}, monkeypatch):
        settings = settings_for(folder).model_copy(update={"hub": True})
        monkeypatch.setattr(Catalogue, "is_here", lambda *_: False)
        llm = choice.load_or_fall_back(settings, silent, told.append)
    assert "qwen2.5-1.5b-instruct could not be had from the Hugging Face hub" in told[0]
    assert "the model that comes by pip answers" in told[0]
    llm.close()


def test_a_model_that_was_switched_to_gives_way_to_no_other_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="could not be had"):
        choice.load_by_any_engine(settings_for(tmp_path, model="llama-2-13b-chat"), silent, pytest.fail)


def test_evaluation_never_falls_back(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="could not be had"):
        choice.load(settings_for(tmp_path, model="llama-2-13b-chat"), silent)


def test_a_default_that_cannot_be_had_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "BY_PIP", str(tmp_path / "none.gguf"))
    monkeypatch.setattr(choice, "sees_gpu", lambda: False)
    with pytest.raises(ModelError, match="There is no model at"):
        choice.load_or_fall_back(settings_for(tmp_path, model=choice.BY_PIP), silent, pytest.fail)


@pytest.mark.usefixtures("small_default")
def test_a_torch_without_cuda_beside_a_gpu_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(choice, "sees_gpu", lambda: False)
    told: list[str] = []
    choice.load_or_fall_back(settings_for(folder, model=choice.BY_PIP), silent, told.append).close()
    assert told == [choice.NO_CUDA]


@pytest.mark.parametrize(("wide", "engine"), [(True, "openvino"), (False, "llama.cpp")])
def test_the_processor_decides_what_runs_a_gguf(wide: bool, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openvino_genai")
    monkeypatch.setattr(openvino, "has_wide_vectors", lambda: wide)
    monkeypatch.setattr(choice, "sees_gpu", lambda: False)
    assert choice.backend_of(LLMSettings()) == engine
    assert choice.backend_of(LLMSettings(model="/models/own.gguf")) == engine
    for entry in Catalogue.load().entries:
        if entry.kind == "gguf":
            assert {choice.backend_of(LLMSettings(model=name)) for name in (entry.name, *entry.aliases)} == {engine}
    assert choice.backend_of(LLMSettings(model="someone/a-folder")) == "transformers"


def test_without_avx2_llama_cpp_runs_it_instead_of_openvino(
    smollm_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openvino, "has_avx2", lambda: False)
    settings = settings_for(tmp_path, model=str(smollm_path), backend="openvino")
    with pytest.raises(ModelError, match="needs a processor with AVX2; set"):
        choice.load(settings, silent)
    why = "OpenVINO needs a processor with AVX2; set llm.backend to llama.cpp. llama.cpp runs it instead."
    for way in (choice.load_or_fall_back, choice.load_by_any_engine):
        told: list[str] = []
        llm = way(settings, silent, told.append)
        assert told == [why]
        assert llm.backend == "llama.cpp"
        assert llm.count((Message("user", "Hi"),)) > 0
        llm.close()


def test_an_engine_has_the_name_that_the_catalogue_gives_its_model_whatever_alias_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Catalogue, "resolve", lambda *_: tmp_path)
    monkeypatch.setattr(backends.named("llama.cpp"), "load", lambda _path, name, *_: name)
    for model in (choice.BY_PIP, "qwen2.5-coder-1.5b-instruct"):
        settings = settings_for(tmp_path, model=model, backend="llama.cpp")
        assert choice.load(settings, silent) == "qwen2.5-coder-1.5b-instruct"
