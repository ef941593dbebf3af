"""All settings, each defined once: defaults, then a TOML file, then environment variables (SEQUITUR_LLM__MODEL=fast).

Unknown keys are refused, in the file and in the environment alike.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as VariableError

from assistant.errors import SettingsError
from assistant.registry.variants import names

PREFIX = "SEQUITUR_"
FILE_VARIABLE = "SEQUITUR_SETTINGS"
# Prompts of a few hundred tokens have to fit beside what they are about.
MIN_CONTEXT = 1024

Uncertainty = Literal["word", "p_unknown", "mean_logprob", "lowest_logprob", "holds", "relevance", "addresses"]
Quantisation = Literal["none", "int8", "nf4"]
IfUnanswerable = Literal["answer", "refuse", "own", "ask"]

if TYPE_CHECKING:
    Backend = str
    AnyBackend = str
    RetrieverName = str
    EstimatorName = str
    SupportName = str
else:  # whatever has a file can be named
    Backend = Literal[tuple(names("backends"))]
    AnyBackend = Literal["auto", Backend]
    RetrieverName = Literal[tuple(names("retrievers"))]
    EstimatorName = Literal["none", *names("estimators")]
    SupportName = Literal[tuple(names("support judges"))]


class Section(BaseModel):
    """A group of settings."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)


class LLMSettings(Section):
    """Which language model answers, and what runs it."""

    backend: AnyBackend = Field(
        "auto",
        description="what runs the model; auto = transformers on a GPU and for hub ids and folders, else openvino on "
        "processors with AVX512 or AMX, llama.cpp on others",
    )
    model: str = Field(
        "auto",
        description="a name of the catalogue, a hub id, a folder, a .gguf file, or one of the server's models; auto = "
        "Llama 3.1 8B on a GPU; on a CPU the model that is on the disk, at the first start Qwen2.5 1.5B Instruct from "
        "the hub or, if no hub answers, the model that comes by pip; the only model of a server; default = the same, "
        "but on a CPU always the model that comes by pip",
    )
    quantisation: Literal["auto", Quantisation] = Field(
        "auto", description="of transformers' weights; auto = nf4 on a GPU, none (bf16) on a CPU"
    )
    context: int = Field(4096, ge=512, description="tokens that one request may use, prompt and reply together")
    slots: int = Field(4, ge=1, le=32, description="requests that run in parallel")
    continuous_batching: bool = Field(
        True,
        description="whether transformers writes the replies of several people in parallel, or one after the other",
    )
    prefill_chunk: int = Field(
        128,
        ge=1,
        description="prompt tokens that transformers reads at a time on a CPU; more are faster, but slower to stop",
    )
    threads: int = Field(0, ge=0, description="CPU threads; 0 = all cores")
    prompt_lookup_tokens: int = Field(
        0,
        ge=0,
        le=16,
        description="tokens of the prompt that openvino tries to copy at a time into a reply that continues like it; "
        "0 = none",
    )
    server: str = Field(
        "", description="address of the server whose model answers if backend is server, with or without /v1"
    )
    api_key: SecretStr = Field(SecretStr(""), description="the server's key; never shown or logged")
    first_token_timeout: float = Field(600.0, gt=0, description="seconds to wait for a server's first word")
    next_token_timeout: float = Field(60.0, gt=0, description="seconds to wait for each further word")
    target_turn_seconds: float = Field(
        25.0, gt=0, description="seconds that a turn may take on this computer with a model that the page offers"
    )


class EmbedderSettings(Section):
    """The Sentence-BERT model for facts, sentences and support."""

    model: str = Field("all-MiniLM-L6-v2", description="a name of the catalogue, a hub id, or a local folder")


