"""Loads the parts that the settings name; the only module that knows all implementations.

Loading takes seconds to minutes (weights, index, model), so it runs in a thread of its own, stage by stage, while the
page is already up; heavy imports happen in here for the same reason.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Event, Lock, Thread
from typing import TypeVar

from assistant.errors import ModelError, SequiturError
from assistant.judges import load as judges
from assistant.judges.seated import seated
from assistant.judges.stand_ins import StandIns
from assistant.library import starter
from assistant.library.collections import collection_documents
from assistant.library.passages import document_of
from assistant.library.remote import RemoteShelves
from assistant.library.shelves import open_library, open_shelves, own_library, shelf_names
from assistant.library.vectors import DenseShelves
from assistant.llm import load as llms
from assistant.llm.catalogue import Catalogue
from assistant.llm.embedder import SentenceEmbedder
from assistant.llm.known_models import KnownModel
from assistant.llm.models import LOADING, Models
from assistant.protocols import (
    LLM,
    Embedder,
    Engine,
    EstimatorOf,
    Parts,
    Progress,
    Retriever,
    SuitabilityJudge,
    SupportJudgeOf,
)
from assistant.retrieve import retrievers
from assistant.retrieve.encoder_pieces import Encoder
from assistant.retrieve.encoders import open_encoder
from assistant.retrieve.known_vectors import with_known_vectors
from assistant.retrieve.own_documents import DocumentFilter, WithOwnDocuments
from assistant.settings import Settings
from assistant.steps.intent import intent_of
from assistant.types import Choices, Wait
from ptkb.extract import offers
from ptkb.fields import fields_of
from ptkb.told import likelihoods

_LOG = logging.getLogger(__name__)
# Seconds that a question, and a changed choice, wait for vectors that are nearly made, as of a document just added.
PATIENCE = 5.0
GLANCE = 0.3
# Seconds that the loading thread may hold the interpreter lock while others wait for it; the default is 5 ms.
_SWITCH_INTERVAL = 0.0005
LANGUAGE_MODEL = "Language model"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoadingStage:
    """One thing that is being loaded. `fraction` is in [0, 1], or None where the progress isn't known."""

    name: str
    fraction: float | None = None
    done: bool = False
    error: str = ""


