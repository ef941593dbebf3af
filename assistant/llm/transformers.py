"""Causal chat models through transformers, accelerate and bitsandbytes.

A GPU's backend; on a CPU the one that reads prompts fastest, where the cores have units for bf16. The keys and values
of the last few prompts are kept; a new prompt is read from where it differs from the nearest of them, and the prompts
of a batch read what they share once.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, Literal

import psutil
import torch
from jinja2 import TemplateError
from safetensors import SafetensorError
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, DynamicCache
from transformers.utils import logging

from assistant.errors import ModelError
from assistant.llm.continuous import SideBySide
from assistant.llm.control import defuse
from assistant.llm.queue import FairQueue
from assistant.llm.words import first_tokens, normalised
from assistant.settings import LLMSettings
from assistant.types import Choice, Completion, Messages, Options

Quantisation = Literal["none", "int8", "nf4"]

_GIB = 1 << 30
_KEPT = 4
_WORTH_KEEPING = 16
# Tokens of prompts that a GPU reads at once, in a few milliseconds.
_PIECE = 4096
# Bytes that a weight of two bytes takes when quantised: scales, zero points, and the layers left as they are included.
_SHRINK = {"none": 1.0, "int8": 0.55, "nf4": 0.35}


class Transformers:
    """One loaded model that all users share.

    Replies that are streamed without sampling are written side by side, by continuous batching. All else is fairly
    queued, a batch giving way between its chunks of `settings.slots`, and each pass of it stops those for its time.
    Sampling draws from the whole distribution at the temperature; `logprobs` are the model's own. Also a `Scorer`.

    Raises:
        ModelError: the folder lacks a file, the tokenizer a chat template, the machine memory or what the
            quantisation needs; or the context is longer than the model's.
    """

    def __init__(
        self, folder: Path, settings: LLMSettings, name: str = "", quantisation: Quantisation = "none"
    ) -> None:
        self.name = name or folder.name
        self.context = settings.context
        self._slots = settings.slots
        self._queue = FairQueue(1)
        self._kept: list[_Kept] = []
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        if settings.threads:
            torch.set_num_threads(settings.threads)
        _check_memory(folder, self.name, quantisation)
        self._tokenizer = self._load_tokenizer(folder)
        self._model = self._load_model(folder, quantisation)
        # between two pieces the stop is looked at
        self._piece = settings.piece if self._model.device.type == "cpu" else _PIECE
        self._ends = _ends(self._model, self._tokenizer)
        self._together = self._side_by_side(settings.continuous)
        longest = getattr(self._model.config.get_text_config(), "max_position_embeddings", self.context)
        if self.context > longest:
            raise ModelError(f"{self.name} reads {longest} tokens at most; lower llm.context from {self.context}.")

    def count(self, messages: Messages) -> int:
        """Tokens of the prompt that these messages make, the template's own included."""
        return len(self._tokens(messages))

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """The completion as it grows; see `assistant.types.LLM`."""
        tokens, owner = self._fitting(messages), object()
        if self._together and not options.temperature:
            yield from _growing(self._written(self._together, tokens, options, stop))
            return
        if not self._queue.enter(owner, stop):
            yield Completion("", finish="cancelled")
            return
        try:
            yield from _growing(self._generate([tokens], options, stop))
        finally:
            self._queue.leave(owner)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """One completion for each prompt, `settings.slots` at a time, fewer where the memory is too small for that."""
        prompts, owner = [self._fitting(messages) for messages in batch], object()
        done: list[Completion] = []
        for start in range(0, len(prompts), self._slots):
            chunk = prompts[start : start + self._slots]
            if not self._queue.enter(owner, stop):
                done.extend(Completion("", finish="cancelled") for _ in chunk)
                continue
            try:
                done.extend(self._completed(chunk, options, stop))
            finally:
                self._queue.leave(owner)
        return done

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        """How likely each word is to begin the reply, normalised over the words; see `words.first_tokens`.

        Prompts that `stop` overtook get even odds.

        Raises:
            ModelError: two words begin with the same token, so that one token can't tell them apart.
        """
        prompts, tokens = [self._fitting(messages) for messages in batch], first_tokens(words, self._plain)
        found: list[Choice] = []
        for prompt, odds in zip(prompts, self._next_odds(prompts, stop), strict=True):
            masses = {word: 0.0 if odds is None else float(odds[ids].exp().sum()) for word, ids in tokens.items()}
            found.append(normalised(masses, len(prompt)))
        return found

    def score(self, batch: Sequence[tuple[Messages, str]]) -> list[float]:
        """For each (prompt, text): the sum of the text's natural-log token probabilities after the prompt."""
        return [self._score(self._fitting(messages), self._plain(defuse(text))) for messages, text in batch]

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights as they lie in memory, quantised or not."""
        return int(self._model.get_memory_footprint())

    def close(self) -> None:
        """Unload the model."""
        if self._together:
            self._together.close()
            self._together = None
        self._kept.clear()
        del self._model

    # --- from messages to tokens ---------------------------------------------------------------------------------

    def _fitting(self, messages: Messages) -> list[int]:
        tokens = self._tokens(messages)
        if len(tokens) >= self.context:
            raise ModelError(
                f"The prompt has {len(tokens)} tokens and {self.name} is set to {self.context} a request; shorten it,"
                " or raise llm.context."
            )
        return tokens

    def _tokens(self, messages: Messages) -> list[int]:
        said = [{"role": message.role, "content": defuse(message.content)} for message in messages]
        try:
            text = self._tokenizer.apply_chat_template(said, add_generation_prompt=True, tokenize=False)
        except TemplateError as error:
            raise ModelError(f"The chat template of {self.name} can't take these messages: {error}.") from error
        return self._plain(text)

    def _plain(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return tokens

    # --- reading prompts -----------------------------------------------------------------------------------------

    def _read(self, prompts: list[list[int]], stop: Event) -> _State | None:
        """Read prompts up to their ends: (cache, mask, last logits), or None if `stop` came first."""
        shared = _common(prompts)
        kept = self._prefix(shared, stop)
        if kept is None:
            return None
        alone = len(prompts) == 1
        cache = kept.cache if alone else _repeated(kept.cache, len(prompts))
        rest = [prompt[len(shared) :] for prompt in prompts]
        width = max(map(len, rest))
        ids = torch.tensor([[0] * (width - len(row)) + row for row in rest], device=self._model.device)
        own = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rest], device=self._model.device)
        mask = torch.cat([own.new_ones(len(prompts), len(shared)), own], dim=1)
        if alone:
            # The cache goes on growing in place: what is written after the prompt is cut off when it is next used.
            kept.tokens = prompts[0]
        state = _State(cache, mask)
        return state if self._feed(state, ids, stop) else None

    def _prefix(self, shared: list[int], stop: Event) -> _Kept | None:
        kept = max(self._kept, key=lambda one: _overlap(one.tokens, shared), default=None)
        if kept is None or _overlap(kept.tokens, shared) < _WORTH_KEEPING:
            kept = _Kept(DynamicCache())
            self._kept = [*self._kept[-_KEPT + 1 :], kept]
        else:
            self._kept = [*(one for one in self._kept if one is not kept), kept]
        have = min(_overlap(kept.tokens, shared), kept.cache.get_seq_length())
        kept.cut(have)
        kept.tokens = shared
        missing = shared[have:]
        if not missing:
            return kept
        mask = torch.ones(1, len(shared), dtype=torch.long, device=self._model.device)
        ids = torch.tensor([missing], device=self._model.device)
        return kept if self._feed(_State(kept.cache, mask), ids, stop) else None

    def _feed(self, state: _State, ids: Tensor, stop: Event) -> bool:
        """Run ids (batch, width) through the model, the last columns of `state.mask`; False if `stop` came first."""
        piece = max(1, self._piece // len(ids))
        positions = (state.mask.cumsum(1) - 1).clamp(min=0)
        before = state.mask.shape[1] - ids.shape[1]
        for start in range(0, ids.shape[1], piece):
            if stop.is_set():
                return False
            end = min(start + piece, ids.shape[1])
            with torch.inference_mode(), self._alone():
                out = self._model(
                    input_ids=ids[:, start:end],
                    attention_mask=state.mask[:, : before + end],
                    position_ids=positions[:, before + start : before + end],
                    past_key_values=state.cache,
                    use_cache=True,
                    logits_to_keep=1,
                )
            state.logits = out.logits[:, -1].float()
        return True

    def _next_odds(self, prompts: list[list[int]], stop: Event) -> list[Tensor | None]:
        """Log-probabilities of what comes first after each prompt, on the CPU; None for those that `stop` overtook."""
        found: list[Tensor | None] = []
        owner = object()
        for start in range(0, len(prompts), self._slots):
            chunk = prompts[start : start + self._slots]
            state = None
            if self._queue.enter(owner, stop):
                try:
                    state = self._read(chunk, stop)
                finally:
                    self._queue.leave(owner)
            found.extend(state.logits.log_softmax(-1).cpu() if state else [None] * len(chunk))
        return found

    def _score(self, prompt: list[int], text: list[int]) -> float:
        owner, never = object(), Event()
        self._queue.enter(owner, never)
        try:
            state = self._read([prompt], never)
            assert state is not None  # noqa: S101 - nobody sets `never`
            odds = torch.cat([state.logits, self._all_logits(state, text[:-1])]).log_softmax(-1)
            return sum(float(row[token]) for row, token in zip(odds, text, strict=False))
        finally:
            self._queue.leave(owner)

    def _all_logits(self, state: _State, ids: list[int]) -> Tensor:
        """The logits after each of these tokens, shape (len(ids), vocabulary), read in one go behind the prompt."""
        if not ids:
            return state.logits[:0]
        row = torch.tensor([ids], device=self._model.device)
        state.mask = torch.cat([state.mask, torch.ones_like(row)], dim=1)
        with torch.inference_mode(), self._alone():
            out = self._model(
                input_ids=row, attention_mask=state.mask, past_key_values=state.cache, use_cache=True,
                position_ids=(state.mask.cumsum(1) - 1)[:, -len(ids) :],
            )  # fmt: skip
        logits: Tensor = out.logits[0].float()
        return logits

    # --- writing -------------------------------------------------------------------------------------------------

    def _completed(self, prompts: list[list[int]], options: Options, stop: Event) -> list[Completion]:
        try:
            *_, rows = self._generate(prompts, options, stop)
            return [row.completion() for row in rows]
        except torch.OutOfMemoryError as error:
            self._kept.clear()
            torch.cuda.empty_cache()
            if len(prompts) == 1:
                raise ModelError(
                    f"The memory is too small for this prompt of {len(prompts[0])} tokens; lower llm.context, or choose"
                    " a smaller model or quantisation."
                ) from error
        half = len(prompts) // 2
        return self._completed(prompts[:half], options, stop) + self._completed(prompts[half:], options, stop)

    def _generate(self, prompts: list[list[int]], options: Options, stop: Event) -> Iterator[list[_Row]]:
        """The rows after every token; the last time all are finished."""
        rows = [_Row(self, prompt, options) for prompt in prompts]
        state = self._read(prompts, stop)
        going = list(rows)
        while state is not None and going and not stop.is_set():
            for row, logits in zip(going, state.logits.cpu(), strict=True):
                row.add(logits)
            yield rows
            on = [index for index, row in enumerate(going) if not row.finish]
            if len(on) < len(going):
                going = [going[index] for index in on]
                if going:
                    state.select(on)
            if going:
                self._step(state, [row.ids[-1] for row in going])
        for row in going:
            row.finish = "cancelled"
        yield rows

    def _written(self, together: SideBySide, prompt: list[int], options: Options, stop: Event) -> Iterator[list[_Row]]:
        """The row after every token, written beside those of other people."""
        row = _Row(self, prompt, options)
        for token, logprob in together.tokens(prompt, row.room, stop):
            row.take(token, logprob)
            yield [row]
            if row.finish:
                return
        row.finish = "cancelled"
        yield [row]

    def _alone(self) -> AbstractContextManager[None]:
        return self._together.pause() if self._together else nullcontext()

    def _step(self, state: _State, tokens: list[int]) -> None:
        ids = torch.tensor([[token] for token in tokens], device=self._model.device)
        state.mask = torch.cat([state.mask, torch.ones_like(ids)], dim=1)
        self._feed(state, ids, Event())

    def _side_by_side(self, wanted: bool) -> SideBySide | None:
        # its pages lie on one device, so a model that is spread over several is shared by the queue alone
        if not wanted or len(set(getattr(self._model, "hf_device_map", {}).values())) > 1:
            return None
        return SideBySide(self._model, self._ends, self.context, self._slots, self._piece)

    # --- loading -------------------------------------------------------------------------------------------------

    def _load_tokenizer(self, folder: Path) -> Any:
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            raise ModelError(
                f"{folder} holds no complete tokenizer ({_short(error)}); fetch the model again."
            ) from error
        if not tokenizer.chat_template:
            raise ModelError(f"{self.name} has no chat template, so it is no chat model; choose an instruct model.")
        return tokenizer

    def _load_model(self, folder: Path, quantisation: Quantisation) -> Any:
        try:
            return AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=torch.bfloat16,
                device_map="auto",
                quantization_config=_config(quantisation),
                local_files_only=True,
            ).eval()  # type: ignore[no-untyped-call]
        except ImportError as error:
            raise ModelError(f"{quantisation} can't be used on this machine ({_short(error)}).") from error
        except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
            raise ModelError(f"{self.name} can't be loaded from {folder} ({_short(error)}).") from error


@dataclass
class _Kept:
    """A cache of one sequence and the tokens it was made from; the cache may hold more than these."""

    cache: Any
    tokens: list[int] = field(default_factory=list)

    def cut(self, length: int) -> None:
        """Forget all but the first tokens."""
        if not length:
            self.cache = DynamicCache()
        elif length < self.cache.get_seq_length():
            self.cache.crop(length - self.cache.get_seq_length())  # what to remove, as a negative number


@dataclass
class _State:
    """What the model has read: its cache, which columns count (batch, length), and logits of what comes next."""

    cache: Any
    mask: Tensor
    logits: Tensor = field(default_factory=lambda: torch.empty(0))

    def select(self, rows: list[int]) -> None:
        """Go on with these rows only."""
        index = torch.tensor(rows, device=self.mask.device)
        self.cache.batch_select_indices(index)
        self.mask = self.mask[index]


class _Row:
    """One reply as it is written."""

    def __init__(self, llm: Transformers, prompt: list[int], options: Options) -> None:
        self._llm, self._options = llm, options
        self._prompt_tokens = len(prompt)
        self.room = min(options.max_tokens, llm.context - len(prompt))
        self._random = torch.Generator().manual_seed(options.seed)
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.text = ""
        self.finish: Literal["", "stop", "length", "cancelled"] = ""

    def add(self, logits: Tensor) -> None:
        """Draw the next token from logits (vocabulary)."""
        token = self._draw(logits)
        self.take(token, float(logits.log_softmax(-1)[token]))

    def take(self, token: int, logprob: float) -> None:
        """Add a token and see whether the reply is over."""
        self.ids.append(token)
        self.logprobs.append(logprob)
        whole = self._llm._tokenizer.decode(self.ids, skip_special_tokens=True)
        cut = min((at for at in (whole.find(text) for text in self._options.stop if text) if at >= 0), default=-1)
        if cut >= 0 or token in self._llm._ends:
            self.finish = "stop"
        elif len(self.ids) >= self.room:
            self.finish = "length"
        self.text = self._shown(whole if cut < 0 else whole[:cut])

    def completion(self) -> Completion:
        return Completion(self.text, self._prompt_tokens, len(self.ids), tuple(self.logprobs), self.finish)

    def _draw(self, logits: Tensor) -> int:
        if not self._options.temperature:
            return int(logits.argmax())
        odds = (logits / self._options.temperature).softmax(-1)
        return int(torch.multinomial(odds, 1, generator=self._random))

    def _shown(self, text: str) -> str:
        # The bytes of a character may be spread over tokens: until all are there it decodes to the replacement mark.
        text = text.rstrip("\ufffd")
        if self.finish:
            return text
        held = max((_held(text, mark) for mark in self._options.stop), default=0)
        return text[: len(text) - held]


def _growing(steps: Iterator[list[_Row]]) -> Iterator[Completion]:
    shown = None
    for (row,) in steps:
        completion = row.completion()
        if row.finish or completion.text != shown:
            shown = completion.text
            yield completion
        if row.finish:
            return


def _held(text: str, mark: str) -> int:
    """How many characters at the end of the text may be the beginning of a stop string."""
    return next((size for size in range(min(len(mark) - 1, len(text)), 0, -1) if text.endswith(mark[:size])), 0)


def _common(prompts: list[list[int]]) -> list[int]:
    """What all prompts begin with, short of the last token of the shortest, which is needed for its logits."""
    first = prompts[0][: min(map(len, prompts)) - 1]
    return first[: min(_overlap(first, prompt) for prompt in prompts)]


def _overlap(one: list[int], other: list[int]) -> int:
    size = min(len(one), len(other))
    return next((index for index in range(size) if one[index] != other[index]), size)


def _repeated(cache: Any, times: int) -> Any:
    if not cache.get_seq_length():
        return DynamicCache()
    several = copy.deepcopy(cache)
    several.batch_repeat_interleave(times)
    return several


def _ends(model: Any, tokenizer: Any) -> set[int]:
    ends = model.generation_config.eos_token_id
    return {tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])} - {None}


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
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors")) * _SHRINK[quantisation]
    gpu = sum(torch.cuda.mem_get_info(index)[0] for index in range(torch.cuda.device_count()))
    free = gpu if gpu and quantisation != "none" else gpu + psutil.virtual_memory().available
    if size > free:
        raise ModelError(
            f"{name} needs about {size / _GIB:.1f} GiB ({quantisation}) and {free / _GIB:.1f} GiB are free"
            f" ({gpu / _GIB:.1f} of them on GPUs); choose a smaller model or a stronger quantisation."
        )


def _short(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