class FactSettings(Section):
    """The facts about the user (PTKB)."""

    threshold: float = Field(0.24, ge=-1, le=1, description="lowest relevance of a fact that is used")
    rewrite_threshold: float = Field(
        0.1,
        ge=-1,
        le=1,
        description="lowest relevance of a fact with which a first message is rewritten to include what the fact "
        "says; otherwise the message is asked as it stands",
    )
    max_facts: int = Field(5, ge=0, description="the most facts that are used because of their relevance")
    max_chars_to_tell_all: int = Field(
        0,
        ge=0,
        description="if all facts together have at most so many characters, the answering model is given all of them, "
        "whatever they are about (800 are some 200 tokens); 0 = only those that are used",
    )
    constraints: bool = Field(
        True,
        description="whether facts that clash with something in the passages (allergies, diets, abilities, means) are "
        "used even if their relevance is low",
    )
    suitability: Literal["large", "small"] = Field(
        "large",
        description="the judge that recognises what clashes with a fact: the larger one, on the same encoder as the "
        "larger judge of support, or the small one that comes with Sequitur, which also replaces the larger one if "
        "that can't be loaded",
    )


class TopKByLoop(Section):
    """The number of passages shown to the model by loops for which it is not `retrieve.top_k`."""

    itrg_refine: int = Field(5, ge=1, le=20, description="passages shown in each round of this loop (ITRG, section 3)")
    itrg_refresh: int = Field(5, ge=1, le=20, description="the same for this loop")


class OpenSearchSettings(Section):
    """An OpenSearch that libraries are searched in, instead of by this process."""

    address: str = Field(
        "",
        description="its address, such as https://search.example:9200; empty = libraries are searched by this process",
    )
    user: str = Field("", description="the user name for it; empty = it has no logins")
    password: SecretStr = Field(SecretStr(""), description="the user's password; never shown or logged")
    ca: str = Field("", description="a file with the certificate of its authority, if the system doesn't know that")
    prefix: str = Field(
        "sequitur",
        pattern=r"^[a-z0-9][a-z0-9_-]{0,40}$",
        description="prefix of the names of its indexes; programs with separate data need different ones",
    )
    seconds: float = Field(10.0, gt=0, description="seconds to wait for each of its answers")

    @field_validator("address")
    @classmethod
    def _check_url(cls, address: str) -> str:
        url = urlsplit(address)
        if address and (url.scheme not in {"http", "https"} or not url.hostname or url.username):
            raise ValueError(
                "it has to be http:// or https:// and a host; user and password have settings of their own"
            )
        return address.rstrip("/")


class RetrieveSettings(Section):
    """How passages are searched, and the fusion of rankings."""

    retriever: RetrieverName = Field(
        "hybrid", description="search by words (bm25), by meaning (dense), or both, fused (hybrid)"
    )
    encode_up_to: int = Field(
        50_000,
        ge=0,
        description="most passages of a library and your own documents together for which hybrid search makes vectors "
        "by itself, in the background (some 90 a second on two cores, 40 of your own documents); more are searched by "
        "words alone until dense has been chosen",
    )
    encoder: str = Field(
        "",
        description="the encoder of dense search: a hub id or folder of sentence-transformers, Contriever or DPR (its "
        "passage encoder); empty = the embedder's model",
    )
    question_encoder: str = Field("", description="DPR's question encoder; empty for all others")
    top_k: int = Field(4, ge=1, le=20, description="passages shown to the model")
    top_k_by_loop: TopKByLoop = TopKByLoop()
    fusion_depth: int = Field(20, ge=1, le=100, description="passages taken from each query before fusion")
    k1: float = Field(0.9, gt=0, description="BM25 term saturation")
    b: float = Field(0.4, ge=0, le=1, description="BM25 length normalisation")
    rrf_k: int = Field(60, ge=1, description="the constant of reciprocal rank fusion")
    opensearch: OpenSearchSettings = OpenSearchSettings()

    def top_k_for(self, loop: str) -> int:
        """How many passages this loop shows to the model."""
        return int(self.top_k_by_loop.model_dump().get(loop, self.top_k))


