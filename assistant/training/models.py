"""What every training does with a model: loads the encoder to start from, takes a step down the gradient, saves."""

from __future__ import annotations

import re
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from transformers.utils import logging

from assistant.errors import ModelError
from assistant.judges.packed import is_packed, unpacked

# The modules of a layer that are trained: the matrices of attention, and those behind it.
_TRAINABLE_MODULES = (
    "attn.q", "attn.k", "attn.v", "attn.o", "self.query", "self.key", "self.value",
    "intermediate.dense", "output.dense",
)  # fmt: skip


def load_encoder(base: str, seed: int, length: int, **options: Any) -> tuple[Any, Any]:
    """The tokenizer and the model of a cross-encoder, or of an encoder that gets a head at random.

    Args:
        base: its folder, packed or not.
        seed: decides the head.
        length: tokens that are read at most.
        **options: of transformers' loading.

    Raises:
        ModelError: there is no encoder in the folder.
    """
    torch.manual_seed(seed)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
        with unpacked(Path(base)) if is_packed(Path(base)) else nullcontext(base) as folder:
            model = AutoModelForSequenceClassification.from_pretrained(
                folder, num_labels=1, local_files_only=True, dtype=torch.float32, **options
            )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelError(f"{base} holds no encoder that can be trained ({error}); give another.") from error
    tokenizer.model_max_length = min(length, model.config.max_position_embeddings)
    return tokenizer, model


def low_rank(model: Any, rank: int, first: int) -> Any:
    """The model, of which matrices of a low rank beside those of its layers are learned, and its head.

    Args:
        model: an MPNet or a BERT with a head.
        rank: theirs.
        first: the number of the first layer that learns, from 0; those under it stay as they are.
    """
    from peft import LoraConfig, get_peft_model  # noqa: PLC0415 - takes seconds to import

    layers = ((name, re.search(r"encoder\.layer\.(\d+)\.", name)) for name, _ in model.named_modules())
    names = [name for name, match in layers if match and int(match[1]) >= first and name.endswith(_TRAINABLE_MODULES)]
    return get_peft_model(
        model,
        LoraConfig(
            r=rank, lora_alpha=2 * rank, target_modules=names, modules_to_save=["classifier"], task_type="SEQ_CLS"
        ),
    )


def load_adapter(model: Any, adapter: str) -> Any:
    """The model with what a training of low-rank matrices added to it, which goes on learning.

    Raises:
        ModelError: the folder holds nothing that can be added to this model.
    """
    from peft import PeftModel  # noqa: PLC0415 - takes seconds to import

    try:
        return PeftModel.from_pretrained(model, adapter, is_trainable=True)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelError(f"{adapter} can't be added to the encoder ({error}); give another.") from error


def descend(loss: torch.Tensor, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> float:
    """One step down the gradient, which is clipped to 1; gives the loss."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def save(folder: Path, model: Any, tokenizer: Any) -> None:
    """Write model and tokenizer into the folder; what was there stays until all is written."""
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)
