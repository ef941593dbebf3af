"""A GGUF model of the catalogue as a folder that transformers loads quickly: dequantised once, then reused."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path

from filelock import FileLock

from assistant.errors import ModelError
from assistant.llm import gguf
from assistant.settings import Settings

_END = 1 << 20


def dequantised(path: Path, settings: Settings) -> Path:
    """The folder with the bf16 weights and the tokenizer of a GGUF file; made on first use (up to a minute).

    Raises:
        ModelError: the file is no GGUF model, of an architecture that transformers can't read, or the disk is full.
    """
    kind = gguf.header(path).get("general.architecture")
    # Its size and its end are in the name, so that another model of the same name gets a folder of its own.
    folder = settings.models_dir / f"{path.stem}-{path.stat().st_size}-{_digest_of_end(path)}-bf16"
    try:
        with FileLock(folder.with_name(f"{folder.name}.lock")):
            if not folder.exists():
                partial = folder.with_name(f"{folder.name}.partial")
                shutil.rmtree(partial, ignore_errors=True)
                _convert(path, partial)
                partial.replace(folder)
    except (ValueError, KeyError, RuntimeError, OSError) as error:
        raise ModelError(f"{path} (architecture {kind}) can't be converted for transformers: {error}.") from error
    return folder


def _digest_of_end(path: Path) -> str:
    # a file ends with weights; to read all of a gigabyte would take seconds at each start
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _END))
        return sha256(file.read()).hexdigest()[:12]


def _convert(path: Path, folder: Path) -> None:
    import torch  # noqa: PLC0415 - takes seconds to import
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig  # noqa: PLC0415
    from transformers.utils import logging  # noqa: PLC0415

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
    )
    model.save_pretrained(folder)
