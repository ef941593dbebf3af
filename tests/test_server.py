"""Models of servers: the contract of every LLM with a real llama-server, stand-ins for others, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
import math
import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Timer
from typing import TypeVar

import pytest
from llm_contract import LLMContract, ask, run
from typer.testing import CliRunner

from assistant import turn as flow
from assistant.__main__ import app
from assistant.errors import ChoiceError, ModelError
from assistant.llm import load as choice
from assistant.llm.engines import server
from assistant.llm.engines.server import Server
from assistant.llm.servers.address import root_of
from assistant.llm.servers.discovery import KINDS, local_servers
from assistant.llm.servers.ollama import Ollama
from assistant.llm.servers.openai_compatible import estimated_tokens, min_tokens
from assistant.llm.servers.probe import Probed, absences, probe
from assistant.llm.servers.wire import CONNECT, Wire
from assistant.protocols import LLM, Parts, silent
from assistant.settings import LLMSettings, Settings, load
from assistant.types import Choices, Message, Options, Turn
from tests.servers import (
    KEY,
    Answer,
    Json,
    Reply,
    Request,
    Running,
    StandIn,
    choices,
    delta,
    event,
    llama_router,
    llama_server,
    lm_studio,
    misbehaving,
    ollama,
    plain,
    self_signed,
    streamed,
    vllm,
)

QUESTION = "Which drink holds no lactose?"
REPLY = "Oat drink holds no lactose."
LONG = "Bread is made of flour and water. " * 200
ALONE = Choices(strategy="concat", loop="retrieve_then_generate")
Met = Callable[..., tuple[Server, StandIn]]
Kind = Callable[..., dict[str, Answer]]


@pytest.fixture(scope="module")
def real(smollm_path: Path) -> Iterator[Running]:
    with llama_server(smollm_path) as running:
        yield running


@pytest.fixture(scope="module")
def at_real(real: Running) -> Iterator[Server]:
    engine = Server(LLMSettings(backend="server", server=real.address, api_key=KEY))
    engine.meet()
    yield engine
    engine.close()


@pytest.mark.model
class TestContract(LLMContract):
    @pytest.fixture
    def llm(self, at_real: Server) -> LLM:
        return at_real

    def test_its_prompt_progress_is_told(self, llm: LLM) -> None:
        pieces = run(llm, "A story of a ship that sailed far away. " * 40, max_tokens=4)
        reads = [piece.read for piece in pieces if piece.read]
        assert len(reads) >= 3
        assert reads == sorted(reads)


@pytest.mark.model
def test_a_real_llama_server_is_known_with_all_that_it_can_do(at_real: Server) -> None:
    can = at_real.abilities
    assert (at_real.kind, at_real.name) == ("llama-server", "SmolLM2-135M-Instruct.Q4_1")
    assert (can.choose, can.score, can.stream, can.cancel, can.context) == ("exact", False, True, True, 1024)


def assert_cited(turn: Turn) -> None:
    """There are citations, and each one's quote stands in its passage."""
    assert turn.citations
    texts = {passage.id: passage.text for passage in turn.passages}
    assert all(texts[one.passage_id][one.start : one.end] == one.quote for one in turn.citations)


@pytest.mark.model
def test_a_whole_turn_is_answered_by_a_real_llama_server_and_cited(at_real: Server, parts: Parts) -> None:
    *_, turn = flow.run(Turn("What is lactose?", choices=ALONE), replace(parts, llm=at_real), Event())
    assert (turn.status, turn.error, turn.events) == ("done", "", ())
    assert turn.model == at_real.name
    assert turn.answer
    assert "milk" in turn.answer.text
    assert "addresses" in turn.timings
    assert turn.tokens.prompt > 50
    assert_cited(turn)


@pytest.mark.model
def test_a_llama_server_that_dies_while_it_writes(smollm_path: Path, parts: Parts) -> None:
    with llama_server(smollm_path, slots=1) as running:
        engine = Server(LLMSettings(backend="server", server=f"{running.address}/v1", api_key=KEY))
        stream = engine.stream(ask("Tell me a long story."), Options(1500), Event())
        written = next(piece for piece in stream if piece.text)
        running.process.kill()
        running.process.wait()
        with pytest.raises(ModelError, match=r"broke off its reply; see whether it still runs, and ask again"):
            for written in stream:  # noqa: B007 - the last one counts
                pass
        assert written.text
        with pytest.raises(ModelError, match="No server answers at http"):
            run(engine, "Hi")
        engine.close()


# --- stand-ins: what each kind is asked, and what is made of its answers --------------------------------------------


@pytest.fixture
def met() -> Iterator[Met]:
    """An engine on a stand-in that gives these answers, and the stand-in."""
    with ExitStack() as stack:

        def start(
            answers: dict[str, Answer], key: str = "", address: str = "", **settings: object
        ) -> tuple[Server, StandIn]:
            there = stack.enter_context(StandIn(answers, key))
            asked = {"backend": "server", "server": there.address + address, "api_key": key, **settings}
            engine = Server(LLMSettings.model_validate(asked))
            stack.callback(engine.close)
            return engine, there

        yield start


T = TypeVar("T")


