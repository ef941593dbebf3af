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
# Earlier names of settings. Whoever still uses one is told the new one; none of them works.
RENAMED = {
    "llm.continuous": "llm.continuous_batching",
    "llm.piece": "llm.prefill_chunk",
    "llm.lookup": "llm.prompt_lookup_tokens",
    "llm.key": "llm.api_key",
    "llm.first_word_seconds": "llm.first_token_timeout",
    "llm.between_seconds": "llm.next_token_timeout",
    "llm.aim_seconds": "llm.target_turn_seconds",
    "facts.rewrite": "facts.rewrite_threshold",
    "facts.most": "facts.max_facts",
    "facts.few": "facts.max_chars_to_tell_all",
    "retrieve.k": "retrieve.top_k",
    "retrieve.k_of": "retrieve.top_k_by_loop",
    "retrieve.depth": "retrieve.fusion_depth",
    "retrieve.rrf": "retrieve.rrf_k",
    "relevance.below": "relevance.if_unanswerable",
    "relevance.least": "relevance.min_relative_confidence",
    "relevance.candidates": "relevance.rerank_depth",
    "relevance.talk": "relevance.small_talk_threshold",
    "relevance.keep": "relevance.rerank_top_k",
    "turn.draft_tokens": "turn.max_draft_tokens",
    "turn.draft_below": "turn.draft_threshold",
    "turn.iterations": "turn.itrg_rounds",
    "turn.document_tokens": "turn.max_document_tokens",
    "turn.answer_tokens": "turn.max_answer_tokens",
    "turn.ordinals": "turn.resolve_ordinals",
    "turn.quality": "turn.quality_model",
    "turn.shown_chars": "turn.max_context_chars",
    "turn.digest_chars": "turn.max_digest_chars",
    "turn.utterance_chars": "turn.max_utterance_chars",
    "web.upload_mb": "web.max_upload_mb",
}

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
    """Which language model answers, and on what."""

    backend: AnyBackend = Field(
        "auto",
        description="what runs the model; auto = transformers on a GPU and for hub ids and folders, else openvino on "
        "processors with AVX512 or AMX, llama.cpp on others",
    )
    model: str = Field(
        "auto",
        description="a name of the catalogue, a hub id, a folder, a .gguf file, or one of the server's models; auto = "
        "what suits: Llama 3.1 8B on a GPU; on a CPU what is here, at the first start Qwen2.5 1.5B Instruct from the "
        "hub or, where no hub answers, the model that comes by pip (default); the only model of a server",
    )
    quantisation: Literal["auto", Quantisation] = Field(
        "auto", description="of transformers' weights; auto = nf4 on a GPU, none (bf16) on a CPU"
    )
    context: int = Field(4096, ge=512, description="tokens that one request may use, prompt and reply together")
    slots: int = Field(4, ge=1, le=32, description="requests that run side by side")
    continuous_batching: bool = Field(
        True, description="whether transformers writes several people's replies side by side, or one after the other"
    )
    prefill_chunk: int = Field(
        128,
        ge=1,
        description="tokens that transformers reads at once on a CPU; more is faster, but slower to stop",
    )
    threads: int = Field(0, ge=0, description="CPU threads; 0 = all cores")
    prompt_lookup_tokens: int = Field(
        0,
        ge=0,
        le=16,
        description="tokens that openvino tries at once where a reply goes on as its prompt did; 0 = none",
    )
    server: str = Field(
        "", description="address of the server whose model answers where backend is server, with or without /v1"
    )
    api_key: SecretStr = Field(SecretStr(""), description="what the server wants to be shown; never told or logged")
    first_token_timeout: float = Field(600.0, gt=0, description="longest wait for a server's first word")
    next_token_timeout: float = Field(60.0, gt=0, description="longest wait for each of the words after it")
    target_turn_seconds: float = Field(
        25.0, gt=0, description="time that a turn may take on this computer with a model that is offered for it"
    )


class EmbedderSettings(Section):
    """The Sentence-BERT model for facts, sentences and support."""

    model: str = Field("all-MiniLM-L6-v2", description="a name of the catalogue, a hub id, or a local folder")


