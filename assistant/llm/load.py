"""Chooses what runs the language model, and loads it: transformers on a GPU, llama.cpp on a CPU, or what is set.

Heavy imports happen in here, when the choice is made.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from assistant.errors import ModelError
from assistant.llm.catalogue import Catalogue
from assistant.settings import LLMSettings, Quantisation, Settings
from assistant.types import LLM, Progress

CPU_DEFAULT, GPU_DEFAULT = "default", "gpu-default"
NO_CUDA = (
    "There is an NVIDIA GPU, but this torch was built without CUDA, so that only the CPU is used; "
    "install one that was (see pytorch.org), or set llm.backend to llama.cpp."
)


def load(settings: Settings, progress: Progress) -> LLM:
    """The language model that the settings name, fetched if need be.

    Raises:
        ModelError: it can't be had, trusted or loaded; the message says what to do.
    """
    chosen = settings.llm
    if _backend(chosen) == "llama.cpp":
        from assistant.llm.llama_cpp import LlamaCpp  # noqa: PLC0415

        return LlamaCpp(Catalogue.load().resolve(chosen.model, settings, progress), chosen, chosen.model)
    model = GPU_DEFAULT if chosen.model == CPU_DEFAULT and sees_gpu() else chosen.model
    path = Catalogue.load().resolve(model, settings, progress)
    return _transformers(path, model, settings)


def load_or_fall_back(settings: Settings, progress: Progress, tell: Callable[[str], None]) -> LLM:
    """Like `load`; where the model can't be had, the one that runs everywhere, after telling why.

    Raises:
        ModelError: that one can't be had either.
    """
    if settings.llm.backend == "auto" and _has_driver() and not _has_cuda():
        tell(NO_CUDA)
    try:
        return load(settings, progress)
    except ModelError as error:
        if settings.llm.model == CPU_DEFAULT and _backend(settings.llm) == "llama.cpp":
            raise
        tell(f"{error} Until then the CPU's default model answers.")
    on_cpu = {"backend": "llama.cpp", "model": CPU_DEFAULT}
    return load(settings.model_copy(update={"llm": settings.llm.model_copy(update=on_cpu)}), progress)


def sees_gpu() -> bool:
    """Whether torch can use a GPU of this machine."""
    import torch  # noqa: PLC0415

    return bool(torch.cuda.is_available())


def _backend(chosen: LLMSettings) -> Literal["llama.cpp", "transformers"]:
    if chosen.backend != "auto":
        return chosen.backend
    if chosen.model == CPU_DEFAULT:
        return "transformers" if sees_gpu() else "llama.cpp"
    return "llama.cpp" if _is_gguf(chosen.model) else "transformers"


def _is_gguf(model: str) -> bool:
    local = Path(model).expanduser()
    if local.exists():
        return local.is_file()
    return model.endswith(".gguf") or Catalogue.load().entry(model).kind == "gguf"


def _transformers(path: Path, model: str, settings: Settings) -> LLM:
    from assistant.llm.transformers import Transformers  # noqa: PLC0415

    if path.is_file():
        from assistant.llm.dequantise import dequantised  # noqa: PLC0415

        path = dequantised(path, settings)
    return Transformers(path, settings.llm, model, _quantisation(settings.llm))


def _quantisation(chosen: LLMSettings) -> Quantisation:
    if chosen.quantisation != "auto":
        return chosen.quantisation
    return "nf4" if sees_gpu() else "none"


def _has_cuda() -> bool:
    import torch  # noqa: PLC0415

    return torch.version.cuda is not None


def _has_driver() -> bool:
    return shutil.which("nvidia-smi") is not None