class RelevanceSettings(Section):
    """How relevance is estimated, and what happens if no passage is relevant enough (RE-RAG)."""

    estimator: EstimatorName = Field(
        "large",
        description="what estimates the relevance of passages: nothing (none), the language model (llm), the small "
        "trained model that comes with Sequitur (cross_encoder), one that is five times as large, on an encoder that "
        "is fetched, and reads again the eight passages that the small one finds best, or more short ones (large), or "
        "a T5 (seq2seq)",
    )
    model: str = Field(
        "", description="its folder or hub id; empty = the one that comes with Sequitur; needed for seq2seq"
    )
    calibration: str = Field(
        "", description="a file of `evaluate relevance --calibrate`; empty = the one beside the model, if there is one"
    )
    threshold: float = Field(
        0.015, gt=0, lt=1, description="confidence below which the library counts as not holding the answer"
    )
    if_unanswerable: Literal["auto", IfUnanswerable] = Field(
        "auto",
        description="what happens below the threshold: answer anyway, say that the library has no answer (refuse), "
        "answer from the model's own knowledge and say so (own), or ask you; auto = own, but answer in evaluations of "
        "answers from passages (short answers, groundedness, iKAT)",
    )
    rerank: bool = Field(
        True,
        description="whether the most relevant candidates are shown; off = the loop's order, and only the passages "
        "that are shown are estimated",
    )
    min_relative_confidence: float = Field(
        0.05,
        ge=0,
        lt=1,
        description="share of the best passage's confidence below which a chat reply leaves a passage out; 0 = none",
    )
    rerank_depth: int = Field(
        20, ge=1, le=200, description="passages that are reranked, the best of each search, fused"
    )
    small_talk_threshold: float = Field(
        0.2,
        gt=0,
        le=1,
        description="lowest confidence with which a message that seems talk is answered from the library; 1 = never",
    )
    rerank_top_k: int = Field(
        5, ge=1, le=100, description="how many of the reranked passages re_rag takes answers from and weighs"
    )

    def if_unanswerable_for(self, form: Literal["chat", "factoid"]) -> IfUnanswerable:
        """What happens below the threshold to a reply of this form; short answers are for evaluation."""
        default: IfUnanswerable = "own" if form == "chat" else "answer"
        return default if self.if_unanswerable == "auto" else self.if_unanswerable


