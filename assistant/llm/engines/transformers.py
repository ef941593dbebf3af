"""The engine of the backend transformers.

On a CPU it is the one that reads prompts fastest, where the cores have units for bf16. The keys and values
of the last few prompts are kept; a new prompt is read from where it differs from the nearest of them, and the prompts
of a batch read what they share once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from math import inf
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import torch
from jinja2 import TemplateError
from torch import Tensor

from assistant.errors import ModelError
from assistant.llm.context_limit import within_context
from assistant.llm.continuous_batching import ContinuousBatcher
from assistant.llm.control_tokens import chat_messages, defuse
from assistant.llm.fair_queue import FairQueue
from assistant.llm.prefix_cache import CachedPrompt, PrefixCache, State, common_prefix
from assistant.llm.pretrained import ends, load_model, load_tokenizer
from assistant.llm.reply import Reply, growing_completions, reply_steps
from assistant.llm.thoughts import THINKING_OFF, with_thought_closed, without_thought
from assistant.llm.word_choice import first_tokens, normalised
from assistant.settings import Backend, LLMSettings, Quantisation
from assistant.types import Choice, Completion, Messages, Options

T = TypeVar("T")

# Tokens of prompts that a GPU reads at once, in a few milliseconds.
_PIECE = 4096


class Transformers:
    """One loaded model that all users share.

    Replies that are streamed without sampling are written side by side, by continuous batching. All else is fairly
    queued, a batch giving way between its chunks of `settings.slots`, and each pass of it stops those for its time.
    Sampling draws from the whole distribution at the temperature; `logprobs` are the model's own. Nothing constrains
    the model to a schema, so what it thinks is left out of such replies as well.

    Raises:
        ModelError: the folder lacks a file, the tokenizer a chat template, the machine memory or what the
            quantisation needs; or the context is longer than the model's.
    """

    backend: Backend = "transformers"

    def __init__(
        self, folder: Path, settings: LLMSettings, name: str = "", quantisation: Quantisation = "none"
    ) -> None:
        self.name = name or folder.name
        self.context, self.can_score = settings.context, True
        self._slots = settings.slots
        self._queue = FairQueue(1)
        self._prefix_cache = PrefixCache()
        if settings.threads:
            torch.set_num_threads(settings.threads)
        self._tokenizer = load_tokenizer(folder, self.name)
        self._loaded: Any = load_model(folder, self.name, quantisation)
        # between two pieces the stop is looked at
        self._piece = settings.prefill_chunk if self._model.device.type == "cpu" else _PIECE
        self._ends = ends(self._model, self._tokenizer)
        self._batcher = self._continuous_batcher(settings.continuous_batching)
        max_context = getattr(self._model.config.get_text_config(), "max_position_embeddings", self.context)
        if self.context > max_context:
            raise ModelError(f"{self.name} reads {max_context} tokens at most; lower llm.context from {self.context}.")

    def count(self, messages: Messages) -> int:
        """Tokens of the prompt that these messages make, the template's own included."""
        return len(self._tokens(messages))

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """The completion as it grows; see `assistant.protocols.LLM`."""
        options = _without_schema(options)
        tokens, owner = self._fitting(messages), object()
        if self._batcher and not options.temperature:
            reply = self._reply(tokens, options)
            for completion in growing_completions(
                reply_steps(reply, self._batcher.tokens(tokens, reply.max_tokens, stop))
            ):
                yield without_thought(completion, options)
            return
        if not self._queue.enter(owner, stop):
            yield Completion("", finish="cancelled")
            return
        try:
            with self._fitting_memory(tokens):
                for completion in growing_completions(self._generate([tokens], options, stop)):
                    yield without_thought(completion, options)
        finally:
            self._queue.leave(owner)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """One completion for each prompt, `settings.slots` at a time, fewer where the memory is too small for that."""
        options = _without_schema(options)
        prompts, owner = [self._fitting(messages) for messages in batch], object()
        completions: dict[int, Completion] = {}
        for chunk in self._chunks(prompts):
            if self._queue.enter(owner, stop):
                try:
                    replies = self._halving(
                        [prompts[index] for index in chunk], lambda part: self._completed(part, options, stop)
                    )
                finally:
                    self._queue.leave(owner)
            else:
                replies = [Completion("", finish="cancelled")] * len(chunk)
            completions.update(zip(chunk, replies, strict=True))
        return [without_thought(completions[index], options) for index in range(len(prompts))]

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        """How likely each word is to begin the reply, normalised over the words; see `word_choice.first_tokens`.

        Prompts that were not read because `stop` was set get equal odds.

        Raises:
            ModelError: two words begin with the same token, so that one token can't tell them apart.
        """
        prompts, tokens = [self._fitting(messages) for messages in batch], first_tokens(words, self._plain)
        choices: list[Choice] = []
        for prompt, logprobs in zip(prompts, self._next_logprobs(prompts, stop), strict=True):
            masses = {
                word: 0.0 if logprobs is None else float(logprobs[ids].exp().sum()) for word, ids in tokens.items()
            }
            choices.append(normalised(masses, len(prompt)))
        return choices

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:
        """For each (prompt, text): the sum of the text's natural-log token probabilities after the prompt.

        Texts that were not scored because `stop` was set get minus infinity.
        """
        return [self._score(self._fitting(messages), self._plain(defuse(text)), stop) for messages, text in batch]

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights as they lie in memory, quantised or not."""
        return int(self._model.get_memory_footprint())

    def close(self) -> None:
        """Unload the model; calls under way fail."""
        if self._batcher:
            self._batcher.close()
            self._batcher = None
        self._prefix_cache.clear()
        self._loaded = None

    @property
    def _model(self) -> Any:
        if self._loaded is None:
            raise ModelError(f"{self.name} was unloaded; start again to use it.")
        return self._loaded

    # --- from messages to tokens ---------------------------------------------------------------------------------

    def _fitting(self, messages: Messages) -> list[int]:
        return within_context(self._tokens(messages), self)

    def _tokens(self, messages: Messages) -> list[int]:
        try:
            text = self._tokenizer.apply_chat_template(
                chat_messages(messages), add_generation_prompt=True, tokenize=False, **THINKING_OFF
            )
        except TemplateError as error:
            raise ModelError(f"The chat template of {self.name} can't take these messages: {error}.") from error
        return self._plain(with_thought_closed(text))

    def _plain(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return tokens

    # --- reading prompts -----------------------------------------------------------------------------------------

    def _read(self, prompts: list[list[int]], stop: Event) -> State | None:
        """Read prompts up to their ends: (cache, mask, last logits), or None if `stop` came first."""
        shared = common_prefix(prompts)
        cached = self._prefix(shared, stop)
        if cached is None:
            return None
        is_single = len(prompts) == 1
        cache = cached.cache if is_single else cached.repeated(len(prompts))
        remainders = [prompt[len(shared) :] for prompt in prompts]
        width = max(map(len, remainders))
        ids = torch.tensor([[0] * (width - len(row)) + row for row in remainders], device=self._model.device)
        own_mask = torch.tensor(
            [[0] * (width - len(row)) + [1] * len(row) for row in remainders], device=self._model.device
        )
        mask = torch.cat([own_mask.new_ones(len(prompts), len(shared)), own_mask], dim=1)
        if is_single:
            # The cache goes on growing in place: what is written after the prompt is cut off when it is next used.
            cached.tokens = prompts[0]
        state = State(cache, mask)
        return state if self._feed(state, ids, stop) else None

    def _prefix(self, shared: list[int], stop: Event) -> CachedPrompt | None:
        cached, missing = self._prefix_cache.nearest(shared)
        if not missing:
            return cached
        mask = torch.ones(1, len(shared), dtype=torch.long, device=self._model.device)
        ids = torch.tensor([missing], device=self._model.device)
        return cached if self._feed(State(cached.cache, mask), ids, stop) else None

    def _feed(self, state: State, ids: Tensor, stop: Event) -> bool:
        """Run ids (batch, width) through the model, the last columns of `state.mask`; False if `stop` came first."""
        piece = max(1, self._piece // len(ids))
        positions = (state.mask.cumsum(1) - 1).clamp(min=0)
        cached_length = state.mask.shape[1] - ids.shape[1]
        for start in range(0, ids.shape[1], piece):
            if stop.is_set():
                return False
            end = min(start + piece, ids.shape[1])
            with self._pass():
                output = self._model(
                    input_ids=ids[:, start:end],
                    attention_mask=state.mask[:, : cached_length + end],
                    position_ids=positions[:, cached_length + start : cached_length + end],
                    past_key_values=state.cache,
                    use_cache=True,
                    logits_to_keep=1,
                )
            state.logits = output.logits[:, -1].float()
        return True

    def _chunks(self, prompts: list[list[int]], tokens: float = inf) -> Iterator[list[int]]:
        """The indices of the prompts, at most `settings.slots` and about `tokens` at a time, the shortest first.

        Those of a chunk are filled up to the longest, so that it costs least when they are about as long.
        """
        shared, chunk = len(common_prefix(prompts)) if prompts else 0, list[int]()
        for index in sorted(range(len(prompts)), key=lambda index: len(prompts[index])):
            filled = (len(chunk) + 1) * (len(prompts[index]) - shared)
            if chunk and (len(chunk) == self._slots or filled > tokens):
                yield chunk
                chunk = []
            chunk.append(index)
        if chunk:
            yield chunk

    def _next_logprobs(self, prompts: list[list[int]], stop: Event) -> list[Tensor | None]:
        """Log-probabilities of the first token after each prompt, on the CPU; None for those not read before `stop`."""
        all_logprobs: list[Tensor | None] = [None] * len(prompts)
        owner = object()
        # a pass takes a piece however many prompts it is of, so fewer at a time cost no more, and are filled up less
        for chunk in self._chunks(prompts, self._piece):
            if self._queue.enter(owner, stop):
                try:
                    logprobs = self._halving(
                        [prompts[index] for index in chunk], lambda part: self._read_logprobs(part, stop)
                    )
                finally:
                    self._queue.leave(owner)
                for index, row in zip(chunk, logprobs, strict=True):
                    all_logprobs[index] = row
        return all_logprobs

    def _read_logprobs(self, prompts: list[list[int]], stop: Event) -> list[Tensor | None]:
        state = self._read(prompts, stop)
        return list(state.logits.log_softmax(-1).cpu()) if state else [None] * len(prompts)

    def _score(self, prompt: list[int], text: list[int], stop: Event) -> float:
        owner = object()
        if not self._queue.enter(owner, stop):
            return -inf
        try:
            with self._fitting_memory(prompt):
                state = self._read([prompt], stop)
                if state is None:
                    return -inf
                logprobs = torch.cat([state.logits, self._all_logits(state, text[:-1])]).log_softmax(-1)
                return sum(float(row[token]) for row, token in zip(logprobs, text, strict=False))
        finally:
            self._queue.leave(owner)

    def _all_logits(self, state: State, ids: list[int]) -> Tensor:
        """The logits after each of these tokens, shape (len(ids), vocabulary), read in one go behind the prompt."""
        if not ids:
            return state.logits[:0]
        row = torch.tensor([ids], device=self._model.device)
        state.mask = torch.cat([state.mask, torch.ones_like(row)], dim=1)
        with self._pass():
            output = self._model(
                input_ids=row, attention_mask=state.mask, past_key_values=state.cache, use_cache=True,
                position_ids=(state.mask.cumsum(1) - 1)[:, -len(ids) :],
            )  # fmt: skip
        logits: Tensor = output.logits[0].float()
        return logits

    @contextmanager
    def _pass(self) -> Iterator[None]:
        """Exclusive use of the model for one pass."""
        try:
            with torch.inference_mode(), self._batcher.pause() if self._batcher else nullcontext():
                yield
        except BaseException:
            # the cache that was being read into has more tokens in some layers than in others
            self._prefix_cache.clear()
            raise

    # --- when the memory is too small ----------------------------------------------------------------------------

    def _halving(self, prompts: list[list[int]], work: Callable[[list[list[int]]], list[T]]) -> list[T]:
        """The results of `work` on the prompts, in smaller batches if the memory is too small for all."""
        if len(prompts) == 1:
            with self._fitting_memory(prompts[0]):
                return work(prompts)
        try:
            return work(prompts)
        except torch.OutOfMemoryError:
            self._make_room()
        half = len(prompts) // 2
        return self._halving(prompts[:half], work) + self._halving(prompts[half:], work)

    @contextmanager
    def _fitting_memory(self, prompt: list[int]) -> Iterator[None]:
        try:
            yield
        except torch.OutOfMemoryError as error:
            self._make_room()
            raise ModelError(
                f"The memory is too small for this prompt of {len(prompt)} tokens; lower llm.context, or choose"
                " a smaller model or quantisation."
            ) from error

    def _make_room(self) -> None:
        self._prefix_cache.clear()
        torch.cuda.empty_cache()

    # --- writing -------------------------------------------------------------------------------------------------

    def _completed(self, prompts: list[list[int]], options: Options, stop: Event) -> list[Completion]:
        *_, rows = self._generate(prompts, options, stop)
        return [row.completion() for row in rows]

    def _generate(self, prompts: list[list[int]], options: Options, stop: Event) -> Iterator[list[Reply]]:
        """The rows after each token, until all are finished."""
        rows = [self._reply(prompt, options) for prompt in prompts]
        state = self._read(prompts, stop)
        active_rows = list(rows)
        while state is not None and active_rows and not stop.is_set():
            for row, logits in zip(active_rows, state.logits.cpu(), strict=True):
                row.add(logits)
            yield rows
            active_indices = [index for index, row in enumerate(active_rows) if not row.finish]
            if len(active_indices) < len(active_rows):
                active_rows = [active_rows[index] for index in active_indices]
                if active_rows:
                    state.select(active_indices)
            if active_rows:
                self._step(state, [row.ids[-1] for row in active_rows])
        for row in active_rows:
            row.finish = "cancelled"
        yield rows

    def _reply(self, prompt: list[int], options: Options) -> Reply:
        max_tokens = min(options.max_tokens, self.context - len(prompt))
        return Reply(len(prompt), max_tokens, options, self._decoded, self._ends)

    def _decoded(self, tokens: list[int]) -> str:
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=True)
        return text

    def _step(self, state: State, tokens: list[int]) -> None:
        ids = torch.tensor([[token] for token in tokens], device=self._model.device)
        state.mask = torch.cat([state.mask, torch.ones_like(ids)], dim=1)
        self._feed(state, ids, Event())

    def _continuous_batcher(self, enabled: bool) -> ContinuousBatcher | None:
        # its pages lie on one device, so a model that is spread over several is shared by the queue alone
        if not enabled or len(set(getattr(self._model, "hf_device_map", {}).values())) > 1:
            return None
        return ContinuousBatcher(self._model, self._ends, self.context, self._slots, self._piece)


def _without_schema(options: Options) -> Options:
    """The options as they are kept to here: a schema isn't, so that there is room for a thought."""
    return replace(options, schema="")
