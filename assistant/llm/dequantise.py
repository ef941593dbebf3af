"""A GGUF model of the catalogue as a folder that transformers loads quickly: dequantised once, then reused."""

from __future__ import annotations

from pathlib import Path

from assistant.errors import ModelError
from assistant.llm import gguf
from assistant.llm.gguf_conversion import converted_once
from assistant.settings import Settings


def dequantised(path: Path, settings: Settings) -> Path:
    """The folder with the bf16 weights and the tokenizer of a GGUF file; made on first use (up to a minute).

    Raises:
        ModelError: the file is no GGUF model, of an architecture that transformers can't read, or the disk is full.
    """
    architecture = gguf.header(path).get("general.architecture")
    try:
        return converted_once(path, "bf16", settings, lambda folder: convert(path, folder))
    except (ValueError, KeyError, RuntimeError, OSError) as error:
        raise ModelError(
            f"{path} (architecture {architecture}) can't be converted for transformers: {error}."
        ) from error


def convert(path: Path, folder: Path) -> None:
    """Write the bf16 weights and the tokenizer of a GGUF file into a folder, as transformers loads them."""
    import torch  # noqa: PLC0415 - takes seconds to import
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig  # noqa: PLC0415
    from transformers.utils import logging  # noqa: PLC0415

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
    )
    model.save_pretrained(folder)
