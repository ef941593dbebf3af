"""Writes replies in parallel, token by token, by transformers' continuous batching.

Its loop runs in a thread of its own and owns the model: other code that needs a pass of the model asks it to pause. A
beginning that prompts share is read once, in pages of `_PAGE` tokens, and cached until the memory is needed.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

from transformers import ContinuousBatchingConfig, GenerationConfig

from assistant.errors import ModelError
from assistant.llm import packed_attention

_PAGE = 32
_POLL = 0.05


class ContinuousBatcher:
    """Greedy replies of one model, at most `slots` at a time; others wait in the order in which they came.

    Args:
        model: a causal language model of transformers that lies on one device.
        ends: the tokens that end a reply.
        context: the most tokens of one prompt and its reply.
        slots: replies written at a time; there is room for that many whole contexts.
        piece: tokens of prompts that are read at once, which is how long a new reply may hold up the others.
    """

    def __init__(self, model: Any, ends: set[int], context: int, slots: int, piece: int) -> None:
        packed_attention.install()
        # what it has to say of a failure comes with the replies that fail
        logging.getLogger("ContinuousBatchingLogger").setLevel(logging.CRITICAL)
        self._ends = sorted(ends)
        self._names = count()
        self._starting = threading.Lock()
        self._boxes: dict[str, SimpleQueue[Any]] = {}
        self._manager = model.init_continuous_batching(
            generation_config=GenerationConfig(do_sample=False, eos_token_id=self._ends),  # type: ignore[no-untyped-call]
            continuous_batching_config=ContinuousBatchingConfig(
                page_size=_PAGE,
                num_blocks=slots * -(-context // _PAGE) + 1,
                max_batch_tokens=piece,
                max_requests_per_batch=slots,
                return_logprobs=True,
                # flash attention's kernels come from the hub, where they are not installed
                auto_switch_to_flash=False,
            ),
        )
        threading.Thread(target=_end_with_the_process, args=(weakref.ref(self),), daemon=False).start()

    def tokens(self, prompt: list[int], max_tokens: int, stop: threading.Event) -> Iterator[tuple[int, float]]:
        """The reply's tokens with their log-probabilities, until it ends or `stop` is set; may be left at any time.

        Raises:
            ModelError: the batch failed, for instance for want of memory.
        """
        self._start()
        name, box = str(next(self._names)), SimpleQueue[Any]()
        self._boxes[name] = box
        self._manager.add_request(prompt, name, max_tokens, streaming=True, eos_token_id=self._ends)
        try:
            yielded_count, finished = 0, False
            while not finished and not stop.is_set():
                output = self._next(box)
                if output is None:
                    continue
                yield from list(zip(output.generated_tokens, output.logprobs, strict=False))[yielded_count:]
                yielded_count, finished = max(yielded_count, len(output.generated_tokens)), output.is_finished()
        finally:
            self._manager.cancel_request(name)
            del self._boxes[name]

    def pause(self) -> AbstractContextManager[None]:
        """Pauses the loop while this is entered; replies under way continue afterwards."""
        manager: Any = self._manager
        return manager.pause() if manager.is_running() else nullcontext()

    def close(self) -> None:
        """End the loop and all replies."""
        with self._starting:
            if self._manager.is_running():
                self._manager.stop(hard_stop=True)

    def _next(self, box: SimpleQueue[Any]) -> Any:
        try:
            output = box.get(timeout=_POLL)
        except Empty:
            if not self._manager.is_running():
                raise ModelError("The model stopped in the middle of the reply; ask again.") from None
            return None
        if output.error:
            raise ModelError(f"The model could not go on with the reply ({output.error[:200]}); ask again.")
        return output

    def _start(self) -> None:
        with self._starting:
            if self._manager.is_running():
                return
            self._manager.start()
            threading.Thread(target=self._deliver, daemon=True).start()

    def _deliver(self) -> None:
        for output in self._manager:
            box = self._boxes.get(output.request_id)
            if box is not None:
                box.put(output)


def _end_with_the_process(batcher_ref: weakref.ref[ContinuousBatcher]) -> None:
    # the loop's thread would keep a process alive whose main thread has ended without closing the model
    threading.main_thread().join()
    batcher = batcher_ref()
    if batcher is not None:
        batcher.close()