class TurnSettings(Section):
    """The steps of a turn."""

    loop: str = Field("grg", description="how passages are found: a file of assistant/loops")
    strategy: str = Field("concat_pf", description="how the answer is made from them: a file of assistant/strategies")
    grg_rounds: int = Field(
        1, ge=1, le=5, description="drafts and searches in the GRG loops: the paper's X, 1 or 2 there"
    )
    max_draft_tokens: int = Field(
        48,
        ge=8,
        description="most tokens of the draft; the GRG paper's is long (some 200), but the answer has to wait for it",
    )
    draft_history: Literal["last", "whole"] = Field(
        "last",
        description="the part of the conversation in the draft's prompt: the last exchange, shortened; or all that "
        "fits the model (whole), as in the GRG paper and in runs of iKAT, which takes longer to read",
    )
    draft_threshold: float = Field(
        0.6,
        gt=0,
        le=1,
        description="confidence of the passages found by the question from which on no draft is written; 1 = always "
        "write one, as in the GRG paper, in runs of iKAT and in evaluations of search",
    )
    itrg_rounds: int = Field(3, ge=1, le=5, description="rounds of searching and writing in the ITRG loops")
    max_document_tokens: int = Field(
        200, ge=8, description="most tokens of the document that an ITRG loop writes each round"
    )
    early_stop: bool = Field(
        True, description="whether an ITRG loop ends when a round finds the same passages as the last"
    )
    max_answer_tokens: int = Field(160, ge=8, description="most tokens of the answer")
    resolve_ordinals: bool = Field(
        True,
        description='whether "the 3rd one" is spelt out by a rule before a follow-up is rewritten '
        "(docs/results/rewriting.md)",
    )
    quality_model: str = Field(
        "", description="a model of `train quality`, to leave out unreliable passages; empty = none"
    )
    digest: Literal["relevant", "extractive", "llm", "seq2seq"] = Field(
        "relevant",
        description="how passages are shortened: to the sentences that most likely answer, by the relevance estimator "
        "(relevant); to the most similar sentences of each (extractive, as in the GRG paper); or to a summary by the "
        "language model (llm) or by a summariser (seq2seq)",
    )
    summariser: str = Field(
        "lmsys/fastchat-t5-3b-v1.0", description="the summariser if digest is seq2seq: a hub id or a folder"
    )
    summariser_prompted: bool = Field(
        True,
        description="whether its input has an instruction; off for models trained only on summaries, such as BART's",
    )
    digest_order: Literal["passage", "score"] = Field(
        "passage",
        description="the order of the selected sentences of a passage: as in the passage, or the best first (score), "
        "as in the GRG paper",
    )
    max_context_chars: int = Field(
        900,
        ge=80,
        description="characters of all passages together in the prompt if digest is relevant",
    )
    max_digest_chars: int = Field(512, ge=80, description="characters of each passage in the prompt otherwise")
    uncertainty: Uncertainty = Field(
        "lowest_logprob", description="the test by which a short answer counts as unknown (docs/results/answers.md)"
    )
    answer_examples: bool = Field(
        False,
        description="whether prompts for short answers show three answers to other questions as examples of their "
        "form, as in the post-fusion paper",
    )
    unknown_threshold: float = Field(
        0.4, ge=0, le=1, description="confidence below which a short answer counts as unknown"
    )
    chat_uncertainty: Uncertainty = Field(
        "word", description="the same test for whole sentences; these also count as unknown if none has support"
    )
    chat_unknown_threshold: float = Field(
        0.5, ge=0, le=1, description="confidence below which whole sentences count as unknown"
    )
    support: SupportName = Field(
        "large",
        description="what judges which sentences the passages support: the larger trained judge (large), for which "
        "440 MB are fetched once; the small one that comes with Sequitur (trained), which also replaces the larger one "
        "if that can't be loaded; or the language model (llm)",
    )
    support_threshold: float = Field(
        0.5,
        ge=0,
        le=1,
        description="lowest probability of yes at which the language model's judgement counts as support",
    )
    addresses_threshold: float = Field(
        0.65,
        ge=0,
        le=1,
        description="probability that a reply answers the question as its sources do, by the language model and the "
        "judge of support together, below which the reply is set aside; 0 = they are not asked",
    )
    verdict_threshold: float = Field(
        0.55,
        ge=0,
        le=1,
        description="the same of a reply that begins with yes or no, for which the language model's own answer to the "
        "question counts as well",
    )
    guess_below: float = Field(
        0.3,
        ge=0,
        le=1,
        description="an answer from the model's own knowledge that names or counts something is only offered as a "
        "guess if its least likely token has a lower probability than this; a yes or no always is; 0 = no guesses",
    )
    quote_threshold: float = Field(
        0.5,
        ge=0,
        le=1,
        description="lowest probability at which one or two sentences of the passages are quoted if the model's own "
        "words gave no answer, or a less likely one of a single sentence: by the relevance estimator and the judge of "
        "support together, or for your own documents by the judge alone; 1 = none are",
    )
    intent_threshold: float = Field(
        0.8, ge=0, le=1, description="lowest probability at which a message counts as talk, which needs no library"
    )
    writing_threshold: float = Field(
        0.5, ge=0, le=1, description="lowest probability at which a message counts as a request to write a text"
    )
    translate: bool = Field(
        False,
        description="whether the reply to a message in another language, which is written and checked in English, is "
        "translated into that language; the default model garbles it",
    )
    max_utterance_chars: int = Field(20_000, ge=100, description="longest message accepted")


