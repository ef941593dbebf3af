"""The real small models that tests share, fetched once into the data folder that the settings name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.errors import ModelError
from assistant.llm.backends.llama_cpp import LlamaCpp
from assistant.llm.backends.openvino import OpenVino
from assistant.llm.catalogue import Catalogue
from assistant.llm.dequantise import dequantised
from assistant.llm.embedder import SentenceEmbedder
from assistant.llm.engines.openvino_model import converted
from assistant.protocols import silent
from assistant.settings import LLMSettings, load

pytest.register_assert_rewrite("llm_contract")


def fetched(name: str) -> Path:
    """Where the catalogue's model lies; the test is skipped where no source can be reached."""
    try:
        return Catalogue.load().resolve(name, load())
    except ModelError as error:
        pytest.skip(f"needs the model {name}: {error}")


def sharing_models(folder: Path) -> Path:
    """The folder, as a data folder of its own with the models that were fetched, and what examples were encoded to."""
    for name in ("models", "examples"):
        there = load().data_dir / name
        there.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(there, target_is_directory=True)
    return folder


def sharing_libraries(folder: Path) -> Path:
    """The folder, as a data folder of its own that has the libraries of the tests, where the first is built once."""
    there = load().libraries_dir
    there.mkdir(parents=True, exist_ok=True)
    (folder / "libraries").symlink_to(there, target_is_directory=True)
    return folder


@pytest.fixture
def no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies of so small a model would be set aside, and every passage asked alone, which takes its time."""
    monkeypatch.setenv("SEQUITUR_TURN__ADDRESSES_THRESHOLD", "0")


@pytest.fixture(scope="session")
def smollm_path() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct."""
    return fetched("smollm2-135m")


@pytest.fixture(scope="session")
def smollm(smollm_path: Path) -> Iterator[LlamaCpp]:
    """SmolLM2-135M on llama.cpp: real wiring, poor answers."""
    llm = LlamaCpp(smollm_path, LLMSettings(context=1024), "smollm2-135m")
    yield llm
    llm.close()


@pytest.fixture(scope="session")
def embedder() -> SentenceEmbedder:
    """all-MiniLM-L6-v2."""
    return SentenceEmbedder(fetched("all-MiniLM-L6-v2"), "all-MiniLM-L6-v2")


@pytest.fixture(scope="session")
def smollm_folder(smollm_path: Path) -> Path:
    """SmolLM2-135M dequantised to bf16, as a folder that transformers loads."""
    return dequantised(smollm_path, load())


@pytest.fixture(scope="session")
def smollm_openvino(smollm_path: Path) -> Iterator[OpenVino]:
    """SmolLM2-135M on OpenVINO, where its package runs."""
    pytest.importorskip("openvino_genai")
    llm = OpenVino(converted(smollm_path, load(), silent), LLMSettings(context=1024), "smollm2-135m")
    yield llm
    llm.close()
