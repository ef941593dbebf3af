"""GGUF models on a CPU, through llama.cpp's own server engine (the package `xllamacpp`).

The engine batches requests over its slots, keeps each slot's key-value cache, and so reads only the part of a prompt
that differs from what the slot saw last: put what stays the same first.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread, main_thread
from typing import Any
from urllib.parse import urlsplit

import psutil

from assistant.errors import ModelError
from assistant.llm import gguf
from assistant.llm.backends import ModelTraits
from assistant.llm.context_limit import within_context
from assistant.llm.control_tokens import chat_messages
from assistant.llm.fair_queue import FairQueue
from assistant.llm.processor import cores
from assistant.llm.servers import logit_bias
from assistant.llm.subprocess_engine import SubprocessEngine
from assistant.llm.thoughts import THINKING_OFF, with_thought_closed, without_thought
from assistant.llm.word_choice import first_tokens
from assistant.protocols import Engine, Progress
from assistant.settings import Backend, LLMSettings, Settings
from assistant.types import Choice, Completion, Messages, Options

TITLE = "llama.cpp"
OWN_PROCESS = True
_GIB = 1 << 30
# Between two batches of this many prompt tokens the engine looks whether it was told to stop. 64 costs 3 % of the
# prefill's speed against 2048, and ends a stopped prefill of a 1.5B model on two cores in about a second.
_BATCH = 64
_POLL = 0.02
_WORKING_MEMORY = 300 << 20
# What the slots read before, some 15 MB for each prompt of the default model. A turn adds about 20 MB until it is full.
_SAVED_PROMPTS_MIB = 256
# Weights are read instead of mapped (llama.cpp's --load-mode none): it repacks most of them for the processor, and what
# was mapped would stay in memory beside that, 0.6 GB of the default model's 1.1.
_LOAD_MODE_NONE = 0

Chunk = dict[str, Any]


def fitness(traits: ModelTraits) -> int:
    """How well llama.cpp suits: it runs GGUF files, on every machine."""
    return 1 if traits.gguf else 0


def load(path: Path, name: str, settings: Settings, progress: Progress) -> Engine:  # noqa: ARG001 - it tells no progress
    """The model of a GGUF file, in a process of its own.

    Raises:
        ModelError: see `LlamaCpp`.
    """
    return SubprocessEngine(LlamaCpp, path, settings.llm, name)


class LlamaCpp:
    """One loaded GGUF model that all users share, fairly queued.

    `logprobs` of a completion are the model's own (before temperature), one a piece of text: the bytes of one
    character spread over several tokens count as one piece. Temperature samples from the whole distribution.

    Raises:
        ModelError: the file is missing, not GGUF, cut short, or too large for the free memory or the engine.
    """

    backend: Backend = "llama.cpp"

    def __init__(self, path: Path, settings: LLMSettings, name: str = "") -> None:
        self.name = name or path.stem
        self.context, self.can_score = settings.context, False
        self._check(path, settings)
        self._key = secrets.token_urlsafe()
        self._queue = FairQueue(settings.slots)
        self._server = self._load(path, settings)
        self._words: dict[tuple[str, ...], dict[str, list[int]]] = {}

    def count(self, messages: Messages) -> int:
        """Tokens of the prompt that these messages make, the template's own included."""
        return len(self._tokens(messages))

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """The completion as it grows; see `assistant.protocols.LLM`."""
        job = self._start(self._fitting(messages), _body(options), stop, object())
        for completion in _completions(job):
            yield without_thought(completion, options)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """One completion for each prompt, side by side in the engine's slots, in the prompts' order."""
        prompts = [self._fitting(messages) for messages in batch]
        owner = object()
        jobs: list[_Job] = []
        try:
            for tokens in prompts:
                jobs.append(self._start(tokens, _body(options), stop, owner))  # noqa: PERF401 - kept for `finally`
            return [without_thought(_final_completion(job), options) for job in jobs]
        finally:
            for job in jobs:
                job.leave()

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        """How likely each word is to begin the reply, normalised over the words.

        A word counts by its first token, in its own case, in lower case and capitalised, with and without a leading
        space. Prompts run one after another, since reading is all there is to do and a shared beginning is read once.
        Prompts that were not read because `stop` was set get equal odds.

        Raises:
            ModelError: two words begin with the same token, so that one token can't tell them apart.
        """
        prompts = [self._fitting(messages) for messages in batch]
        tokens = self._first_tokens(words)
        owner = object()
        return [self._choice(prompt, tokens, stop, owner) for prompt in prompts]

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:  # noqa: ARG002 - see `can_score`
        """Always fails: the engine gives no probabilities for a given text.

        Raises:
            ModelError: always.
        """
        raise ModelError(f"llama.cpp can't tell how likely a text of {self.name} is; set llm.backend to transformers.")

    def close(self) -> None:
        """Unload the model. Calls under way end first."""
        self._server = None

    def _choice(self, prompt: list[int], words: dict[str, list[int]], stop: Event, owner: object) -> Choice:
        chunks = list(self._start(prompt, logit_bias.request(words), stop, owner))
        choice = logit_bias.choice([piece for chunk in chunks for piece in _pieces(chunk)], words, len(prompt))
        return replace(choice, cached=max((_cached(chunk) for chunk in chunks), default=0))

    def _first_tokens(self, words: tuple[str, ...]) -> dict[str, list[int]]:
        if words not in self._words:
            self._words[words] = first_tokens(words, self._tokenize)
        return self._words[words]

    def _fitting(self, messages: Messages) -> list[int]:
        return within_context(self._tokens(messages), self)

    def _tokens(self, messages: Messages) -> list[int]:
        body = {"messages": chat_messages(messages), "chat_template_kwargs": THINKING_OFF}
        # the template's prompt comes without the token that the tokenizer puts before every text
        return self._tokenize(with_thought_closed(self._ask("/apply-template", body)["prompt"]), add_special=True)

    def _tokenize(self, text: str, *, add_special: bool = False) -> list[int]:
        body = {"content": text, "add_special": add_special, "parse_special": True}
        tokens: list[int] = self._ask("/tokenize", body)["tokens"]
        return tokens

    def _ask(self, path: str, body: Chunk) -> Chunk:
        """The template and the tokenizer are reached only through the engine's loopback port, which wants our key."""
        address = urlsplit(self._engine().listening_address)
        with closing(HTTPConnection(address.hostname or "", address.port, timeout=60)) as connection:
            headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
            connection.request("POST", path, json.dumps(body), headers)
            return _checked(json.loads(connection.getresponse().read()))

    def _engine(self) -> Any:
        if self._server is None:
            raise ModelError(f"{self.name} was unloaded; start again to use it.")
        return self._server

    def _start(self, tokens: list[int], body: Chunk, stop: Event, owner: object) -> _Job:
        job = _Job(stop)
        if self._queue.enter(owner, stop):
            full_body = {**body, "prompt": tokens, "stream": True, "return_progress": True, "timings_per_token": True}
            # No daemon: one that is killed inside the engine's callback aborts the whole process.
            Thread(target=self._run, args=(job, full_body, owner), name="llama.cpp", daemon=False).start()
        else:
            job.finish()
        return job

    def _run(self, job: _Job, body: Chunk, owner: object) -> None:
        try:
            self._engine().handle_completions(body, job.take)
        except (ModelError, RuntimeError) as error:
            job.take({"error": {"message": str(error)}})
        finally:
            self._queue.leave(owner)
            job.finish()

    def _check(self, path: Path, settings: LLMSettings) -> None:
        header = gguf.header(path)
        max_context = int(header.get(f"{header.get('general.architecture')}.context_length", settings.context))
        if settings.context > max_context:
            raise ModelError(
                f"{self.name} reads {max_context} tokens at most; lower llm.context from {settings.context}."
            )
        if "tokenizer.chat_template" not in header:
            raise ModelError(f"{self.name} has no chat template, so it is no chat model; choose an instruct model.")
        cache = gguf.kv_bytes(header) * settings.context * settings.slots
        needed = path.stat().st_size + cache + _WORKING_MEMORY
        free = psutil.virtual_memory().available
        if needed > free:
            raise ModelError(
                f"{self.name} needs about {needed / _GIB:.1f} GiB of free memory and {free / _GIB:.1f} GiB are free;"
                " close other programs, set llm.model = 'fast', or lower llm.context or llm.slots."
            )

    def _load(self, path: Path, settings: LLMSettings) -> Any:
        try:
            import xllamacpp  # noqa: PLC0415 - heavy, and not needed by other backends
        except ImportError as error:
            raise ModelError(
                f"llama.cpp can't be loaded ({error}); install xllamacpp, and on Linux the system library libgomp1."
            ) from error
        try:
            return _tested_server(xllamacpp.Server(self._params(xllamacpp.CommonParams(), path, settings)))
        except RuntimeError as error:
            raise ModelError(
                f"llama.cpp can't load {path}: the file is cut short or of a kind it doesn't know; fetch it again with"
                " `models fetch`."
            ) from error

    def _params(self, params: Any, path: Path, settings: LLMSettings) -> Any:
        params.model.path = str(path)
        params.n_ctx = settings.context * settings.slots
        params.n_parallel = settings.slots
        params.n_batch = params.n_ubatch = _BATCH
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads or cores()
        params.cache_ram_mib = _SAVED_PROMPTS_MIB
        params.fit_params = False
        params.load_mode = _LOAD_MODE_NONE
        params.api_keys = [self._key]
        params.ui = params.endpoint_slots = False
        params.verbosity = -1
        return params