class FactSettings(Section):
    """The PTKB."""

    threshold: float = Field(0.24, ge=-1, le=1, description="relevance from which a fact is used")
    rewrite_threshold: float = Field(
        0.1,
        ge=-1,
        le=1,
        description="relevance of a fact from which a first message is written anew with what the facts say; under it "
        "the message is asked as it stands",
    )
    max_facts: int = Field(5, ge=0, description="facts that are used at most because of their relevance")
    max_chars_to_tell_all: int = Field(
        0,
        ge=0,
        description="where all facts together have at most so many characters, the model that answers is told all, "
        "whatever they are about (800 are some 200 tokens); 0 = it is told only those that are used",
    )
    constraints: bool = Field(
        True,
        description="whether facts that clash with something in the passages (allergies, diets, abilities, means) are "
        "used, however small their relevance",
    )
    suitability: Literal["large", "small"] = Field(
        "large",
        description="the cross-encoder that reads facts and texts for clashes: the larger one, on the encoder that the "
        "larger judge of support stands on, or the small one that comes with Sequitur and stands in for it",
    )


class TopKByLoop(Section):
    """Loops that show the model another number of passages than `retrieve.top_k`, by their names."""

    itrg_refine: int = Field(5, ge=1, le=20, description="passages shown in each round of this loop (ITRG, section 3)")
    itrg_refresh: int = Field(5, ge=1, le=20, description="and of this one")


class OpenSearchSettings(Section):
    """An OpenSearch that libraries are searched in, instead of by this process."""

    address: str = Field(
        "", description="where it is, such as https://search.example:9200; empty = libraries stay here"
    )
    user: str = Field("", description="whom it knows this program as; empty = it asks nobody")
    password: SecretStr = Field(SecretStr(""), description="and that user's password; never told or logged")
    ca: str = Field("", description="a file with the certificate of its authority, where the system doesn't know it")
    prefix: str = Field(
        "sequitur",
        pattern=r"^[a-z0-9][a-z0-9_-]{0,40}$",
        description="what the names of its indexes begin with; programs with data of their own take another",
    )
    seconds: float = Field(10.0, gt=0, description="longest wait for one of its answers")

    @field_validator("address")
    @classmethod
    def _is_one(cls, address: str) -> str:
        parts = urlsplit(address)
        if address and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.username):
            raise ValueError(
                "it has to be http:// or https:// and a host; user and password have settings of their own"
            )
        return address.rstrip("/")


class RetrieveSettings(Section):
    """How passages are searched, and the fusion of rankings."""

    retriever: RetrieverName = Field("bm25", description="words (bm25), meaning (dense), or both, fused (hybrid)")
    encoder: str = Field(
        "",
        description="what dense search encodes with: a hub id or folder of sentence-transformers, Contriever or DPR "
        "(its encoder of passages); empty = the embedder's model",
    )
    question_encoder: str = Field("", description="DPR's other half, which encodes questions; empty for all else")
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
    """Whether the passages answer the question, and what follows if they don't (RE-RAG)."""

    estimator: EstimatorName = Field(
        "large",
        description="who tells: nobody, the language model, or a model that was trained for it: the small one that "
        "comes with Sequitur (cross_encoder), or one on an encoder that is fetched, five times as large, which reads "
        "again what the small one finds first (large)",
    )
    model: str = Field("", description="its folder or hub id; empty = the cross-encoder that comes with Sequitur")
    calibration: str = Field(
        "", description="a file of `evaluate relevance --calibrate`; empty = the one beside the model, if there is one"
    )
    threshold: float = Field(0.01, gt=0, lt=1, description="confidence under which the library counts as not knowing")
    if_unanswerable: Literal["auto", IfUnanswerable] = Field(
        "auto",
        description="what happens under it: answer all the same, say that the library doesn't know (refuse), answer "
        "from the model's own knowledge and say so (own), or ask you; auto = own, but answer in what "
        "measures answers from passages (short answers, groundedness, iKAT)",
    )
    rerank: bool = Field(
        True,
        description="whether the most relevant of the candidates take the places; off = the loop's order, and only "
        "what is shown is estimated",
    )
    min_relative_confidence: float = Field(
        0.05,
        ge=0,
        lt=1,
        description="share of the likeliest passage's confidence under which a chat reply leaves others out; 0 = none",
    )
    rerank_depth: int = Field(
        20, ge=1, le=200, description="passages that are reranked, the best of each search, fused"
    )
    small_talk_threshold: float = Field(
        0.2,
        gt=0,
        le=1,
        description="confidence from which what seems talk is looked up in the library all the same; 1 = never",
    )
    rerank_top_k: int = Field(5, ge=1, le=100, description="the best of those, whose answers re_rag weighs")

    def if_unanswerable_for(self, form: Literal["chat", "factoid"]) -> IfUnanswerable:
        """What happens under the threshold to a reply of this form; short answers are for evaluation."""
        usual: IfUnanswerable = "own" if form == "chat" else "answer"
        return usual if self.if_unanswerable == "auto" else self.if_unanswerable


