"""The engine of the backend transformers.

On a CPU it is the one that reads prompts fastest, where the cores have units for bf16. The keys and values
of the last few prompts are kept; a new prompt is read from where it differs from the nearest of them, and the prompts
of a batch read what they share once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
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
from assistant.llm.control_tokens import defuse
from assistant.llm.fair_queue import FairQueue
from assistant.llm.prefix_cache import CachedPrompt, PrefixCache, State, common_prefix
from assistant.llm.pretrained import ends, load_model, load_tokenizer
from assistant.llm.reply import Reply, growing, written
from assistant.llm.thoughts import SWITCHED_OFF, closed, spoken
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
    Sampling draws from the whole distribution at the temperature; `logprobs` are the model's own.

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
        self._kept = PrefixCache()
        if settings.threads:
            torch.set_num_threads(settings.threads)
        self._tokenizer = load_tokenizer(folder, self.name)
        self._loaded: Any = load_model(folder, self.name, quantisation)
        # between two pieces the stop is looked at
        self._piece = settings.prefill_chunk if self._model.device.type == "cpu" else _PIECE
        self._ends = ends(self._model, self._tokenizer)
        self._together = self._side_by_side(settings.continuous_batching)
        longest = getattr(self._model.config.get_text_config(), "max_position_embeddings", self.context)
        if self.context > longest:
            raise ModelError(f"{self.name} reads {longest} tokens at most; lower llm.context from {self.context}.")

    def count(self, messages: Messages) -> int:
        """Tokens of the prompt that these messages make, the template's own included."""
        return len(self._tokens(messages))

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """The completion as it grows; see `assistant.protocols.LLM`."""
        tokens, owner = self._fitting(messages), object()
        if self._together and not options.temperature:
            reply = self._reply(tokens, options)
            for completion in growing(written(reply, self._together.tokens(tokens, reply.max_tokens, stop))):
                yield spoken(completion, options)
            return
        if not self._queue.enter(owner, stop):
            yield Completion("", finish="cancelled")
            return
        try:
            with self._fitting_memory(tokens):
                for completion in growing(self._generate([tokens], options, stop)):
                    yield spoken(completion, options)
        finally:
            self._queue.leave(owner)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """One completion for each prompt, `settings.slots` at a time, fewer where the memory is too small for that."""
        prompts, owner = [self._fitting(messages) for messages in batch], object()
        done: dict[int, Completion] = {}
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
            done.update(zip(chunk, replies, strict=True))
        return [spoken(done[index], options) for index in range(len(prompts))]

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        """How likely each word is to begin the reply, normalised over the words; see `word_choice.first_tokens`.

        Prompts that were not read because `stop` was set get equal odds.

        Raises:
            ModelError: two words begin with the same token, so that one token can't tell them apart.
        """
        prompts, tokens = [self._fitting(messages) for messages in batch], first_tokens(words, self._plain)
        found: list[Choice] = []
        for prompt, odds in zip(prompts, self._next_odds(prompts, stop), strict=True):
            masses = {word: 0.0 if odds is None else float(odds[ids].exp().sum()) for word, ids in tokens.items()}
            found.append(normalised(masses, len(prompt)))
        return found

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
        if self._together:
            self._together.close()
            self._together = None
        self._kept.clear()
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
        said = [{"role": message.role, "content": defuse(message.content)} for message in messages]
        try:
            text = self._tokenizer.apply_chat_template(said, add_generation_prompt=True, tokenize=False, **SWITCHED_OFF)
        except TemplateError as error:
            raise ModelError(f"The chat template of {self.name} can't take these messages: {error}.") from error
        return self._plain(closed(text))

    def _plain(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return tokens

    # --- reading prompts -----------------------------------------------------------------------------------------

    def _read(self, prompts: list[list[int]], stop: Event) -> State | None:
        """Read prompts up to their ends: (cache, mask, last logits), or None if `stop` came first."""
        shared = common_prefix(prompts)
        kept = self._prefix(shared, stop)
        if kept is None:
            return None
        alone = len(prompts) == 1
        cache = kept.cache if alone else kept.repeated(len(prompts))
        rest = [prompt[len(shared) :] for prompt in prompts]
        width = max(map(len, rest))
        ids = torch.tensor([[0] * (width - len(row)) + row for row in rest], device=self._model.device)
        own = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rest], device=self._model.device)
        mask = torch.cat([own.new_ones(len(prompts), len(shared)), own], dim=1)
        if alone:
            # The cache goes on growing in place: what is written after the prompt is cut off when it is next used.
            kept.tokens = prompts[0]
        state = State(cache, mask)
        return state if self._feed(state, ids, stop) else None

    def _prefix(self, shared: list[int], stop: Event) -> CachedPrompt | None:
        kept, missing = self._kept.nearest(shared)
        if not missing:
            return kept
        mask = torch.ones(1, len(shared), dtype=torch.long, device=self._model.device)
        ids = torch.tensor([missing], device=self._model.device)
        return kept if self._feed(State(kept.cache, mask), ids, stop) else None

    def _feed(self, state: State, ids: Tensor, stop: Event) -> bool:
        """Run ids (batch, width) through the model, the last columns of `state.mask`; False if `stop` came first."""
        piece = max(1, self._piece // len(ids))
        positions = (state.mask.cumsum(1) - 1).clamp(min=0)
        before = state.mask.shape[1] - ids.shape[1]
        for start in range(0, ids.shape[1], piece):
            if stop.is_set():
                return False
            end = min(start + piece, ids.shape[1])
            with self._pass():
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

    def _next_odds(self, prompts: list[list[int]], stop: Event) -> list[Tensor | None]:
        """Log-probabilities of the first token after each prompt, on the CPU; None for those not read before `stop`."""
        found: list[Tensor | None] = [None] * len(prompts)
        owner = object()
        # a pass takes a piece however many prompts it is of, so fewer at a time cost no more, and are filled up less
        for chunk in self._chunks(prompts, self._piece):
            if self._queue.enter(owner, stop):
                try:
                    odds = self._halving([prompts[index] for index in chunk], lambda part: self._odds(part, stop))
                finally:
                    self._queue.leave(owner)
                for index, row in zip(chunk, odds, strict=True):
                    found[index] = row
        return found

    def _odds(self, prompts: list[list[int]], stop: Event) -> list[Tensor | None]:
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
                odds = torch.cat([state.logits, self._all_logits(state, text[:-1])]).log_softmax(-1)
                return sum(float(row[token]) for row, token in zip(odds, text, strict=False))
        finally:
            self._queue.leave(owner)

    def _all_logits(self, state: State, ids: list[int]) -> Tensor:
        """The logits after each of these tokens, shape (len(ids), vocabulary), read in one go behind the prompt."""
        if not ids:
            return state.logits[:0]
        row = torch.tensor([ids], device=self._model.device)
        state.mask = torch.cat([state.mask, torch.ones_like(row)], dim=1)
        with self._pass():
            out = self._model(
                input_ids=row, attention_mask=state.mask, past_key_values=state.cache, use_cache=True,
                position_ids=(state.mask.cumsum(1) - 1)[:, -len(ids) :],
            )  # fmt: skip
        logits: Tensor = out.logits[0].float()
        return logits

    @contextmanager
    def _pass(self) -> Iterator[None]:
        """Exclusive use of the model for one pass."""
        try:
            with torch.inference_mode(), self._together.pause() if self._together else nullcontext():
                yield
        except BaseException:
            # the cache that was being read into has more tokens in some layers than in others
            self._kept.clear()
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
        self._kept.clear()
        torch.cuda.empty_cache()

    # --- writing -------------------------------------------------------------------------------------------------

    def _completed(self, prompts: list[list[int]], options: Options, stop: Event) -> list[Completion]:
        *_, rows = self._generate(prompts, options, stop)
        return [row.completion() for row in rows]

    def _generate(self, prompts: list[list[int]], options: Options, stop: Event) -> Iterator[list[Reply]]:
        """The rows after each token, until all are finished."""
        rows = [self._reply(prompt, options) for prompt in prompts]
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

    def _side_by_side(self, wanted: bool) -> ContinuousBatcher | None:
        # its pages lie on one device, so a model that is spread over several is shared by the queue alone
        if not wanted or len(set(getattr(self._model, "hf_device_map", {}).values())) > 1:
            return None
        return ContinuousBatcher(self._model, self._ends, self.context, self._slots, self._piece)