class WebSettings(Section):
    """The page."""

    host: str = Field("127.0.0.1", description="address to listen on; any other than loopback needs logins")
    port: int = Field(7860, ge=0, le=65535, description="port to listen on; 0 = any free one")
    logins: dict[str, str] = Field(default_factory=dict, description="user = password hash, made by `users hash`")
    admins: tuple[str, ...] = Field(
        (), description="who may choose the answering model on a page with logins; others only see which one answers"
    )
    max_upload_mb: int = Field(20, ge=1, description="megabytes of the largest document accepted")
    metrics_token: SecretStr = Field(
        SecretStr(""),
        description="bearer token with which Prometheus reads /metrics; without one only this computer may, and only "
        "if the page has no logins",
    )
    grace_seconds: float = Field(
        30.0, ge=0, description="seconds that answers under way may take to finish when the program is told to end"
    )

    @field_validator("host")
    @classmethod
    def _without_brackets(cls, host: str) -> str:
        """An IPv6 address as sockets want it, without the brackets of a URL."""
        return host.strip("[]")


class LimitSettings(Section):
    """How much each person may ask and store; 0 = no limit."""

    max_answers: int = Field(
        2, ge=0, description="answers that are written for a person at the same time; 0 = no limit"
    )
    max_daily_turns: int = Field(
        0, ge=0, description="messages of a person that are answered in a day (UTC); 0 = no limit"
    )
    max_documents: int = Field(0, ge=0, description="documents that a person may store; 0 = no limit")
    max_documents_mb: int = Field(0, ge=0, description="megabytes of these documents together; 0 = no limit")


class Settings(BaseSettings):
    """All settings. `data_dir` holds everything that the program writes: weights, indexes, database."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True, validate_default=True
    )

    data_dir: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("sequitur"), description="where everything is written"
    )
    database: str = Field("", description="a SQLAlchemy URL of SQLite or PostgreSQL; empty = SQLite in data_dir")
    library: str = Field("starter", description="the library to answer from")
    library_folder: Path | None = Field(
        None,
        description="a folder whose files are among your own documents; new, changed and deleted files are followed "
        "while the page runs; only for pages without logins",
    )
    hub: bool = Field(True, description="whether the Hugging Face hub may be asked for models")
    log: Literal["text", "json"] = Field(
        "text",
        description="the form of the page's log: for people (text), or one JSON object a line for programs (json)",
    )
    llm: LLMSettings = LLMSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    facts: FactSettings = FactSettings()
    retrieve: RetrieveSettings = RetrieveSettings()
    relevance: RelevanceSettings = RelevanceSettings()
    turn: TurnSettings = TurnSettings()
    web: WebSettings = WebSettings()
    limits: LimitSettings = LimitSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What is said outright, then the environment; no .env, no secrets folder."""
        return init_settings, env_settings

    @field_validator("data_dir", mode="before")
    @classmethod
    def _refuse_nowhere(cls, folder: Any) -> Any:
        """An empty path would be the current folder, in which nobody would look for their data."""
        if folder == "":
            raise ValueError("it is empty; name a folder, or leave it out")
        return folder

    @field_validator("data_dir")
    @classmethod
    def _expand_home(cls, folder: Path) -> Path:
        return folder.expanduser()

    @model_validator(mode="after")
    def _check_context(self) -> Settings:
        longest_reply = max(self.turn.max_draft_tokens, self.turn.max_document_tokens, self.turn.max_answer_tokens)
        min_context = max(MIN_CONTEXT, 2 * longest_reply)
        if self.llm.context < min_context:
            raise ValueError(
                f"replies of {longest_reply} tokens take an llm.context of {min_context}, not {self.llm.context}"
            )
        return self

    def changed(self, **sections: Mapping[str, Any]) -> Settings:
        """These settings with other values in sections, taken as they are: `changed(turn={"early_stop": False})`."""
        copies = {name: getattr(self, name).model_copy(update=values) for name, values in sections.items()}
        return self.model_copy(update=copies)

    @property
    def database_url(self) -> str:
        """The SQLAlchemy URL of the conversations and facts."""
        return self.database or f"sqlite:///{self.data_dir / 'sequitur.sqlite3'}"

    @property
    def models_dir(self) -> Path:
        """Where weights are kept."""
        return self.data_dir / "models"

    @property
    def libraries_dir(self) -> Path:
        """Where indexes are kept, a folder a library."""
        return self.data_dir / "libraries"