class _Job:
    """A request under way: the engine's thread adds chunks, which the caller takes out until it leaves."""

    def __init__(self, stop: Event) -> None:
        self._stop = stop
        self._left = Event()
        self._chunks: SimpleQueue[Chunk | None] = SimpleQueue()

    def take(self, chunk: Chunk) -> bool:
        """The engine's callback; True tells it to stop."""
        self._chunks.put(chunk)
        return self._stop.is_set() or self._left.is_set() or not main_thread().is_alive()

    def finish(self) -> None:
        self._chunks.put(None)

    def leave(self) -> None:
        self._left.set()

    def __iter__(self) -> Iterator[Chunk]:
        """Chunks as they come; ends at once when `stop` is set, even while the engine is still busy."""
        try:
            while not self._stop.is_set():
                try:
                    chunk = self._chunks.get(timeout=_POLL)
                except Empty:
                    continue
                if chunk is None:
                    return
                yield _checked(chunk)
        finally:
            self.leave()


def _tested_server(server: Any) -> Any:
    # One token shows that the model runs; and an engine that is let go before its loop began would never end.
    _checked(server.handle_completions({"prompt": "1", "max_tokens": 1}))
    return server


def _body(options: Options) -> Chunk:
    return {
        **({"json_schema": json.loads(options.schema)} if options.schema else {}),
        "max_tokens": options.max_tokens,
        "temperature": options.temperature,
        "samplers": ["temperature"],
        "seed": options.seed,
        "stop": [text for text in options.stop if text],
        "logprobs": 1,
    }


