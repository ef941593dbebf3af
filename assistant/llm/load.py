"""Chooses the backend of the language model, and loads it: the one that is set, or the best for this machine.

Heavy imports happen in here, when the choice is made.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from assistant.errors import ModelError
from assistant.llm import backends
from assistant.llm.backends import ModelTraits, server
from assistant.llm.catalogue import Catalogue
from assistant.llm.processor import sees_gpu
from assistant.llm.sources import hub_trouble
from assistant.protocols import Engine, Progress
from assistant.settings import Backend, LLMSettings, Settings

# AUTO is what llm.model is where nobody chose: on a GPU that means `GPU_DEFAULT`, on a CPU what is here, at the first
# start the small chat model of the hub or, where no hub answers, the model that comes by pip.
AUTO, SMALL, BY_PIP, GPU_DEFAULT = "auto", "qwen2.5-1.5b-instruct", "default", "gpu-default"
SERVER = "server"
NO_CUDA = (
    "There is an NVIDIA GPU, but this torch was built without CUDA, so that only the CPU is used; "
    "install one that was (see pytorch.org), or set llm.backend to llama.cpp."
)

Tell = Callable[[str], None]


def load(settings: Settings, progress: Progress) -> Engine:
    """The language model that the settings name, fetched if need be.

    Raises:
        ModelError: it can't be fetched, trusted, converted or loaded; the message says what to do.
    """
    backend, model = backend_of(settings.llm), model_of(settings)
    if backend == SERVER:
        return server.load(Path(), model, settings, progress)
    catalogue = Catalogue.load()
    path, entry = catalogue.resolve(model, settings, progress), catalogue.listed_entry(model)
    return backends.named(backend).load(path, entry.name if entry else model, settings, progress)


def load_or_fall_back(settings: Settings, progress: Progress, tell: Tell) -> Engine:
    """Like `load`; if that fails, another engine or the model that comes by pip, after telling why.

    A model that OpenVINO can't run is run by llama.cpp; any other is replaced by the one that comes by pip. A server
    that doesn't answer yet is waited for instead, since it was chosen.

    Raises:
        ModelError: the replacement can't be loaded either.
    """
    if settings.llm.backend == "auto" and _has_driver() and not _has_cuda():
        tell(NO_CUDA)
    if settings.llm.backend == SERVER:
        return server.load_or_wait(settings.llm, tell)
    return _first_loadable(settings, chain(_other_engine(settings), _other_model(settings)), progress, tell)


def load_by_any_engine(settings: Settings, progress: Progress, tell: Tell) -> Engine:
    """Like `load`; a model that OpenVINO can't run is run by llama.cpp, after telling why. The model stays the same.

    Raises:
        ModelError: neither can run it, for the reason of the first.
    """
    return _first_loadable(settings, _other_engine(settings), progress, tell)


def _first_loadable(
    settings: Settings, replacements: Iterable[tuple[LLMSettings, str]], progress: Progress, tell: Tell
) -> Engine:
    """The choice or, where it can't be loaded, the first of the others that can be, after telling why."""
    try:
        return load(settings, progress)
    except ModelError as error:
        first_error = error
    for replacement, notice in replacements:
        try:
            llm = load(settings.model_copy(update={"llm": replacement}), progress)
        except ModelError:
            continue
        tell(f"{first_error} {notice}")
        return llm
    raise first_error


def model_of(settings: Settings) -> str:
    """The name of the model that the settings mean on this machine; `AUTO` only of a server, which is asked later."""
    llm_settings, backend = settings.llm, backend_of(settings.llm)
    if not _is_usual(llm_settings) or backend == SERVER:
        return llm_settings.model
    if backend == "transformers" and sees_gpu():
        return GPU_DEFAULT
    return _on_cpu(settings) if llm_settings.model == AUTO else BY_PIP


def _on_cpu(settings: Settings) -> str:
    for name in (SMALL, BY_PIP):
        if Catalogue.load().is_here(name, settings):
            return name
    return SMALL if settings.hub and not hub_trouble() else BY_PIP


def _other_engine(settings: Settings) -> Iterator[tuple[LLMSettings, str]]:
    """The engine that runs a model which the first one can't load, and the sentence that says so."""
    if backend_of(settings.llm) == "openvino":
        yield settings.llm.model_copy(update={"backend": "llama.cpp"}), "llama.cpp runs it instead."


def _other_model(settings: Settings) -> Iterator[tuple[LLMSettings, str]]:
    """The model that answers if no engine can load the chosen one, and the sentence that says so."""
    if model_of(settings) != BY_PIP or backend_of(settings.llm) == "transformers":
        update = {"backend": "llama.cpp", "model": BY_PIP}
        yield settings.llm.model_copy(update=update), "Until then the model that comes by pip answers."


def backend_of(llm_settings: LLMSettings) -> Backend:
    """The backend that runs the model of these settings."""
    if llm_settings.backend != "auto":
        return llm_settings.backend
    is_usual = _is_usual(llm_settings)
    return backends.fittest(
        ModelTraits(is_usual, gguf=is_usual or _is_gguf(llm_settings.model), gpu=is_usual and sees_gpu())
    )


def runs_in_own_process(llm_settings: LLMSettings) -> bool:
    """Whether the model of these settings runs in a process of its own."""
    return backends.named(backend_of(llm_settings)).OWN_PROCESS


def _is_usual(llm_settings: LLMSettings) -> bool:
    return llm_settings.model in {AUTO, BY_PIP}


def _is_gguf(model: str) -> bool:
    local_path = Path(model).expanduser()
    if local_path.exists():
        return local_path.is_file()
    if model.endswith(".gguf"):
        return True
    try:
        return Catalogue.load().entry(model).kind == "gguf"
    except ModelError:  # told where it is looked for
        return False


def _has_cuda() -> bool:
    import torch  # noqa: PLC0415

    return torch.version.cuda is not None


def _has_driver() -> bool:
    return shutil.which("nvidia-smi") is not None