def apart(call: Callable[[], T]) -> T:
    """What the call gives in a thread of its own: a browser's tests leave a running event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def says(_: list[Json]) -> str:
    return REPLY


def written(engine: Server, text: str = "Hi", **options: object) -> str:
    return run(engine, text, **options)[-1].text


KINDS_OF_ANSWERS = {
    "Ollama": lambda: ollama(says, top={"Yes": 0.9, "No": 0.1}),
    "LM Studio": lambda: lm_studio(says),
    "vLLM": lambda: vllm(says, {"y": 0.9, "n": 0.1}),
    "OpenAI-compatible": lambda: plain(says),
}


@pytest.mark.parametrize("kind", KINDS_OF_ANSWERS)
def test_a_whole_turn_is_answered_by_each_kind_and_cited(met: Met, parts: Parts, kind: str) -> None:
    engine, _ = met(KINDS_OF_ANSWERS[kind]())
    assert engine.kind == kind
    *_, turn = flow.run(Turn(QUESTION, choices=ALONE), replace(parts, llm=engine), Event())
    assert (turn.status, turn.error, turn.model) == ("done", "", engine.name)
    assert turn.answer
    assert turn.answer.text == f"{REPLY} [1]"
    assert_cited(turn)


class TestOllama:
    def test_it_is_spoken_to_by_its_own_api_with_one_context_for_all(self, met: Met) -> None:
        engine, there = met(ollama(says, top={"Yes": 0.8, " no": 0.15, "I": 0.05}), model="small")
        last = run(engine, "Hi", max_tokens=20, stop=("END", ""))[-1]
        assert (engine.kind, last.text, last.finish, last.completion_tokens) == ("Ollama", REPLY, "stop", 5)
        assert not there.bodies("/v1/chat/completions")
        asked = there.bodies("/api/chat")
        assert {one["options"]["num_ctx"] for one in asked} == {4096}
        assert asked[-1]["options"]["num_predict"] == 20
        assert asked[-1]["options"]["stop"] == ["END"]
        for one in asked:
            assert (one["truncate"], one["shift"], one["think"], one["keep_alive"]) == (False, False, False, "30m")

    def test_choices_sum_over_the_forms_of_a_word(self, met: Met) -> None:
        engine, _ = met(ollama(says, top={"Yes": 0.3, " yes": 0.3, "NO": 0.2, "Maybe": 0.2}))
        [found] = engine.choose([ask("Is it?")], ("yes", "no"), Event())
        assert engine.abilities.choose == "top 20"
        assert found.probabilities == pytest.approx({"yes": 0.75, "no": 0.25})

    def test_words_of_too_little_weight_are_no_choice(self, met: Met) -> None:
        engine, _ = met(ollama(says, top={"Yes": 0.3, "I": 0.5, "The": 0.2}))
        with pytest.raises(ChoiceError, match=r"small:latest is unsure: yes, no hold 30% of what"):
            engine.choose([ask("Is it?")], ("yes", "no"), Event())
        with pytest.raises(ChoiceError, match="begins like"):
            engine.choose([ask("Is it?")], ("not now", "not ever"), Event())

    def test_a_typed_context_is_used_and_one_beyond_the_models_is_refused(self, met: Met) -> None:
        engine, there = met(ollama(says), context=8192)
        assert written(engine)
        assert there.bodies("/api/chat")[-1]["options"]["num_ctx"] == engine.context == 8192
        engine, _ = met(ollama(says, context=2048), context=8192)
        with pytest.raises(
            ModelError, match=r"gives small:latest 2,048 tokens a request; lower llm.context from 8,192"
        ):
            engine.meet()
        engine, _ = met(ollama(says, context=2048))
        engine.meet()
        assert engine.context == 2048

    def test_a_prompt_that_it_would_cut_is_an_error(self, met: Met) -> None:
        engine, _ = met(ollama(says))
        with pytest.raises(ModelError, match=r"can't take a prompt as long as this .*exceeds the context length"):
            run(engine, "a " * 5000)

    def test_it_writes_json_that_keeps_to_a_schema(self, met: Met) -> None:
        engine, there = met(ollama(says))
        written(engine, schema='{"type": "object"}')
        assert there.bodies("/api/chat")[-1]["format"] == {"type": "object"}

    def test_what_it_thinks_and_an_error_in_the_middle(self, met: Met) -> None:
        answers = ollama(says)
        engine, _ = met(answers)
        engine.meet()
        lines = [
            {"message": {"content": "", "thinking": "Hm."}, "done": False},
            {"message": {"content": "Oats"}, "done": False},
            {"error": "the runner has ended"},
        ]
        answers["/api/chat"] = lambda _: Reply(parts=[json.dumps(line) + "\n" for line in lines])
        stream = engine.stream(ask("Hi"), Options(), Event())
        assert next(stream).text == "Oats"
        with pytest.raises(ModelError, match=r"failed \(the runner has ended\)"):
            next(stream)


def test_a_llama_server_with_several_models_is_told_each_time_which_is_meant(met: Met) -> None:
    engine, _ = met(llama_router(says), model="org/small")
    assert (engine.kind, engine.abilities.choose, engine.context) == ("llama-server", "exact", 2048)
    assert engine.choose([ask("Is it?")], ("yes", "no"), Event())[0].probabilities == {"yes": 0.5, "no": 0.5}
    assert written(engine) == REPLY


class TestVllm:
    def test_choices_are_exact_by_the_tokens_that_begin_the_words(self, met: Met) -> None:
        engine, there = met(vllm(says, {"y": 0.1, "Y": 0.2, "n": 0.1, "I": 0.6}))
        [found] = engine.choose([ask("Is it?")], ("yes", "no"), Event())
        assert (engine.kind, engine.abilities.choose, engine.context) == ("vLLM", "exact", 4000)
        assert found.probabilities == pytest.approx({"yes": 0.75, "no": 0.25}, abs=1e-6)
        assert set(map(ord, "yYnN")) <= set(there.bodies("/v1/chat/completions")[-1]["logprob_token_ids"])

    def test_an_old_release_tells_the_likeliest_only(self, met: Met) -> None:
        engine, _ = met(vllm(says, {"y": 0.6, "n": 0.2}, old=True))
        [found] = engine.choose([ask("Is it?")], ("yes", "no"), Event())
        assert engine.abilities.choose == "top 20"
        assert found.probabilities == pytest.approx({"yes": 0.75, "no": 0.25})
        with pytest.raises(ChoiceError, match="small is unsure"):
            engine.choose([ask("Is it?")], ("true", "false"), Event())

    def test_a_given_text_is_scored_by_its_own_tokens_alone(self, met: Met) -> None:
        engine, there = met(vllm(says, {"y": 0.6}))
        engine.meet()
        assert engine.can_score
        [score] = engine.score([(ask("Hi"), "ab")], Event())
        assert score == pytest.approx(-(ord("a") + ord("b")) / 100)
        body = there.bodies("/v1/completions")[-1]
        assert body["echo"]
        assert body["prompt"][-2:] == [ord("a"), ord("b")]

    def test_a_server_that_does_not_come_to_counting_holds_nobody_up(
        self, met: Met, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server, "COUNT_SECONDS", 0.3)
        answers, waited, go = vllm(says, {"y": 0.6}), list[str](), Event()
        engine, there = met(answers)
        exact, tokenize = engine.count(ask("abcd")), answers["/tokenize"]
        there.answers["/tokenize"] = lambda request: (waited.append(request.path), go.wait(20), tokenize(request))[-1]
        assert engine.count(ask("abcd")) == exact  # which is known
        assert engine.count(ask("abcde")) == estimated_tokens(ask("abcde"))
        assert engine.count(ask("abcdef")) == estimated_tokens(ask("abcdef"))
        assert len(waited) == 1
        assert run(engine, "Hi")[-1].text
        go.set()
        monkeypatch.setattr(server, "ESTIMATE_SECONDS", 0.0)
        assert engine.count(ask("abcde")) == exact + 1

    def test_what_one_turn_learned_of_slow_counting_spares_the_next_one_the_wait(
        self, met: Met, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server, "COUNT_SECONDS", 0.3)
        answers, waited, go = vllm(says, {"y": 0.6}), list[str](), Event()
        engine, there = met(answers)
        engine.meet()
        there.answers["/tokenize"] = lambda request: (waited.append(request.path), go.wait(20), Reply({}))[-1]
        for turn, text in enumerate(("abcd", "abcde", "abcdef")):
            assert engine.salted(f"turn {turn}").count(ask(text)) == estimated_tokens(ask(text))
        assert engine.count(ask("abc")) == estimated_tokens(ask("abc"))
        assert len(waited) == 1
        go.set()

    def test_prompts_are_counted_by_the_server_and_its_makers_sampling_is_overridden(self, met: Met) -> None:
        engine, there = met(vllm(says, {"y": 0.6}))
        assert engine.count(ask("abcd")) == engine.count(ask("ab")) + 2
        last = run(engine, "Hi", temperature=0.5)[-1]
        assert last.logprobs == (-0.5,) * 5
        body = there.bodies("/v1/chat/completions")[-1]
        assert (body["temperature"], body["top_p"], body["top_k"], body["repetition_penalty"]) == (0.5, 1.0, 0, 1.0)
        assert body["chat_template_kwargs"] == {"enable_thinking": False}

    def test_no_more_is_asked_for_than_it_can_write(self, met: Met) -> None:
        engine, there = met(vllm(says, {"y": 0.6}))
        assert written(engine, max_tokens=9000) == REPLY
        assert there.asked[-1].body["max_tokens"] == 4000

    def test_each_request_of_a_salted_engine_tells_its_salt_and_no_other_does(self, met: Met) -> None:
        engine, there = met(vllm(says, {"y": 0.6}))
        mine = engine.salted("mine")
        asked = len(there.asked)
        for one in (mine, engine):
            run(one, "Hi")
            one.choose([ask("Is it?")], ("yes", "no"), Event())
            one.score([(ask("Hi"), "ab")], Event())
        told = [one.body.get("cache_salt") for one in there.asked[asked:] if "tokenize" not in one.path]
        assert told == ["mine", "mine", "mine", None, None, None]

    def test_a_server_that_is_down_as_its_engine_is_salted_is_told_by_the_first_call(
        self, met: Met, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server, "RETRY_SECONDS", 0.0)
        engine, there = met({**vllm(says, {"y": 0.6}), "/v1/models": lambda _: Reply({"error": "not yet"}, 404)})
        mine = engine.salted("mine")
        with pytest.raises(ModelError, match="doesn't speak as"):
            run(mine, "Hi")
        there.answers.update(vllm(says, {"y": 0.6}))
        assert run(mine, "Hi")[-1].text == REPLY
        assert there.asked[-1].body["cache_salt"] == "mine"


class TestLmStudio:
    def test_its_context_is_read_and_it_can_not_choose(self, met: Met) -> None:
        engine, there = met(lm_studio(says))
        assert written(engine) == REPLY
        assert (engine.kind, engine.abilities.choose, engine.context) == ("LM Studio", "none", 8192)
        assert "logprobs" not in there.bodies("/v1/chat/completions")[-1]
        with pytest.raises(ChoiceError, match="tells no probabilities, so that small can't be asked to choose"):
            engine.choose([ask("Is it?")], ("yes", "no"), Event())
        with pytest.raises(ModelError, match="can't tell how likely"):
            engine.score([(ask("Hi"), "Hi")], Event())

    def test_the_context_that_it_is_loaded_with_counts(self, met: Met) -> None:
        engine, _ = met(lm_studio(says, context=2048), context=8192)
        with pytest.raises(ModelError, match=r"gives small 2,048 tokens a request; lower llm.context from 8,192"):
            engine.meet()

    def test_a_model_for_vectors_is_not_offered(self, met: Met) -> None:
        engine, there = met(lm_studio(says))
        assert engine.meet().model == "small"
        assert probed_at(there.address).models == ("small",)
        engine, _ = met(lm_studio(says), model="for-vectors")
        with pytest.raises(ModelError, match=r"has no model 'for-vectors'.* it has small"):
            engine.meet()

    def test_a_whole_turn_goes_on_without_the_second_look_and_says_so(self, met: Met, parts: Parts) -> None:
        engine, _ = met(lm_studio(says))
        parts = replace(parts, llm=engine, settings=Settings(data_dir=parts.settings.data_dir, hub=False))
        *_, turn = flow.run(Turn(QUESTION, choices=Choices()), parts, Event())
        assert (turn.status, turn.error) == ("done", "")
        assert turn.answer
        assert turn.answer.text == f"{REPLY} [1]"
        assert turn.citations[0].quote in {REPLY, "Lactose is the sugar in milk."}
        assert_cited(turn)
        assert "second_look_failed" in [event.code for event in turn.events]

    def test_json_that_keeps_to_a_schema_is_asked_for(self, met: Met) -> None:
        engine, there = met(lm_studio(says))
        written(engine, schema='{"type": "object"}')
        asked = there.bodies("/v1/chat/completions")[-1]["response_format"]
        assert (asked["type"], asked["json_schema"]["schema"]) == ("json_schema", {"type": "object"})


class TestAnyOther:
    @pytest.mark.parametrize("address", ["", "/", "/v1", "/v1/", "/v1/chat/completions"])
    def test_its_address_may_be_typed_with_or_without_what_follows(self, met: Met, address: str) -> None:
        engine, there = met(plain(says), address=address)
        assert written(engine) == REPLY
        assert engine.kind == "OpenAI-compatible"
        assert {one.path for one in there.asked} >= {"/v1/models", "/v1/chat/completions"}

    def test_a_context_that_it_lists_is_read(self, met: Met) -> None:
        listed = {"data": [{"id": "small", "context_length": 9000}]}
        engine, _ = met({**plain(says), "/v1/models": lambda _: Reply(listed)})
        engine.meet()
        assert engine.context == 9000

    def test_one_without_v1_is_found(self, met: Met) -> None:
        engine, _ = met({path.removeprefix("/v1"): answer for path, answer in plain(says).items()}, address="/v1")
        assert written(engine) == REPLY

    def test_one_that_refuses_probabilities_is_asked_for_none(self, met: Met) -> None:
        answers = plain(says)
        usual = answers["/v1/chat/completions"]

        def strict(request: Request) -> Reply:
            if "logprobs" in request.body:
                return Reply({"error": {"message": "logprobs is not supported"}}, 400)
            return usual(request)

        engine, _ = met({**answers, "/v1/chat/completions": strict})
        assert written(engine) == REPLY
        assert engine.abilities.choose == "none"

    @pytest.mark.parametrize("listed", [Reply({"data": []}), Reply({"error": {"message": "not found"}}, 404)])
    def test_a_model_that_is_named_needs_no_list(self, met: Met, listed: Reply) -> None:
        answers = {**plain(says), "/v1/models": lambda _: listed}
        engine, there = met(answers, model="mine")
        assert written(engine) == REPLY
        assert there.asked[-1].body["model"] == "mine"
        assert probed_at(there.address, model="mine").model == "mine"
        assert apart(lambda: asyncio.run(absences([LLMSettings(server=there.address, model="mine")]))) == [""]
        assert re.search("lists none|or name the model", probed_at(there.address).reason)

    def test_one_without_a_list_that_answers_nothing_is_told(self, met: Met) -> None:
        engine, _ = met({}, model="mine")
        with pytest.raises(ModelError, match=r"has no such model any more, or no such address \(404: not found\)"):
            engine.meet()

    @pytest.mark.parametrize("names", ["param", "message"])
    def test_a_field_that_it_refuses_goes_by_another_name_or_is_left_out_from_then_on(
        self, met: Met, names: str
    ) -> None:
        engine, there = met({**plain(says), "/v1/chat/completions": picky("max_tokens", "temperature", names=names)})
        assert written(engine, max_tokens=30) == REPLY
        assert engine.abilities.stream
        asked = len(there.bodies("/v1/chat/completions"))
        assert written(engine, max_tokens=40) == REPLY
        [body] = there.bodies("/v1/chat/completions")[asked:]
        assert body["max_completion_tokens"] == 40
        assert not {"max_tokens", "temperature"} & set(body)
        assert {"top_p", "seed"} <= set(body)

    def test_a_field_is_kept_where_the_request_is_refused_without_it_too(self, met: Met) -> None:
        engine, there = met(plain(says))
        engine.meet()
        good = there.answers["/v1/chat/completions"]
        refused = {"error": {"message": "max_tokens or temperature is odd"}}
        there.answers["/v1/chat/completions"] = lambda _: Reply(refused, 400)
        with pytest.raises(ModelError, match=r"refused the request \(400: max_tokens or temperature is odd\)"):
            run(engine, "Hi")
        there.answers["/v1/chat/completions"] = good
        assert written(engine) == REPLY
        assert {"max_tokens", "temperature"} <= set(there.asked[-1].body)

    def test_one_that_refuses_everything_is_tested_with_the_reason(self) -> None:
        refused = {"error": {"message": "This model is for pictures."}}
        with StandIn({**plain(says), "/v1/chat/completions": lambda _: Reply(refused, 400)}) as there:
            probed = probed_at(there.address)
        assert probed.abilities is None
        assert "refused the request (400: This model is for pictures)" in probed.reason

    def test_one_that_does_not_stream_answers_in_one_piece(self, met: Met) -> None:
        def whole(request: Request) -> Reply:
            if request.body.get("stream"):
                return Reply({"error": {"message": "stream is not supported"}}, 400)
            return Reply({"choices": [{"message": {"content": REPLY}, "finish_reason": "stop"}]})

        engine, _ = met({**plain(says), "/v1/chat/completions": whole})
        assert written(engine) == REPLY
        assert not engine.abilities.stream


def probed_at(address: str, **llm: object) -> Probed:
    """What the Test button finds out."""
    settings = LLMSettings.model_validate({"backend": "server", "server": address, **llm})
    return apart(lambda: asyncio.run(probe(settings)))


def picky(*fields: str, names: str) -> Answer:
    """A usual reply, but an error that names the field to each request with one of these."""
    usual = plain(says)["/v1/chat/completions"]

    def answer(request: Request) -> Reply:
        if wrong := next((field for field in fields if field in request.body), ""):
            told = {"message": f"Unsupported parameter: '{wrong}' is not supported with this model."}
            code = {"param": wrong, "code": "unsupported_parameter"} if names == "param" else {}
            return Reply({"error": {**told, **code}}, 400)
        return usual(request)

    return answer


@pytest.mark.parametrize("kind", [plain, ollama])
class TestCut:
    """A prompt of which a server reads a part only, without a word."""

    def test_it_is_caught(self, met: Met, kind: Kind) -> None:
        engine, _ = met(kind(says, tells=lambda size: min(size, 1100)))
        with pytest.raises(ModelError, match=r"read only 1,100 of about 2,\d+ tokens, so it cuts long prompts"):
            run(engine, LONG)
        assert written(engine) == REPLY

    def test_a_tokenizer_with_a_token_for_each_word_cuts_nothing(self, met: Met, kind: Kind) -> None:
        engine, there = met(kind(says))
        assert written(engine, LONG) == REPLY
        assert len([one for one in there.asked if LONG in str(one.body)]) == 1

    @pytest.mark.parametrize("rest", [1, 0])
    def test_one_that_leaves_out_what_is_in_its_cache_cuts_nothing(self, met: Met, kind: Kind, rest: int) -> None:
        engine, there = met(kind(says))
        engine.meet()
        counts = iter([700, rest])
        there.answers.update(kind(says, tells=lambda _: next(counts)))
        assert written(engine, LONG) == REPLY


@pytest.mark.model
@pytest.mark.parametrize(
    "text",
    [
        LONG,
        "乳糖は牛乳に含まれる糖です。" * 90,
        "def area(x):\n        return x * x\n\n" * 90,
        "7 " * 900,
    ],
)
def test_no_prompt_has_fewer_tokens_than_are_counted_on(at_real: Server, text: str) -> None:
    assert min_tokens((Message("user", text),)) <= at_real.count((Message("user", text),))


# --- thoughts -----------------------------------------------------------------------------------------------------


def answering(engine: Server, there: StandIn, *parts: object) -> None:
    """From now on the stand-in gives these parts of a reply."""
    engine.meet()
    there.answers["/v1/chat/completions"] = lambda _: Reply(parts=[*parts])


END = (delta("stop"), "data: [DONE]\n\n")


@pytest.mark.parametrize(
    "parts",
    [
        (delta(reasoning="Hm."), delta(content="Oats.")),
        (delta(reasoning_content="Hm."), delta(content="Oats.")),
        (delta(content="<thi"), delta(content="nk>Hm."), delta(content="</think>\n\nOats.")),
    ],
)
def test_what_a_model_thinks_is_no_part_of_its_reply(met: Met, parts: tuple[str, ...]) -> None:
    engine, there = met(plain(says))
    answering(engine, there, *parts, *END)
    pieces = run(engine, "Hi")
    assert {piece.text for piece in pieces} == {"Oats."}


def test_a_thought_that_a_template_opened_is_shown_once_at_most(met: Met) -> None:
    engine, there = met(plain(says))
    answering(engine, there, delta(content="Hm. "), delta(content="</think>\n\nOats."), *END)
    assert run(engine, "Hi")[-1].text == "Oats."
    assert {piece.text for piece in run(engine, "Hi")} == {"Oats."}
    answering(engine, there, delta(content="Oats "), delta(content="alone."), *END)
    assert {piece.text for piece in run(engine, "Hi")} == {"Oats alone."}
    answering(engine, there, delta(content="Hm, oats"), delta("length"), "data: [DONE]\n\n")
    with pytest.raises(ModelError, match="thought for as long as its reply may be"):
        run(engine, "Hi")


def after(there: StandIn, *parts: object) -> None:
    """From now on the stand-in gives these parts of a reply, the one by which it is tried included."""
    there.answers["/v1/chat/completions"] = lambda request: (
        Reply(parts=[*parts]) if request.body.get("stream") else Reply(choices({}))
    )


def test_that_a_template_opens_thoughts_is_found_by_the_first_reply_of_all(met: Met) -> None:
    engine, there = met(plain(says))
    after(there, delta(content="Hm. "), delta(content="</think>\n\nOne, "), delta(content="two."), *END)
    assert engine.abilities.unopened
    assert {piece.text for piece in run(engine, "Hi")} == {"One, ", "One, two."}
    answering(engine, there, delta(content="Hm, oats"), delta("length"), "data: [DONE]\n\n")
    with pytest.raises(ModelError, match="thought for as long as its reply may be"):
        run(engine, "Hi")


def test_a_model_that_thinks_long_is_not_waited_for_when_it_is_met(met: Met, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assistant.llm.servers.openai_compatible.PATIENCE", 0.2)
    engine, there = met(plain(says))
    after(there, *[part for _ in range(300) for part in (delta(content="Hm. "), 0.1)], *END)
    since = time.monotonic()
    assert engine.abilities.unopened is None
    assert time.monotonic() - since < 10


def test_a_vllm_whose_template_opens_thoughts_is_known_by_its_prompt(met: Met) -> None:
    answers = vllm(says, {"y": 0.9, "n": 0.1})
    opened = {**answers, "/detokenize": lambda _: Reply({"prompt": "<|assistant|>\n<think>\n"})}
    hidden = {name: answer for name, answer in answers.items() if name != "/detokenize"}
    assert [met(given)[0].abilities.unopened for given in (answers, opened, hidden)] == [False, True, None]


@pytest.mark.parametrize("answers", [plain(says), vllm(says, {"y": 0.9})])
@pytest.mark.parametrize("reply", ["Write </think> then.", "As in\n```\n<think>\nHm.\n</think>\nOats.\n```"])
def test_who_writes_of_the_end_of_a_thought_is_not_taken_for_a_model_that_thinks(
    met: Met, answers: dict[str, Answer], reply: str
) -> None:
    engine, there = met(dict(answers))
    answering(engine, there, delta(content=reply), *END)
    run(engine, "Hi")
    answering(engine, there, delta(content="Oats, "), delta(content="and"), delta("length"), "data: [DONE]\n\n")
    assert [piece.text for piece in run(engine, "Hi") if not piece.finish] == ["Oats, ", "Oats, and"]


def test_what_a_server_separates_is_not_held_back_for_its_template(met: Met) -> None:
    engine, there = met({**vllm(says, {"y": 0.9}), "/detokenize": lambda _: Reply({"prompt": "<think>\n"})})
    answering(engine, there, delta(reasoning="Hm."), delta(content="Oats "), delta(content="alone."), *END)
    assert [piece.text for piece in run(engine, "Hi") if not piece.finish] == ["Oats ", "Oats alone."]


def test_a_reply_of_thoughts_alone_is_an_error(met: Met) -> None:
    engine, there = met(plain(says))
    answering(engine, there, delta(reasoning="Hm."), delta("length"), "data: [DONE]\n\n")
    with pytest.raises(ModelError, match="thought for as long as its reply may be; switch thinking off"):
        run(engine, "Hi")


# --- what goes wrong ------------------------------------------------------------------------------------------------


def refusing(*statuses: int, header: str = "") -> Answer:
    """A usual reply, after errors with these statuses."""
    left = list(statuses)

    def answer(request: Request) -> Reply:
        if left:
            return Reply(
                {"error": {"message": "no seat is free"}}, left.pop(0), **({"retry_after": header} if header else {})
            )
        return Reply(parts=streamed(REPLY))

    return answer


@contextmanager
def full() -> Iterator[str]:
    """The address of what takes no more connections, and refuses none: those that wait for it are too many already."""
    with ExitStack() as open_:
        listening = open_.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            waiting = open_.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


NO_ROOM = Reply({"error": {"message": "no room"}}, 500, retry_after="0")
BUSY = Reply({"error": {"message": "busy"}}, 429, retry_after="0")
MISDEEDS = {
    "slow": [Reply(parts=[4, *streamed(REPLY)])],
    "silent": [Reply(parts=[delta(content="Oat"), 4])],
    "cut off": [Reply(parts=[delta(content="Oat"), None])],
    "failing": [NO_ROOM] * 4,
    "busy": [BUSY] * 4,
    "no JSON": [Reply(parts=["data: {nonsense\n\n"])],
    "a page": [Reply("<html>Hello</html>")],
    "no choices": [Reply(parts=[event(choices=[]), "data: [DONE]\n\n"])],
    "other model": [Reply({"error": {"message": "The model `small` does not exist", "code": "model_not_found"}}, 404)],
    "key refused": [Reply({"error": {"message": "Incorrect API key provided"}}, 401)],
}


class TestWrong:
    @pytest.mark.parametrize("misdeed", MISDEEDS)
    def test_a_misdeed_fails_the_turn_with_a_sentence_and_the_next_message_is_answered(
        self, met: Met, parts: Parts, misdeed: str
    ) -> None:
        engine, there = met(plain(says), first_token_timeout=2, next_token_timeout=2)
        engine.meet()
        there.answers = misbehaving(says, *MISDEEDS[misdeed])
        asked = Turn(QUESTION, choices=ALONE)
        *_, failed = flow.run(asked, replace(parts, llm=engine), Event())
        assert failed.status == "failed"
        assert there.address in failed.error
        assert failed.error.endswith(".")
        assert "\n" not in failed.error
        *_, turn = flow.run(asked, replace(parts, llm=engine), Event())
        assert (turn.status, turn.error) == ("done", "")
        assert turn.answer
        assert REPLY.removesuffix(".") in turn.answer.text

    @pytest.mark.parametrize("statuses", [(429,), (500, 503)])
    def test_a_refusal_before_the_first_byte_is_tried_again(self, met: Met, statuses: tuple[int, ...]) -> None:
        engine, there = met(plain(says))
        engine.meet()
        there.answers["/v1/chat/completions"] = refusing(*statuses, header="0.1")
        before = len(there.asked)
        assert written(engine) == REPLY
        assert len(there.asked) == before + len(statuses) + 1

    def test_one_that_names_no_time_is_left_alone_longer_each_time(self, met: Met) -> None:
        engine, there = met(plain(says))
        engine.meet()
        there.answers["/v1/chat/completions"] = refusing(429, 503)
        since = time.perf_counter()
        assert written(engine) == REPLY
        assert time.perf_counter() - since >= 0.5 + 1.0

    @pytest.mark.parametrize(
        ("status", "header", "told"),
        [
            (429, "0", r"takes no more requests just now \(429: no seat is free\); wait a moment"),
            (500, "0", r"failed \(500: no seat is free\); its log has the details"),
            (429, "3600", "takes no more requests just now"),
            (418, "", r"refused the request \(418: no seat is free\)"),
        ],
    )
    def test_what_lasts_is_told(self, met: Met, status: int, header: str, told: str) -> None:
        engine, there = met(plain(says))
        engine.meet()
        there.answers["/v1/chat/completions"] = refusing(*[status] * 9, header=header)
        with pytest.raises(ModelError, match=told):
            run(engine, "Hi")

    @pytest.mark.parametrize(
        "sent",
        [
            (delta(content="Oat drink"), None),
            (delta(content="Oat drink"), "data: [DONE]\n\n"),
            (delta(content="Oat drink"), event(error={"message": "out of memory"})),
            (delta(content="Oat drink"), "data: {nonsense\n\n"),
            (delta(content="Oat drink"), 5),
        ],
        ids=["cut", "no end", "error", "no JSON", "silent"],
    )
    def test_a_reply_that_breaks_off_is_kept_and_never_begun_anew(
        self, met: Met, parts: Parts, sent: tuple[object, ...]
    ) -> None:
        engine, there = met(plain(says), next_token_timeout=1)
        answering(engine, there, *sent)
        before = len(there.asked)
        *_, turn = flow.run(Turn(QUESTION, choices=ALONE), replace(parts, llm=engine), Event())
        assert turn.status == "failed"
        assert there.address in turn.error
        assert turn.error.endswith(("ask again.", "(llm.server)."))
        assert turn.answer
        assert turn.answer.text == "Oat drink"
        assert len(there.asked) == before + 1

    def test_one_that_is_slow_to_begin_is_waited_for_and_not_for_ever(self, met: Met) -> None:
        engine, there = met(plain(says), first_token_timeout=3, next_token_timeout=0.5)
        answering(engine, there, 1, *streamed(REPLY))
        assert written(engine) == REPLY
        answering(engine, there, 6, *streamed(REPLY))
        with pytest.raises(ModelError, match=r"sent nothing for (3 seconds|too long); see what it does"):
            run(engine, "Hi")

    def test_one_that_takes_no_connection_is_not_waited_for_longer_than_is_said(self) -> None:
        async def asked(address: str) -> None:
            await Wire(address, connect=0.3).models()

        with full() as address:
            since = time.perf_counter()
            with pytest.raises(ModelError, match=r"No server answers at http.*; start it"):
                apart(lambda: asyncio.run(asked(address)))
            assert 0.3 <= time.perf_counter() - since < 10

    def test_how_long_is_waited_where_nothing_else_is_set(self) -> None:
        llm = LLMSettings()
        assert (CONNECT, llm.first_token_timeout, llm.next_token_timeout) == (5, 600, 60)

    def test_a_stopped_turn_closes_its_request_at_once(self, met: Met) -> None:
        engine, there = met(plain(says))
        answering(engine, there, *[part for n in range(400) for part in (delta(content=f" {n}"), 0.05)], *END)
        stop = Event()
        Timer(0.5, stop.set).start()
        since = time.perf_counter()
        last = run(engine, "Hi", stop)[-1]
        assert last.finish == "cancelled"
        assert last.text.startswith(" 0 1")
        assert time.perf_counter() - since < 10
        assert there.closed.wait(5)

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            ("<html>Hello</html>", "doesn't speak as an OpenAI-compatible server does; correct its address"),
            ("{nonsense", "doesn't speak as an OpenAI-compatible server does"),
            ([], "doesn't speak as an OpenAI-compatible server does"),
            ({"data": []}, "has no model 'mine'|lists none|ended|Which model"),
        ],
    )
    def test_what_is_no_such_server_is_told(self, met: Met, content: object, told: str) -> None:
        engine, _ = met({"/v1/models": lambda _: Reply(content)})
        with pytest.raises(ModelError, match=told):
            engine.meet()

    def test_a_connection_that_the_server_had_closed_is_made_anew_once(self, met: Met) -> None:
        hang_up = Reply(status=0)
        engine, there = met(plain(says))
        engine.meet()
        there.answers.update(misbehaving(says, hang_up))
        assert written(engine) == REPLY
        there.answers.update(misbehaving(says, hang_up, hang_up))
        before = len(there.asked)
        with pytest.raises(ModelError, match="broke off its reply"):
            run(engine, "Hi")
        assert len(there.asked) == before + 2

    @pytest.mark.parametrize("reply", [{"choices": []}, {"choices": None}, {}])
    def test_an_answer_without_choices_is_no_reply(self, met: Met, reply: Json) -> None:
        engine, there = met(plain(says))
        answering(engine, there, event(**reply), "data: [DONE]\n\n")
        with pytest.raises(ModelError, match="broke off its reply"):
            run(engine, "Hi")

    def test_a_wrong_model_is_told_with_those_there_are(self, met: Met) -> None:
        engine, _ = met(plain(says, models=("small", "large")), model="huge")
        with pytest.raises(ModelError, match=r"has no model 'huge'; choose one of its own .* it has small, la"):
            engine.meet()
        assert {written(met(plain(says), model=name)[0]) for name in ("auto", "default", "small")} == {REPLY}
        engine, _ = met(plain(says, models=("small", "large")))
        with pytest.raises(ModelError, match=r"Which model .* choose one .*: it has small, large"):
            engine.meet()

    def test_a_model_that_vanished_is_told(self, met: Met) -> None:
        answers = ollama(says)
        engine, there = met(answers)
        engine.meet()
        there.answers["/api/chat"] = lambda _: Reply({"error": "model 'small:latest' not found"}, 404)
        with pytest.raises(ModelError, match=r"has no such model any more.*choose another"):
            run(engine, "Hi")

    def test_a_key_that_is_wrong_or_missing_is_told_and_never_shown(self, met: Met) -> None:
        _, there = met(plain(says), key=KEY)
        for key, told in (("", "wants a key"), ("wrong-key", "refuses the key")):
            engine = Server(LLMSettings(backend="server", server=there.address, api_key=key))
            with pytest.raises(ModelError, match=told) as refused:
                engine.meet()
            assert "SEQUITUR_LLM__API_KEY" in str(refused.value)
            assert "wrong-key" not in str(refused.value)
            engine.close()

    def test_an_error_that_repeats_the_key_is_shown_without_it(self, met: Met) -> None:
        engine, there = met(plain(says), key=KEY)
        engine.meet()
        there.answers["/v1/chat/completions"] = lambda _: Reply({"error": {"message": f"{KEY} is in arrears"}}, 402)
        with pytest.raises(ModelError, match=r"402: \.\.\. is in arrears") as refused:
            run(engine, "Hi")
        assert KEY not in str(refused.value)

    def test_a_certificate_that_is_wrong_is_told(self, tmp_path: Path) -> None:
        with StandIn(plain(says), certificate=self_signed(tmp_path)) as there:
            engine = Server(LLMSettings(backend="server", server=there.address))
            with pytest.raises(ModelError, match=r"The certificate of https://.* can't be trusted .*SSL_CERT_FILE"):
                engine.meet()
            engine.close()

    def test_a_context_too_small_to_work_with_is_told(self, met: Met) -> None:
        engine, _ = met(ollama(says, context=512))
        with pytest.raises(ModelError, match="512 tokens a request, and at least 1,024 are needed; start it with more"):
            engine.meet()

    @pytest.mark.parametrize(
        ("address", "told"),
        [
            ("", "No server is named; set llm.server"),
            ("ftp://host", "is no address"),
            ("http://", "is no address"),
            ("http://host:port", "is no address"),
            ("http://me:secret@host", "may hold no name and no key"),
        ],
    )
    def test_an_address_that_is_none_is_refused(self, address: str, told: str) -> None:
        with pytest.raises(ModelError, match=told) as refused:
            Server(LLMSettings(backend="server", server=address))
        assert "secret" not in str(refused.value)

    def test_a_request_under_way_fails_when_the_engine_is_closed(self, met: Met) -> None:
        engine, there = met(plain(says))
        answering(engine, there, delta(content="Oats"), 8, *END)
        stream = engine.stream(ask("Hi"), Options(), Event())
        assert next(stream).text == "Oats"
        engine.close()
        with pytest.raises(ModelError, match="was unloaded; start again"):
            next(stream)

    def test_a_closed_engine_says_so(self, met: Met) -> None:
        engine, _ = met(plain(says))
        engine.close()
        engine.close()
        with pytest.raises(ModelError, match="was unloaded"):
            engine.count(ask("Hi"))

    def test_a_closed_engine_says_so_of_what_it_has_counted_before(self, met: Met) -> None:
        engine, _ = met(vllm(says, {"y": 0.9}))
        engine.count(ask("Hi"))
        engine.close()
        stop = Event()
        Timer(3, stop.set).start()
        for call in (
            lambda: run(engine, "Hi", stop),
            lambda: engine.complete([ask("Hi")], Options(), stop),
            lambda: engine.choose([ask("Hi")], ("yes", "no"), stop),
            lambda: engine.score([(ask("Hi"), "ab")], stop),
        ):
            with pytest.raises(ModelError, match="was unloaded"):
                call()


# --- how it is chosen and found ---------------------------------------------------------------------------------------


def settings_at(address: str, folder: Path, **llm: object) -> Settings:
    chosen = LLMSettings.model_validate({"backend": "server", "server": address, **llm})
    return Settings(data_dir=folder, hub=False, llm=chosen)


def test_a_server_that_is_down_at_the_start_answers_once_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "RETRY_SECONDS", 0.0)
    with StandIn(plain(says)) as there:
        answers, there.answers = there.answers, {}
        told: list[str] = []
        engine = choice.load_or_fall_back(settings_at(there.address, tmp_path), silent, told.append)
        [notice] = told
        assert engine.name == there.address
        assert notice.endswith("The next message tries again.")
        with pytest.raises(ModelError, match="doesn't speak"):
            run(engine, "Hi")
        there.answers = answers
        assert run(engine, "Hi")[-1].text == REPLY
        assert engine.name == "small"
        engine.close()


def test_where_nothing_may_fall_back_a_server_that_is_down_is_an_error(tmp_path: Path) -> None:
    with StandIn({}) as there:
        address = there.address
    with pytest.raises(ModelError, match=r"No server answers at .*; start it, or correct its address"):
        choice.load(settings_at(address, tmp_path), silent)


def test_the_key_may_come_from_the_environment_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQUITUR_LLM__API_KEY", KEY)
    settings = load()
    assert settings.llm.api_key.get_secret_value() == KEY
    assert KEY not in repr(settings) + settings.model_dump_json()


def test_servers_of_this_computer_are_found_side_by_side() -> None:
    def slow(_: Request) -> Reply:
        time.sleep(40)
        return Reply({"data": []})

    with StandIn(ollama(says)) as one, StandIn(lm_studio(says)) as other, StandIn({"/v1/models": slow}) as late:
        since = time.perf_counter()
        found = apart(lambda: asyncio.run(local_servers([one.address, late.address, other.address])))
        assert time.perf_counter() - since < 30
    assert [(server.kind, server.address, server.models) for server in found] == [
        ("Ollama", one.address, ("small:latest",)),
        ("LM Studio", other.address, ("small",)),
    ]


def test_each_kind_is_looked_for_where_it_usually_is() -> None:
    ports = {kind.KIND: kind.PORT for kind in KINDS}
    assert ports == {"Ollama": 11434, "LM Studio": 1234, "llama-server": 8080, "vLLM": 8000}


def test_an_address_is_the_same_however_it_is_typed() -> None:
    for typed in ("host:8080", "http://host:8080/", " http://host:8080/v1 ", "http://host:8080/v1/models"):
        assert root_of(typed) == "http://host:8080"
    assert root_of("https://host/api/v1/") == "https://host/api"
    assert root_of("[::1]:8080") == "http://[::1]:8080"


@pytest.mark.parametrize(
    "typed", ["http://[::1", "192.168.0.300:11434", "ftp://host", "http://", "host:0", "host:99999"]
)
def test_what_is_no_address_is_told_in_a_sentence(typed: str) -> None:
    with pytest.raises(ModelError, match=r"is no address of a server; write it as http://127\.0\.0\.1:11434"):
        root_of(typed)


def test_a_likelihood_that_stop_overtook_is_none(met: Met) -> None:
    engine, _ = met(vllm(says, {"y": 0.6}))
    stop = Event()
    stop.set()
    assert engine.score([(ask("Hi"), "ab")], stop) == [-math.inf]
    assert engine.choose([ask("Hi")], ("yes", "no"), stop)[0].probabilities == {"yes": 0.5, "no": 0.5}


def test_the_command_line_lists_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with StandIn(ollama(says)) as there:
        monkeypatch.setattr(Ollama, "PORT", int(there.address.rsplit(":", 1)[1]))
        shown = apart(lambda: CliRunner().invoke(app, ["models", "list", "--servers"], env={"COLUMNS": "200"}))
    assert shown.exit_code == 0
    assert ["Ollama", there.address, "small:latest"] in [line.split() for line in shown.output.splitlines()]