def load(file: Path | None = None, **overrides: Any) -> Settings:
    """Read the settings.

    Args:
        file: a TOML file; by default the one named by SEQUITUR_SETTINGS, or sequitur.toml in the user's config
            folder where there is one.
        overrides: top-level settings that win over the environment, which wins over the file.

    Raises:
        SettingsError: a file that can't be read, an unknown key, or a value out of range.
    """
    _refuse_unknown_variables(os.environ)
    values = _read(file or default_file())

    class WithFile(Settings):
        """The settings, with a file behind the environment."""

        @classmethod
        def settings_customise_sources(
            cls, settings_cls: type[BaseSettings], *sources: PydanticBaseSettingsSource, **named_sources: Any
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            usual_sources = super().settings_customise_sources(settings_cls, *sources, **named_sources)
            return (*usual_sources, InitSettingsSource(settings_cls, init_kwargs=values))

    try:
        return WithFile(**overrides)
    except VariableError as error:
        raise SettingsError(
            f"The environment can't be read ({error}); give each setting a variable of its own, such as"
            " SEQUITUR_LLM__MODEL=fast, and lists and tables as JSON, such as SEQUITUR_WEB__ADMINS='[\"ann\"]'."
        ) from error
    except ValidationError as error:
        first_error = error.errors()[0]
        if not first_error["loc"]:
            raise SettingsError(f"The settings don't go together: {first_error['ctx']['error']}.") from error
        key = ".".join(str(part) for part in first_error["loc"])
        raise SettingsError(_message_of(key, first_error)) from error


def _message_of(key: str, error: ErrorDetails) -> str:
    """What is wrong with the setting of this name."""
    if error["type"] != "extra_forbidden":
        return f"Setting '{key}' is not valid: {error['msg']}; docs/settings.md lists them all."
    return f"Setting '{key}' is not a setting; docs/settings.md lists them all."


def secret_settings(section: type[BaseModel] = Settings) -> Iterator[tuple[str, ...]]:
    """The names of all settings that nobody is to see, each as the keys that lead to it."""
    for name, field in section.model_fields.items():
        if field.annotation is SecretStr:
            yield (name,)
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from ((name, *keys) for keys in secret_settings(field.annotation))


def default_file() -> Path | None:
    """The settings file where none is named: that of SEQUITUR_SETTINGS, or the usual one where it is there."""
    named_path = os.environ.get(FILE_VARIABLE)
    if named_path:
        return Path(named_path)
    return usual_file() if usual_file().exists() else None


def usual_file() -> Path:
    """Where a person's settings file lies, or would lie."""
    return platformdirs.user_config_path("sequitur") / "sequitur.toml"


def _read(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"The settings file {file} can't be read ({error.strerror}).") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"The settings file {file} is not valid TOML: {error}.") from error


def _refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    """pydantic-settings reads the variables it knows and passes over a misspelt one; a person wants to be told."""
    for name in environment:
        upper = name.upper()
        if upper.startswith(PREFIX) and upper != FILE_VARIABLE:
            field = upper.removeprefix(PREFIX).split("__")[0].lower()
            if field not in Settings.model_fields:
                raise SettingsError(
                    f"The environment variable {name} is not a setting; docs/settings.md lists them all."
                )
