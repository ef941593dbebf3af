"""Chooses what runs the language model, and loads it: transformers on a GPU, else what this processor is fastest with.

Heavy imports happen in here, when the choice is made.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from assistant.errors import ModelError
from assistant.llm.apart import Apart
from assistant.llm.catalogue import Catalogue
from assistant.llm.processor import has_avx2, has_matrix_units, has_wide_vectors
from assistant.protocols import Engine, Progress
from assistant.settings import Backend, LLMSettings, Quantisation, Settings

CPU_DEFAULT, GPU_DEFAULT = "default", "gpu-default"
NO_CUDA = (
    "There is an NVIDIA GPU, but this torch was built without CUDA, so that only the CPU is used; "
    "install one that was (see pytorch.org), or set llm.backend to llama.cpp."
)


def load(settings: Settings, progress: Progress) -> Engine:
    """The language model that the settings name, fetched if need be.

    Raises:
        ModelError: it can't be had, trusted, converted or loaded; the message says what to do.
    """
    chosen, backend = settings.llm, backend_of(settings.llm)
    model = GPU_DEFAULT if backend == "transformers" and chosen.model == CPU_DEFAULT and sees_gpu() else chosen.model
    path = Catalogue.load().resolve(model, settings, progress)
    if backend == "openvino":
        return _openvino(path, model, settings, progress)
    if backend == "llama.cpp":
        from assistant.llm.llama_cpp import LlamaCpp  # noqa: PLC0415

        return Apart(LlamaCpp, path, chosen, model)
    return _transformers(path, model, settings)


def load_or_fall_back(settings: Settings, progress: Progress, tell: Callable[[str], None]) -> Engine:
    """Like `load`; where the model can't be had, the one that runs everywhere, after telling why.

    What OpenVINO can't run, llama.cpp does; any other model gives way to the CPU's default.

    Raises:
        ModelError: that one can't be had either.
    """
    if settings.llm.backend == "auto" and _has_driver() and not _has_cuda():
        tell(NO_CUDA)
    try:
        return load(settings, progress)
    except ModelError as error:
        first = error
    for instead, told in _instead(settings.llm):
        try:
            llm = load(settings.model_copy(update={"llm": instead}), progress)
        except ModelError:
            continue
        tell(f"{first} {told}")
        return llm
    raise first


def _instead(chosen: LLMSettings) -> Iterator[tuple[LLMSettings, str]]:
    """What to try where the choice can't be loaded, in order, and how that is told."""
    backend = backend_of(chosen)
    if backend == "openvino":
        yield chosen.model_copy(update={"backend": "llama.cpp"}), "llama.cpp runs it instead."
    if chosen.model != CPU_DEFAULT or backend == "transformers":
        on_cpu = {"backend": "llama.cpp", "model": CPU_DEFAULT}
        yield chosen.model_copy(update=on_cpu), "Until then the CPU's default model answers."


def sees_gpu() -> bool:
    """Whether torch can use a GPU of this machine."""
    import torch  # noqa: PLC0415

    return bool(torch.cuda.is_available())


def backend_of(chosen: LLMSettings) -> Backend:
    """What runs the model that is set."""
    if chosen.backend != "auto":
        return chosen.backend
    if chosen.model == CPU_DEFAULT and sees_gpu():
        return "transformers"
    return _fastest_on_cpu() if chosen.model == CPU_DEFAULT or _is_gguf(chosen.model) else "transformers"


def runs_apart(chosen: LLMSettings) -> bool:
    """Whether the model that is set runs in a process of its own."""
    return backend_of(chosen) != "transformers"


def _fastest_on_cpu() -> Backend:
    """OpenVINO where it was measured to win (docs/results/llm.md), and its package is there."""
    return "openvino" if has_wide_vectors() and find_spec("openvino_genai") else "llama.cpp"


def _is_gguf(model: str) -> bool:
    local = Path(model).expanduser()
    if local.exists():
        return local.is_file()
    if model.endswith(".gguf"):
        return True
    try:
        return Catalogue.load().entry(model).kind == "gguf"
    except ModelError:  # told where it is looked for
        return False


def _openvino(path: Path, model: str, settings: Settings, progress: Progress) -> Engine:
    from assistant.llm._openvino_model import converted  # noqa: PLC0415
    from assistant.llm.openvino import OpenVino  # noqa: PLC0415

    if not has_avx2():
        raise ModelError("OpenVINO needs a processor with AVX2; set llm.backend to llama.cpp.")
    folder = converted(path, settings, progress)
    return Apart(partial(OpenVino, precise=not has_matrix_units()), folder, settings.llm, model)


def _transformers(path: Path, model: str, settings: Settings) -> Engine:
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