def _completions(job: _Job) -> Iterator[Completion]:
    """Folds chunks into growing completions; the last one has `finish` set."""
    completion = Completion("")
    for chunk in job:
        if progress := chunk.get("prompt_progress"):
            if progress["processed"]:
                yield Completion("", progress["total"], read=progress["processed"])
            continue
        choices = chunk.get("choices")
        if not choices:
            continue
        completion = _grown(completion, choices[0], chunk.get("timings", {}), _pieces(chunk))
        if completion.finish or choices[0].get("text"):
            yield completion
    if not completion.finish:
        yield replace(completion, finish="cancelled")


def _grown(completion: Completion, choice: Chunk, timings: Chunk, pieces: list[Chunk]) -> Completion:
    prompt_tokens = timings.get("cache_n", 0) + timings.get("prompt_n", 0)
    return Completion(
        completion.text + (choice.get("text") or ""),
        prompt_tokens or completion.prompt_tokens,
        timings.get("predicted_n", completion.completion_tokens),
        completion.logprobs + tuple(piece["logprob"] for piece in pieces),
        choice.get("finish_reason") or "",
        cached=timings.get("cache_n", completion.cached),
    )


def _final_completion(job: _Job) -> Completion:
    completion = Completion("")
    for completion in _completions(job):  # noqa: B007 - only the last one is wanted
        pass
    return completion


def _cached(chunk: Chunk) -> int:
    cached: int = chunk.get("timings", {}).get("cache_n", 0)
    return cached


def _pieces(chunk: Chunk) -> list[Chunk]:
    choices = chunk.get("choices") or [{}]
    return (choices[0].get("logprobs") or {}).get("content") or []


def _checked(answer: Chunk) -> Chunk:
    if "error" in answer:
        raise ModelError(f"llama.cpp refused the request: {answer['error'].get('message', answer['error'])}.")
    return answer