class TurnSettings(Section):
    """The steps of a turn."""

    loop: str = Field("grg", description="how passages are found: a file of assistant/loops")
    strategy: str = Field("concat_pf", description="how they are answered from: a file of assistant/strategies")
    grg_rounds: int = Field(
        1, ge=1, le=5, description="drafts and searches in the GRG loops: the paper's X, 1 or 2 there"
    )
    max_draft_tokens: int = Field(
        48, ge=8, description="length of the draft; the GRG paper's is long (some 200), and an answer waits for it"
    )
    draft_history: Literal["last", "whole"] = Field(
        "last",
        description="what the draft sees of the conversation: the last exchange, shortened; or all that fits the model "
        "(whole), as in the GRG paper and in runs of iKAT, which takes time to read",
    )
    draft_threshold: float = Field(
        0.6,
        gt=0,
        le=1,
        description="confidence of the question's own passages from which no draft is written; 1 = always, as in the "
        "GRG paper, in runs of iKAT and in what measures search",
    )
    itrg_rounds: int = Field(3, ge=1, le=5, description="rounds of searching and writing in the ITRG loops")
    max_document_tokens: int = Field(
        200, ge=8, description="length of the document that an ITRG loop writes each round"
    )
    early_stop: bool = Field(True, description="whether an ITRG loop ends when a round finds the passages of the last")
    max_answer_tokens: int = Field(160, ge=8, description="length of the answer")
    resolve_ordinals: bool = Field(
        True,
        description='whether "the 3rd one" is spelt out by a rule before a follow-up is written anew '
        "(docs/results/rewriting.md)",
    )
    quality_model: str = Field(
        "", description="a model of `train quality`, to leave out unreliable passages; empty = none"
    )
    digest: Literal["relevant", "extractive", "llm", "seq2seq"] = Field(
        "relevant",
        description="how passages are cut down: to the sentences that most likely answer, by the relevance estimator; "
        "to each one's most similar sentences (extractive, as in the GRG paper); or summed up by the model or another",
    )
    summariser: str = Field(
        "lmsys/fastchat-t5-3b-v1.0", description="what sums up where digest is seq2seq: a hub id or a folder"
    )
    summariser_prompted: bool = Field(
        True, description="whether it is told what to do; off for models trained on summaries alone, such as BART's"
    )
    digest_order: Literal["passage", "score"] = Field(
        "passage",
        description="how the sentences that are left of a passage are ordered: as they stand in it, or the best "
        "first (score), as in the GRG paper",
    )
    max_context_chars: int = Field(
        900,
        ge=80,
        description="characters shown of all passages together where digest is relevant, each one's best first",
    )
    max_digest_chars: int = Field(
        512, ge=80, description="characters shown of each passage where digest is anything else"
    )
    uncertainty: Uncertainty = Field(
        "lowest_logprob", description="how it is told that a short answer is not known (docs/results/answers.md)"
    )
    answer_examples: bool = Field(
        False,
        description="whether prompts for short answers show three answers to other questions for their form, as in the "
        "post-fusion paper",
    )
    unknown_threshold: float = Field(0.4, ge=0, le=1, description="confidence below which it counts as unknown")
    chat_uncertainty: Uncertainty = Field(
        "word", description="the same for whole sentences, which count as unknown without a supported one, too"
    )
    chat_unknown_threshold: float = Field(0.5, ge=0, le=1, description="confidence below which they count as unknown")
    support: SupportName = Field(
        "large",
        description="who tells which sentences the passages support: the larger judge that was trained for it, which "
        "takes 440 MB once, the small one that comes with Sequitur and stands in for it, or the language model",
    )
    support_threshold: float = Field(
        0.5, ge=0, le=1, description="the language model's probability of yes from which it counts as support"
    )
    addresses_threshold: float = Field(
        0.65,
        ge=0,
        le=1,
        description="probability that a reply answers the question as its sources tell, as the language model and the "
        "judge of support together see it, below which the reply is set aside; 0 = they are not asked",
    )
    quote_threshold: float = Field(
        0.5,
        ge=0,
        le=1,
        description="probability from which a sentence of the passages is quoted where the model's own words were no "
        "answer, as the relevance estimator and the judge of support together see it; 1 = none is",
    )
    intent_threshold: float = Field(0.8, ge=0, le=1, description="probability from which a message needs no library")
    writing_threshold: float = Field(0.5, ge=0, le=1, description="probability from which a text is to be written")
    translate: bool = Field(
        False,
        description="whether the reply to a message in another language, which is found and checked in English, is put "
        "into that language; the default model garbles it",
    )
    max_utterance_chars: int = Field(20_000, ge=100, description="longest message accepted")