class Loader:
    """Loads everything in the background, and lends out the parts of turns once it is loaded.

    `starting` is the model to begin with, by default the one that the settings name.
    """

    def __init__(self, settings: Settings, starting: KnownModel | None = None) -> None:
        self.settings = settings
        self.models = Models(settings)
        self._starting = starting or self.models.known.named()
        self._stages: dict[str, LoadingStage] = {}
        self._lock = Lock()
        self._finished = Event()
        self._embedder: SentenceEmbedder | None = None
        self._estimator: EstimatorOf | None = None
        self._support: SupportJudgeOf | None = None
        self._suitability: SuitabilityJudge | None = None
        self._stand_ins = StandIns()
        self._dense: DenseShelves | None = None
        self._remote: dict[bool, RemoteShelves] = {}  # by whether they hold vectors

    @property
    def ready(self) -> bool:
        """Whether questions can be answered."""
        return self._finished.is_set() and not self.error

    @property
    def error(self) -> str:
        """The sentence that says why loading failed, or "". A failed model doesn't count if another one runs since."""
        ignored_stage = LANGUAGE_MODEL if self.models.running else ""
        return next((stage.error for stage in self.stages() if stage.error and stage.name != ignored_stage), "")

    @property
    def notice(self) -> str:
        """Why another model answers than the one asked for, "" if none does."""
        return self.models.notice

    @property
    def judges(self) -> str:
        """That smaller judges stand in for larger ones, and why, or ""."""
        return self._stand_ins.told

    @property
    def embedder(self) -> Embedder | None:
        """Sentence-BERT, or None until it is loaded."""
        return self._embedder

    def stages(self) -> tuple[LoadingStage, ...]:
        """The stages of loading so far, in order."""
        with self._lock:
            return tuple(self._stages.values())

    def start(self) -> None:
        """Begin loading in a thread."""
        Thread(target=self._load, name="loader", daemon=True).start()

    def close(self) -> None:
        """Unload the language model, if it is loaded; loading that is under way ends with the process."""
        self.models.close()

    def loaded(self, seconds: float, model: str = "") -> bool:
        """Wait for at most so many seconds; whether loading has ended by then, also that of a chosen `model`."""
        return self._finished.wait(seconds) and self.models.loaded(seconds, model)

    def waiting(self) -> Wait:
        """What is being loaded, and how many percent of it."""
        stage = next((stage for stage in self.stages() if not stage.done and not stage.error), None)
        if stage is None:
            return self.models.waiting()
        if stage.fraction is None:
            return Wait("loading", stage.name)
        return Wait("loading", stage.name, int(100 * stage.fraction), 100)

    def wait(self, watch: Callable[[tuple[LoadingStage, ...]], None] = lambda _: None, every: float = 0.2) -> None:
        """Wait until loading has ended, showing the stages to `watch` every so many seconds.

        Raises:
            SequiturError: loading failed; the message says what to do.
        """
        while not self._finished.wait(every):
            watch(self.stages())
        watch(self.stages())
        if self.error:
            raise ModelError(self.error)

    @contextmanager
    def lent(self, user: str, choices: Choices, model: str = "") -> Iterator[Parts]:
        """The parts for a turn of `user`. The turn keeps its language model to its end, even if another one is chosen.

        Raises:
            SequiturError: something is still being loaded or encoded, loading failed, another `model` runs, or there is
                no such library.
        """
        self._check()
        with self.models.lent(user, model) as llm:
            yield seated(self._parts(user, choices, llm), llm.wait)

    def parts(self, user: str, choices: Choices) -> Parts:
        """The same for a command with one user, where nobody can switch to another model meanwhile.

        Raises:
            SequiturError: something is still being loaded or encoded, loading failed, or there is no such library.
        """
        self._check()
        if self.models.running is None:
            raise ModelError(LOADING)
        return self._parts(user, choices, self.models.running.engine)

    def _check(self) -> None:
        if self.error:
            raise ModelError(self.error)
        if not self._finished.is_set():
            raise ModelError(LOADING)

    def _parts(self, user: str, choices: Choices, llm: LLM) -> Parts:
        if self._embedder is None:
            raise ModelError(LOADING)
        retriever = self.retriever(user, choices, PATIENCE)
        turn_judges = self._estimator, self._support, self._suitability
        return Parts(self.settings, llm, self._embedder, retriever, *turn_judges)

    def prepare(self, user: str, choices: Choices) -> str:
        """Begin to make whatever these choices need and is missing; the sentence that says so, or ""."""
        if not self.ready:
            return ""
        try:
            self.retriever(user, choices, GLANCE)
        except SequiturError as error:
            return str(error)
        return ""

    def _load(self) -> None:
        # loading is mostly Python code, and the page needs the interpreter lock tens of times to answer one request
        interval = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_INTERVAL)
        try:
            llm_future = self._begin_llm() if llms.runs_in_own_process(self._starting.llm) else None
            self._embedder = self._stage("Sentence-BERT", self._load_embedder)
            self._stage("Starter library", partial(starter.ensure_starter, self.settings))
            retriever = retrievers.retriever_module(self.settings.retrieve.retriever)
            if self.settings.retrieve.opensearch.address:
                self._stage("OpenSearch", lambda progress: self._upload_library(retriever, progress))
            elif retriever.WAITS or (retriever.ENCODES and self.settings.retrieve.encoder):
                self._stage("Search by meaning", self._encode_library)
            elif retriever.ENCODES:
                self._begin_encoding()
            if self.settings.relevance.estimator != "none":
                self._estimator = self._stage("Relevance estimator", self._load_estimator)
            self._stage("Judges", self._load_judges)
            if self.settings.turn.digest == "seq2seq":
                self._stage("Summariser", self._load_summariser)
            if llm_future:
                llm_future.result()
            else:
                self._stage(LANGUAGE_MODEL, self._load_llm)
        except SequiturError:
            pass  # the stage holds the sentence, and whoever asks for parts gets it
        finally:
            sys.setswitchinterval(interval)
            self._finished.set()

    def _begin_llm(self) -> Future[None]:
        """Begin to load a model that runs in a process of its own, and so takes little time of this one."""
        future = Future[None]()

        def load() -> None:
            try:
                future.set_result(self._stage(LANGUAGE_MODEL, self._load_llm))
            except SequiturError as error:
                future.set_exception(error)

        Thread(target=load, name="engine loader", daemon=True).start()
        return future

    def _stage(self, name: str, load: Callable[[Progress], T]) -> T:
        self._set(LoadingStage(name))
        try:
            result = load(lambda done, total: self._set(LoadingStage(name, done / total if total else None)))
        except SequiturError as error:
            self._set(LoadingStage(name, error=str(error)))
            raise
        except Exception as error:
            _LOG.exception("loading %s failed", name)
            self._set(LoadingStage(name, error=f"{name} could not be loaded ({error}); the log has the details."))
            raise ModelError(str(error)) from error
        self._set(LoadingStage(name, 1.0, done=True))
        return result

    def _set(self, stage: LoadingStage) -> None:
        with self._lock:
            self._stages[stage.name] = stage

    def _load_embedder(self, progress: Progress) -> SentenceEmbedder:
        embedder = load_embedder(self.settings, progress)
        # All four learn from examples at their first use, for which nobody's first message should have to wait.
        with embedder.caching_in(self.settings.data_dir / "examples"):
            intent_of("Hello", embedder, self.settings.turn)
            offers("I'm vegan.", (), embedder)
            fields_of(["I'm vegan."], embedder)
            likelihoods(["I'm vegan."], embedder)
        return embedder

    def _encode_library(self, progress: Progress) -> None:
        self._dense_shelves().make(shelf_names(self.settings.library, "me", self.settings), progress)

    def _begin_encoding(self) -> None:
        """Begin to make the vectors that are missing, in the background: until they are there, words are enough."""
        try:
            names = shelf_names(self.settings.library, "me", self.settings)
            if _is_encoded_unasked(names, self.settings):
                self._dense_shelves().open(names, GLANCE)
        except SequiturError as error:
            _LOG.info("%s", error)

    def _upload_library(self, retriever: retrievers.RetrieverModule, progress: Progress) -> None:
        names = shelf_names(self.settings.library, "me", self.settings)
        encodes = retriever.WAITS or (retriever.ENCODES and _is_encoded_unasked(names, self.settings))
        self._remote_shelves(encodes).make(names, progress)

    def _load_estimator(self, progress: Progress) -> EstimatorOf | None:
        return judges.relevance(self.settings, progress, self._embedder, self._stand_ins)

    def _load_judges(self, progress: Progress) -> None:
        self._support = judges.support(self.settings, self._embedder, progress, self._stand_ins)
        if self._embedder:
            self._suitability = judges.suitability(self.settings, self._embedder, progress, self._stand_ins)

    def retriever(self, user: str, choices: Choices, patience: float) -> Retriever:
        """Searches the chosen library together with the user's own documents, or one collection of these alone.

        Raises:
            SequiturError: there is no such library, or it isn't ready within `patience` seconds.
        """
        own_name, documents = own_library(user), collection_documents(choices.library, user, self.settings)
        library = own_name if documents else choices.library
        remote = self._remote_shelves if self.settings.retrieve.opensearch.address else None
        shelves = _Shelves(self.settings, library, user, self._dense_shelves, remote, patience)
        open_retriever = retrievers.retriever_module(choices.retriever).opened
        retriever = open_retriever(shelves)
        if own_name in shelf_names(library, user, self.settings):
            own_retriever = open_retriever(replace(shelves, library=own_name)) if library != own_name else None
            retriever = WithOwnDocuments(retriever, open_library(own_name, self.settings), own_retriever)
        return DocumentFilter(retriever, documents, document_of) if documents else retriever

    def _dense_shelves(self) -> DenseShelves:
        with self._lock:
            self._dense = self._dense or DenseShelves(self.settings, self._load_encoder)
            return self._dense

    def _remote_shelves(self, encodes: bool) -> RemoteShelves:
        with self._lock:
            if encodes not in self._remote:
                encoder = self._load_encoder if encodes else None
                self._remote[encodes] = RemoteShelves(self.settings, encoder)
            return self._remote[encodes]

    def _load_encoder(self, progress: Progress) -> Encoder:
        """The encoder that the settings name: the embedder, unless they name another."""
        is_embedder = self.settings.retrieve.encoder in {"", self.settings.embedder.model}
        return load_encoder(self.settings, progress, self._embedder if is_embedder else None)

    def _load_summariser(self, progress: Progress) -> None:
        """Load the summariser; if that fails, each turn goes on without it and says why."""
        from assistant.llm.summariser import load  # noqa: PLC0415 - torch

        with suppress(ModelError):
            load(self.settings, progress)

    def _load_llm(self, progress: Progress) -> None:
        self.models.open(self._starting, progress)


