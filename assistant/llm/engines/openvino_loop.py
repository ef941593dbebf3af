"""The loop that writes the replies of all people side by side, by openvino-genai's continuous batching.

One thread owns the pipeline: it takes requests in, makes steps while there are any, and hands each step's tokens to
whoever asked. A step reads at most `PIECE` tokens of prompts, which is how long a stop may take to be heard by the
engine; whoever asked is let go at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from queue import Empty, SimpleQueue
from threading import Condition, Event, Thread, main_thread
from time import monotonic
from typing import Any

import numpy as np

from assistant.errors import ModelError
from assistant.llm.fair_queue import FairQueue

# Tokens of prompts that one step reads: about half a second of a 1.5B model on two cores. More at once may be read
# somewhat faster, but would make a stop wait longer.
PIECE = 128
_POLL = 0.02
_WATCH = 0.25
# Seconds of steps between two rests, so that replies go on where people never cease to ask.
_BETWEEN_RESTS = 1.0

Token = tuple[int, float]  # and its natural-log probability


@dataclass(eq=False, slots=True)
class Job:
    """A request under way. `config` makes the engine's settings for it, given how many tokens it may still write.

    Of one that is `wide` all sequences are wanted, of one token each: the likeliest beginnings of a reply.
    """

    prompt: Sequence[int]
    max_tokens: int
    config: Callable[[int], Any]
    stop: Event
    owner: object
    wide: bool = False
    written: list[int] = field(default_factory=list)
    read: int = 0
    retried: bool = False
    handle: Any = None
    left: Event = field(default_factory=Event)
    tokens: SimpleQueue[Token | int | ModelError | None] = field(default_factory=SimpleQueue)

    def __iter__(self) -> Iterator[Token | int]:
        """Tokens as they come, and before them how much of the prompt is read; ends at once when `stop` is set.

        Raises:
            ModelError: the engine could not go on with it.
        """
        try:
            while not self.stop.is_set():
                try:
                    token = self.tokens.get(timeout=_POLL)
                except Empty:
                    continue
                if isinstance(token, ModelError):
                    raise token
                if token is None:
                    return
                yield token
        finally:
            self.left.set()

    @property
    def is_unwanted(self) -> bool:
        """Whether nobody waits for the job any more."""
        return self.stop.is_set() or self.left.is_set()


class Loop:
    """Steps a pipeline for as long as there are jobs; at most `slots` of them at a time.

    `pipeline` makes the engine's pipeline, and makes it anew after a step that failed: whoever was in that batch is
    then gone on with alone, so that one request which the engine can't take costs the others nothing but time.
    """

    def __init__(self, pipeline: Callable[[], Any], tensor: Callable[[Any], Any], slots: int) -> None:
        self._make, self._tensor = pipeline, tensor
        self._pipeline: Any = pipeline()
        self._queue = FairQueue(slots)
        self._names = count()
        self._waiting: list[Job] = []
        self._unended: set[Job] = set()
        self._changed = Condition()
        self._broken = ""
        self._closing = False
        self._rest_end = -math.inf
        # No daemon: one that is killed inside a step aborts the whole process.
        self._thread = Thread(target=self._run, name="openvino")
        self._thread.start()

    def start(self, job: Job) -> Job:
        """Start the job once a slot is free; it ends at once if it is stopped before.

        Raises:
            ModelError: the model was unloaded, or can't be used any more.
        """
        if not self._queue.enter(job.owner, job.stop):
            job.tokens.put(None)
            return job
        with self._changed:
            if self._closing or self._broken:
                self._queue.leave(job.owner)
                raise ModelError(self._broken or "The model was unloaded; start again to use it.")
            self._waiting.append(job)
            self._unended.add(job)
            self._changed.notify()
        return job

    def rest(self, seconds: float) -> None:
        """Make no step for so many seconds, which leaves the processor to others; 0 ends the rest.

        A rest is not made longer, and after one there are steps for a second before the next begins.
        """
        with self._changed:
            now = monotonic()
            if not seconds:
                self._rest_end = min(self._rest_end, now)
            elif now >= self._rest_end + _BETWEEN_RESTS:
                self._rest_end = now + seconds
            self._changed.notify()

    def close(self) -> None:
        """End all jobs, and then the loop."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    # --- inside the thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._serve()
        except Exception as error:  # noqa: BLE001 - nobody may wait for a thread that has ended
            self._break(error)

    def _break(self, error: Exception) -> None:
        """Let everybody go, for good."""
        with self._changed:
            self._broken = f"The model stopped ({_last_line(error)}); start again to use it."
            unended_jobs = list(self._unended)
        for job in unended_jobs:
            job.tokens.put(ModelError(self._broken))
            self._end(job)

    def _serve(self) -> None:
        active_jobs: list[Job] = []
        while True:
            new_jobs = self._new_jobs(block=not active_jobs)
            if new_jobs is None:
                break
            active_jobs += self._admitted(new_jobs)
            self._wait_for_end_of_rest()
            if not self._must_end():
                active_jobs = self._stepped(active_jobs)
        for job in active_jobs:
            job.handle.cancel()
            self._end(job)
        if self._pipeline.has_non_finished_requests():
            self._pipeline.step()  # in which it lets go of what was cancelled
        self._pipeline = None

    def _new_jobs(self, *, block: bool) -> list[Job] | None:
        """The jobs that arrived since; waits for one if there is nothing else to do. None: the loop has to end."""
        with self._changed:
            while block and not self._waiting and not self._must_end():
                self._changed.wait(_WATCH)
            if self._must_end():
                for job in self._waiting:
                    self._end(job)
                return None
            new_jobs, self._waiting = self._waiting, []
            return new_jobs

    def _wait_for_end_of_rest(self) -> None:
        with self._changed:
            while (seconds := self._rest_end - monotonic()) > 0 and not self._must_end():
                self._changed.wait(min(seconds, _WATCH))

    def _must_end(self) -> bool:
        return self._closing or not main_thread().is_alive()

    def _admitted(self, jobs: list[Job]) -> list[Job]:
        """Those of the jobs that the engine takes."""
        return [job for job in jobs if self._admits(job)]

    def _admits(self, job: Job) -> bool:
        ids = np.array([[*job.prompt, *job.written]], dtype=np.int64)
        remaining_tokens = job.max_tokens - len(job.written)
        try:
            job.handle = self._pipeline.add_request(next(self._names), self._tensor(ids), job.config(remaining_tokens))
        except Exception as error:  # noqa: BLE001 - whatever the engine raises concerns this job alone
            job.tokens.put(ModelError(f"The model could not begin the reply ({_last_line(error)}); ask again."))
            self._end(job)
            return False
        return True

    def _stepped(self, active_jobs: list[Job]) -> list[Job]:
        """Make one step for these jobs; returns those that are not finished."""
        for job in active_jobs:
            if job.is_unwanted:
                job.handle.cancel()
        try:
            if self._pipeline.has_non_finished_requests():
                self._pipeline.step()
            self._note_reading(active_jobs)
            return [job for job in active_jobs if self._delivered(job)]
        except Exception as error:  # noqa: BLE001 - the engine raises MemoryError and ValueError, too
            reason = _last_line(error)
        # after the error, which may hold on to the engine; some may have been finished in this very step
        return self._recovered([job for job in active_jobs if job in self._unended], reason)

    def _note_reading(self, active_jobs: list[Job]) -> None:
        """Update how much of each prompt has been read at least: first come, first served."""
        budget = PIECE - sum(1 for job in active_jobs if job.written)
        for job in active_jobs:
            if not job.written and budget > 0:
                newly_read = min(budget, len(job.prompt) - job.read)
                job.read, budget = job.read + newly_read, budget - newly_read
                if job.read < len(job.prompt):
                    job.tokens.put(job.read)

    def _delivered(self, job: Job) -> bool:
        """Pass on what the job has written; returns whether it continues."""
        status = job.handle.get_status().name
        if job.wide:
            if status == "FINISHED":
                for output in job.handle.read_all():
                    job.tokens.put((output.generated_ids[0], output.score))
        else:
            self._deliver_tokens(job)
        if status == "IGNORED" and not job.is_unwanted:
            job.tokens.put(ModelError("The engine has no room for this prompt; lower llm.context or llm.slots."))
        if status == "RUNNING":
            return True
        self._end(job)
        return False

    def _deliver_tokens(self, job: Job) -> None:
        while job.handle.can_read():
            for output in job.handle.read().values():
                for token in zip(output.generated_ids, output.generated_log_probs, strict=True):
                    job.written.append(token[0])
                    job.tokens.put(token)

    def _recovered(self, jobs: list[Job], reason: str) -> list[Job]:
        """After a failed batch, continue its jobs one after the other, each once more."""
        self._pipeline = None  # the memory may not be enough for two
        self._pipeline = self._make()
        for job in jobs:
            if job.is_unwanted:
                self._end(job)
            elif job.retried:
                job.tokens.put(ModelError(f"The model could not go on with the reply ({reason}); ask again."))
                self._end(job)
            else:
                job.retried = True
                self._run_alone(job)
        return []

    def _run_alone(self, job: Job) -> None:
        active_jobs = self._admitted([job])
        while active_jobs and not self._must_end():
            active_jobs = self._stepped(active_jobs)
        for unfinished_job in active_jobs:
            self._end(unfinished_job)

    def _end(self, job: Job) -> None:
        with self._changed:
            self._unended.discard(job)
        job.tokens.put(None)
        self._queue.leave(job.owner)


def _last_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1][:200].rstrip(".")
