"""Chat models as transformers keeps them in a folder: tokenizer, and weights, quantised on the way in if asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig
from transformers.utils import logging

from assistant.errors import ModelError
from assistant.settings import Quantisation

_GIB = 1 << 30
# What quantisation leaves of the size of 16-bit weights: scales, zero points and the layers left as they are included.
_SIZE_RATIO = {"none": 1.0, "int8": 0.55, "nf4": 0.35}


def load_tokenizer(folder: Path, name: str) -> Any:
    """The tokenizer, which has a chat template.

    Raises:
        ModelError: the folder has none that is complete, or it is no chat model's.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(
            f"{folder} holds no complete tokenizer ({first_line(error)}); fetch the model again."
        ) from error
    if not tokenizer.chat_template:
        raise ModelError(f"{name} has no chat template, so it is no chat model; choose an instruct model.")
    return tokenizer


def load_model(folder: Path, name: str, quantisation: Quantisation) -> Any:
    """The model, in bf16 or quantised, spread by accelerate over the devices there are.

    Raises:
        ModelError: the memory is too small, a file is missing or broken, or this machine can't quantise so.
    """
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    _check_memory(folder, name, quantisation)
    try:
        return AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=torch.bfloat16,
            device_map="auto",
            quantization_config=_config(quantisation),
            local_files_only=True,
        ).eval()  # type: ignore[no-untyped-call]
    except ImportError as error:
        raise ModelError(f"{quantisation} can't be used on this machine ({first_line(error)}).") from error
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelError(f"{name} can't be loaded from {folder} ({first_line(error)}).") from error


def ends(model: Any, tokenizer: Any) -> set[int]:
    """The tokens that end a reply."""
    eos_token_id = model.generation_config.eos_token_id
    return {tokenizer.eos_token_id, *(eos_token_id if isinstance(eos_token_id, list) else [eos_token_id])} - {None}


def _config(quantisation: Quantisation) -> BitsAndBytesConfig | None:
    if quantisation == "int8":
        return BitsAndBytesConfig(load_in_8bit=True)  # type: ignore[no-untyped-call]
    if quantisation == "nf4":
        return BitsAndBytesConfig(  # type: ignore[no-untyped-call]
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.bfloat16,
        )
    return None


def _check_memory(folder: Path, name: str, quantisation: Quantisation) -> None:
    """Weights have two bytes a number in nearly every repository; those with four are read, and so counted, as two.

    What doesn't fit into the GPUs is kept in the CPU's memory, but for quantised weights, which can't be.
    """
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors")) * _SIZE_RATIO[quantisation]
    gpu = sum(torch.cuda.mem_get_info(index)[0] for index in range(torch.cuda.device_count()))
    free = gpu if gpu and quantisation != "none" else gpu + psutil.virtual_memory().available
    if size > free:
        raise ModelError(
            f"{name} needs about {size / _GIB:.1f} GiB ({quantisation}) and {free / _GIB:.1f} GiB are free"
            f" ({gpu / _GIB:.1f} of them on GPUs); choose a smaller model or a stronger quantisation."
        )


def first_line(error: Exception) -> str:
    """The first line of what an error says, at most 200 characters; its class where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
