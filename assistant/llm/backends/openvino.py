"""GGUF models on a CPU with wide vectors, through openvino-genai's continuous batching.

All people's replies are written side by side. What was read is kept in blocks, so that prompts that begin alike are
read once. Where `llm.prompt_lookup_tokens` is set, several tokens are tried in one step if the reply goes on as its
prompt did (prompt lookup): that changes the speed alone, since only what the model would have written is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from math import exp, inf
from pathlib import Path
from threading import Event, Lock
from typing import Any

import numpy as np
import psutil

from assistant.errors import ModelError
from assistant.llm.backends import ModelTraits
from assistant.llm.context_limit import within_context
from assistant.llm.control_tokens import chat_messages, defuse
from assistant.llm.engines.openvino_logits import Logits
from assistant.llm.engines.openvino_loop import PIECE, Job, Loop
from assistant.llm.engines.openvino_model import MODEL, converted, read_notes
from assistant.llm.mapped_pages import drop_mapped_pages
from assistant.llm.processor import has_avx2, has_matrix_units, has_wide_vectors
from assistant.llm.reply import Reply, growing_completions, reply_steps
from assistant.llm.subprocess_engine import SubprocessEngine
from assistant.llm.thoughts import THINKING_OFF, with_thought_closed, without_thought
from assistant.llm.word_choice import first_tokens, normalised
from assistant.protocols import Engine, Progress
from assistant.settings import Backend, LLMSettings, Settings
from assistant.types import Choice, Completion, Messages, Options

TITLE = "OpenVINO"
OWN_PROCESS = True
_GIB = 1 << 30
_BLOCK = 32  # tokens; the engine's own, on a CPU
_WORKING_MEMORY = 1 << 30
# The likeliest tokens that are asked for to choose between words: the last of them has some 1 in 20,000. Where the
# words have less than this of the probability together, all tokens are looked at.
_TOP_TOKENS, _MIN_MASS = 24, 0.05
# Prompt lookup goes by the last so many tokens, or fewer, and where they stood before.
_LOOKUP_NGRAM = 3


def fitness(traits: ModelTraits) -> int:
    """How well OpenVINO suits: for GGUF files, where it was faster than llama.cpp (docs/results/llm.md)."""
    return 2 if traits.gguf and has_wide_vectors() and find_spec("openvino_genai") else 0


def load(path: Path, name: str, settings: Settings, progress: Progress) -> Engine:
    """The model of a GGUF file, converted on first use, in a process of its own.

    Raises:
        ModelError: see `OpenVino`, or this processor can't run it, or the file can't be converted.
    """
    if not has_avx2():
        raise ModelError("OpenVINO needs a processor with AVX2; set llm.backend to llama.cpp.")
    folder = converted(path, settings, progress)
    return SubprocessEngine(partial(OpenVino, precise=not has_matrix_units()), folder, settings.llm, name)


class OpenVino:
    """One converted model that all users share, fairly queued.

    Temperature samples from the whole distribution, with a seed of its own for each reply. `logprobs` are the model's
    own (before temperature). `score`, and `choose` where none of its words is likely, load the weights a second
    time when first asked (`Logits`).

    Where it is `precise`, sums are kept in 32 bits: as fast on processors without units for matrices, and probabilities
    don't come out in steps; else in what the processor is fastest with.

    Raises:
        ModelError: the folder holds no converted model, the context is longer than the model's, or the free memory too
            small.
    """

    backend: Backend = "openvino"

    def __init__(self, folder: Path, settings: LLMSettings, name: str = "", *, precise: bool = True) -> None:
        self.name = name or folder.name
        self.context, self.can_score = settings.context, True
        self._folder, self._threads, self._lookup = folder, settings.threads, settings.prompt_lookup_tokens
        self._precise = precise
        self._notes = read_notes(folder)
        self._check(settings)
        self._engine = _engine()
        self._tokenizer: Any = self._engine.Tokenizer(str(folder))
        self._ends = {*self._notes.ends, self._tokenizer.get_eos_token_id()}
        self._logits: Logits | None = None
        self._lock = Lock()
        self._loop: Loop | None = Loop(partial(self._pipeline, settings), _tensor, settings.slots)
        self._warm_up()

    def count(self, messages: Messages) -> int:
        """Tokens of the prompt that these messages make, the template's own included."""
        return len(self._tokens(messages))

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """The completion as it grows; see `assistant.protocols.LLM`."""
        job, reply = self._start_reply(self._fitting(messages), options, stop, object())
        for completion in growing_completions(reply_steps(reply, job)):
            yield without_thought(completion, options)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """One completion for each prompt, side by side, in the prompts' order."""
        prompts, owner = [self._fitting(messages) for messages in batch], object()
        started: list[tuple[Job, Reply]] = []
        try:
            for tokens in prompts:
                started.append(self._start_reply(tokens, options, stop, owner))  # noqa: PERF401 - kept for `finally`
            return [without_thought(_final_completion(reply, job), options) for job, reply in started]
        finally:
            for job, _ in started:
                job.left.set()

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        """How likely each word is to begin the reply, normalised over the words; see `word_choice.first_tokens`.

        Prompts that were not read because `stop` was set get equal odds.

        Raises:
            ModelError: two words begin with the same token, so that one token can't tell them apart.
        """
        prompts, tokens = [self._fitting(messages) for messages in batch], first_tokens(words, self._plain)
        owner = object()
        return [normalised(self._masses(prompt, tokens, stop, owner), len(prompt)) for prompt in prompts]

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:
        """For each (prompt, text): the sum of the text's natural-log token probabilities after the prompt.

        Texts that were not scored because `stop` was set get minus infinity.
        """
        return [self._score(self._fitting(messages), self._plain(defuse(text)), stop) for messages, text in batch]

    def rest(self, seconds: float) -> None:
        """Let replies under way wait for so many seconds, which leaves the processor to others; 0 ends the rest."""
        if loop := self._loop:
            loop.rest(seconds)

    def close(self) -> None:
        """Unload the model; replies under way end as cancelled."""
        with self._lock:
            loop, self._loop, self._logits = self._loop, None, None
        if loop:
            loop.close()

    # --- from messages to tokens ---------------------------------------------------------------------------------

    def _fitting(self, messages: Messages) -> list[int]:
        return within_context(self._tokens(messages), self)

    def _tokens(self, messages: Messages) -> list[int]:
        try:
            prompt = self._tokenizer.apply_chat_template(
                chat_messages(messages), add_generation_prompt=True, extra_context=THINKING_OFF
            )
            return self._plain(with_thought_closed(prompt))
        except RuntimeError as error:
            raise ModelError(f"The chat template of {self.name} can't take these messages.") from error

    def _plain(self, text: str) -> list[int]:
        return [int(token) for token in self._tokenizer.encode(text, add_special_tokens=False).input_ids.data[0]]

    def _decoded(self, tokens: list[int]) -> str:
        text: str = self._tokenizer.decode(tokens)
        return text

    # --- writing -------------------------------------------------------------------------------------------------

    def _start_reply(self, prompt: list[int], options: Options, stop: Event, owner: object) -> tuple[Job, Reply]:
        max_tokens = min(options.max_tokens, self.context - len(prompt))
        job = Job(prompt, max_tokens, partial(self._config, options), stop, owner)
        return self._start_job(job), Reply(len(prompt), max_tokens, options, self._decoded, self._ends)

    def _start_job(self, job: Job) -> Job:
        if self._loop is None:
            raise ModelError(f"{self.name} was unloaded; start again to use it.")
        return self._loop.start(job)

    def _config(self, options: Options, max_tokens: int) -> Any:
        config = self._engine.GenerationConfig()
        config.apply_chat_template = False
        config.max_new_tokens = max_tokens
        config.stop_token_ids = self._ends
        config.logprobs = 1
        if self._lookup:
            config.num_assistant_tokens, config.max_ngram_size = self._lookup, _LOOKUP_NGRAM
        if options.temperature:
            config.do_sample, config.temperature, config.rng_seed = True, options.temperature, options.seed
        if options.schema:
            config.structured_output_config = self._engine.StructuredOutputConfig(json_schema=options.schema)
        return config

    # --- reading probabilities -----------------------------------------------------------------------------------

    def _masses(
        self, prompt: list[int], words: Mapping[str, list[int]], stop: Event, owner: object
    ) -> dict[str, float]:
        """How likely each word's tokens begin the reply, together; 0 for all where `stop` came first.

        The engine tells the likeliest tokens alone. What is not among them adds next to nothing, unless none of the
        words is likely.
        """
        if self._lookup:  # with which the engine tells of none but the token it writes
            return self._exact_masses(prompt, words, stop)
        job = self._start_job(Job(prompt, 1, self._top_tokens_config, stop, owner, wide=True))
        logprobs = dict(token for token in job if not isinstance(token, int))
        masses = {word: sum(exp(logprobs[token]) for token in ids if token in logprobs) for word, ids in words.items()}
        if logprobs and sum(masses.values()) < _MIN_MASS:
            return self._exact_masses(prompt, words, stop)
        return masses

    def _exact_masses(self, prompt: list[int], words: Mapping[str, list[int]], stop: Event) -> dict[str, float]:
        logprobs = self._load_logits().after(prompt, [], stop) if not stop.is_set() else None
        return {
            word: 0.0 if logprobs is None else float(np.exp(logprobs[-1, ids]).sum()) for word, ids in words.items()
        }

    def _top_tokens_config(self, _max_tokens: int) -> Any:
        config = self._engine.GenerationConfig()
        config.apply_chat_template = False
        config.max_new_tokens = config.logprobs = 1
        config.num_beams = config.num_return_sequences = _TOP_TOKENS
        return config

    def _load_logits(self) -> Logits:
        with self._lock:
            if self._loop is None:
                raise ModelError(f"{self.name} was unloaded; start again to use it.")
            self._logits = self._logits or Logits(self._folder, self._threads)
            return self._logits

    def _score(self, prompt: list[int], text: list[int], stop: Event) -> float:
        logprobs = self._load_logits().after(prompt, text, stop) if not stop.is_set() else None
        if logprobs is None:
            return -inf
        return float(sum(row[token] for row, token in zip(logprobs, text, strict=False)))

    # --- loading -------------------------------------------------------------------------------------------------

    def _check(self, settings: LLMSettings) -> None:
        max_context = self._notes.context or settings.context
        if settings.context > max_context:
            raise ModelError(
                f"{self.name} reads {max_context} tokens at most; lower llm.context from {settings.context}."
            )
        cache = self._notes.cache_bytes * _cache_tokens(settings)
        needed = self._notes.files.get("openvino_model.bin", 0) + cache + _WORKING_MEMORY
        free = psutil.virtual_memory().available
        if needed > free:
            raise ModelError(
                f"{self.name} needs about {needed / _GIB:.1f} GiB of free memory and {free / _GIB:.1f} GiB are free;"
                " close other programs, set llm.model = 'fast', or lower llm.context or llm.slots."
            )

    def _pipeline(self, settings: LLMSettings) -> Any:
        scheduler = self._engine.SchedulerConfig()
        scheduler.enable_prefix_caching = scheduler.dynamic_split_fuse = True
        scheduler.max_num_batched_tokens = PIECE
        scheduler.max_num_seqs = max(settings.slots, _TOP_TOKENS)
        scheduler.num_kv_blocks = -(-_cache_tokens(settings) // _BLOCK) + settings.slots
        # Keys and values in 8 bits, the engine's own choice, take longer to read than they save. What it prepares for
        # each length of a prompt's piece it would keep for thousands of them.
        properties: dict[str, Any] = {"KV_CACHE_PRECISION": "f16", "CPU_RUNTIME_CACHE_CAPACITY": "32"}
        if self._precise:
            properties["INFERENCE_PRECISION_HINT"] = "f32"
        if settings.prompt_lookup_tokens:
            properties["prompt_lookup"] = True
        if settings.threads:
            properties["INFERENCE_NUM_THREADS"] = settings.threads
        try:
            return self._engine.ContinuousBatchingPipeline(
                str(self._folder), self._tokenizer, scheduler, "CPU", **properties
            )
        except RuntimeError as error:
            raise ModelError(
                f"OpenVINO can't load {self.name}: this processor or the files in {self._folder} don't do; delete the"
                " folder, or set llm.backend to llama.cpp."
            ) from error

    def _warm_up(self) -> None:
        """Read one token, for which the engine lays the weights out as it needs them, and drop the file's pages.

        Otherwise the first question would wait for that, and the weights be in memory twice.
        """
        job, reply = self._start_reply(self._plain("a"), Options(1), Event(), object())
        for _ in reply_steps(reply, job):
            pass
        drop_mapped_pages(self._folder / MODEL.replace(".xml", ".bin"))


def _cache_tokens(settings: LLMSettings) -> int:
    """Tokens that the key-value cache has room for: one whole request, or half of what all slots could take if more.

    Requests hardly ever need all they may use. Where they do, some wait until others are written.
    """
    return settings.context * max(2, settings.slots) // 2


def _final_completion(reply: Reply, job: Job) -> Completion:
    for _ in reply_steps(reply, job):
        pass
    return reply.completion()


def _tensor(ids: Any) -> Any:
    import openvino  # noqa: PLC0415 - heavy, and not needed by other backends

    return openvino.Tensor(ids)


def _engine() -> Any:
    try:
        import openvino_genai  # noqa: PLC0415
    except ImportError as error:
        raise ModelError(
            f"OpenVINO can't be loaded ({error}); install openvino-genai, or set llm.backend to llama.cpp."
        ) from error
    return openvino_genai