class WebSettings(Section):
    """The page."""

    host: str = Field("127.0.0.1", description="address to listen on; any other than loopback needs logins")
    port: int = Field(7860, ge=0, le=65535, description="port to listen on; 0 = any free one")
    logins: dict[str, str] = Field(default_factory=dict, description="user = password hash, made by `users hash`")
    admins: tuple[str, ...] = Field(
        (), description="who may choose the model that answers, where people log in; others see which one does"
    )
    max_upload_mb: int = Field(20, ge=1, description="largest document accepted")
    metrics_token: SecretStr = Field(
        SecretStr(""),
        description="what Prometheus shows as its bearer token to read /metrics; without one only this computer may, "
        "and only where nobody logs in",
    )
    grace_seconds: float = Field(
        30.0, ge=0, description="how long answers that are being written may go on once the program is told to end"
    )

    @field_validator("host")
    @classmethod
    def _bare(cls, host: str) -> str:
        """An IPv6 address as sockets want it, without the brackets of a URL."""
        return host.strip("[]")


class LimitSettings(Section):
    """How much each person may ask and keep; 0 = as much as they like."""

    max_answers: int = Field(2, ge=0, description="answers that are written for a person at a time")
    max_daily_turns: int = Field(0, ge=0, description="messages that a person may have answered a day (UTC)")
    max_documents: int = Field(0, ge=0, description="documents that a person may keep")
    max_documents_mb: int = Field(0, ge=0, description="megabytes that they may have together")


class Settings(BaseSettings):
    """All of them. `data_dir` holds everything the app writes: weights, indexes, database."""

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
        description="a folder whose files are among your own documents: what comes, changes and goes in it follows "
        "while the page runs; only where nobody needs to log in",
    )
    hub: bool = Field(True, description="whether the Hugging Face hub may be asked for models")
    log: Literal["text", "json"] = Field(
        "text", description="how the page's log is written: for people, or a JSON object a line for programs"
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

    @field_validator("data_dir")
    @classmethod
    def _at_home(cls, folder: Path) -> Path:
        return folder.expanduser()

    @model_validator(mode="after")
    def _has_room(self) -> Settings:
        longest = max(self.turn.max_draft_tokens, self.turn.max_document_tokens, self.turn.max_answer_tokens)
        least = max(MIN_CONTEXT, 2 * longest)
        if self.llm.context < least:
            raise ValueError(f"replies of {longest} tokens take an llm.context of {least}, not {self.llm.context}")
        return self

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
            cls, settings_cls: type[BaseSettings], *sources: PydanticBaseSettingsSource, **named: Any
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            usual = super().settings_customise_sources(settings_cls, *sources, **named)
            return (*usual, InitSettingsSource(settings_cls, init_kwargs=values))

    try:
        return WithFile(**overrides)
    except VariableError as error:
        raise SettingsError(
            f"The environment can't be read ({error}); give each setting a variable of its own, such as"
            " SEQUITUR_LLM__MODEL=fast."
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:
            raise SettingsError(f"The settings don't go together: {first['ctx']['error']}.") from error
        key = ".".join(str(part) for part in first["loc"])
        raise SettingsError(_told(key, first)) from error


def _told(key: str, error: ErrorDetails) -> str:
    """What is wrong with the setting of this name."""
    if error["type"] != "extra_forbidden":
        return f"Setting '{key}' is not valid: {error['msg']}; docs/settings.md lists them all."
    if key in RENAMED:
        return f"Setting '{key}' is now called '{RENAMED[key]}'; rename it in your settings file or environment."
    return f"Setting '{key}' is not a setting; docs/settings.md lists them all."


def secret_settings(section: type[BaseModel] = Settings) -> Iterator[tuple[str, ...]]:
    """The names of all settings that nobody is to see, each as the keys that lead to it."""
    for name, field in section.model_fields.items():
        if field.annotation is SecretStr:
            yield (name,)
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from ((name, *rest) for rest in secret_settings(field.annotation))


def default_file() -> Path | None:
    """The settings file where none is named: that of SEQUITUR_SETTINGS, or the usual one where it is there."""
    named = os.environ.get(FILE_VARIABLE)
    if named:
        return Path(named)
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
