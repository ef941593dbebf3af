"""A real vLLM, which runs from an environment of its own, since it needs another torch.

VLLM_PYTHON names that environment's interpreter; docs/servers.md says how to make it. Without it these are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from llm_contract import LLMContract, ask, run

from assistant import turn as flow
from assistant.errors import ModelError
from assistant.llm.engines.server import Server
from assistant.protocols import LLM, Parts
from assistant.settings import LLMSettings
from assistant.types import Choices, Options, Turn
from tests.servers import KEY, Running, vllm_server
from tests.templates import OPENED, folder_with

PYTHON = os.environ.get("VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(not PYTHON, reason="VLLM_PYTHON names no interpreter that has vLLM (docs/servers.md)"),
    # it may take minutes to start on a CPU
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def real(smollm_folder: Path) -> Iterator[Running]:
    with vllm_server(Path(PYTHON), smollm_folder) as running:
        yield running


@pytest.fixture(scope="module")
def at_real(real: Running) -> Iterator[Server]:
    engine = Server(LLMSettings(backend="server", server=real.address, api_key=KEY))
    engine.meet()
    yield engine
    engine.close()


class TestContract(LLMContract):
    @pytest.fixture
    def llm(self, at_real: Server) -> LLM:
        return at_real


def test_it_is_known_with_all_that_it_can_do(at_real: Server) -> None:
    can = at_real.abilities
    assert (at_real.kind, at_real.name) == ("vLLM", "smollm2-135m")
    assert (can.choose, can.score, can.stream, can.cancel, can.context) == ("exact", True, True, True, 1024)


def test_that_its_template_opens_no_thought_is_known(at_real: Server) -> None:
    assert at_real.abilities.unopened is False


def test_of_one_whose_template_opens_thoughts_nothing_is_shown_before_they_end(
    smollm_folder: Path, tmp_path: Path
) -> None:
    with vllm_server(Path(PYTHON), folder_with(OPENED, smollm_folder, tmp_path / "opened")) as running:
        engine = Server(LLMSettings(backend="server", server=running.address, api_key=KEY))
        assert engine.abilities.unopened
        shown = list[str]()
        with pytest.raises(ModelError, match="thought for as long as its reply may be"):
            shown.extend(piece.text for piece in engine.stream(ask("Hi"), Options(8), Event()))
        assert set(shown) <= {""}
        engine.close()


def test_it_takes_the_salt_of_a_user(at_real: Server) -> None:
    mine = at_real.salted("somebody")
    assert run(mine, "Hi", max_tokens=4)[-1].completion_tokens
    [found] = mine.choose([ask("Is water wet?")], ("yes", "no"), Event())
    assert sum(found.probabilities.values()) == pytest.approx(1)
    [score] = mine.score([(ask("Hi"), "Hello.")], Event())
    assert score < 0


def test_a_whole_turn_is_answered_and_cited(at_real: Server, parts: Parts) -> None:
    choices = Choices(strategy="concat", loop="retrieve_then_generate")
    *_, turn = flow.run(Turn("What is lactose?", choices=choices), replace(parts, llm=at_real), Event())
    assert (turn.status, turn.error, turn.events) == ("done", "", ())
    assert turn.model == at_real.name
    assert turn.answer
    assert "milk" in turn.answer.text
    assert turn.citations


def test_a_key_that_is_wrong_is_told(real: Running) -> None:
    engine = Server(LLMSettings(backend="server", server=real.address, api_key="wrong"))
    with pytest.raises(ModelError, match=r"refuses the key; give it one that it knows \(llm\.api_key"):
        engine.meet()
    engine.close()