@dataclass(frozen=True, slots=True)
class _Shelves:
    """The indexes of a library and a user's own documents, as one: on this machine, or in OpenSearch if `remote`."""

    settings: Settings
    library: str
    user: str
    dense: Callable[[], DenseShelves]
    remote: Callable[[bool], RemoteShelves] | None
    patience: float

    def words(self) -> Retriever:
        """See `retrievers.Indexes`; waits `patience` seconds for documents that are not in OpenSearch yet."""
        if self.remote:
            return self.remote(False).open(self._names(), self.patience)
        return open_shelves(self.library, self.user, self.settings)

    def meaning(self) -> Retriever:
        """See `retrievers.Indexes`; waits `patience` seconds for vectors that are not made yet."""
        shelves = self.remote(True) if self.remote else self.dense()
        return shelves.open(self._names(), self.patience)

    def meaning_if_made(self) -> Retriever | None:
        """See `retrievers.Indexes`; waits a moment for what takes no longer, such as a document just added."""
        try:
            shelves, names = self.remote(True) if self.remote else self.dense(), self._names()
            return (
                shelves.open(names, GLANCE)
                if _is_encoded_unasked(names, self.settings)
                else shelves.ready_retriever(names)
            )
        except SequiturError as error:
            _LOG.info("searched by words alone: %s", error)
            return None

    def _names(self) -> list[str]:
        return shelf_names(self.library, self.user, self.settings)


def _is_encoded_unasked(names: Sequence[str], settings: Settings) -> bool:
    """Whether these libraries are so small that their vectors are made although nobody chose search by meaning."""
    return sum(len(open_library(name, settings)) for name in names) <= settings.retrieve.encode_up_to


def load_embedder(settings: Settings, progress: Progress) -> SentenceEmbedder:
    """The Sentence-BERT model that the settings name, fetched if need be.

    Raises:
        ModelError: it can't be fetched or loaded.
    """
    return SentenceEmbedder(Catalogue.load().resolve(settings.embedder.model, settings, progress))


def load_encoder(settings: Settings, progress: Progress, embedder: SentenceEmbedder | None = None) -> Encoder:
    """The encoder of dense search, fetched if need be; `embedder` is that model if it is loaded already.

    Raises:
        ModelError: it can't be fetched or loaded, or it is only one half of a pair of encoders.
    """
    resolve, retrieve = Catalogue.load().resolve, settings.retrieve
    questions = resolve(retrieve.question_encoder, settings, progress) if retrieve.question_encoder else None
    encoder = open_encoder(
        resolve(retrieve.encoder or settings.embedder.model, settings, progress), questions, embedder
    )
    return with_known_vectors(encoder)


def load_llm(settings: Settings, progress: Progress) -> Engine:
    """The language model that the settings name, fetched if need be.

    Raises:
        ModelError: it can't be fetched, trusted or loaded.
    """
    return llms.load(settings, progress)
