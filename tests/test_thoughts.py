"""What a model thinks is no part of its reply, whoever runs it: real templates that open a thought on each engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event

import pytest
from llm_contract import ask, run

from assistant.errors import ModelError
from assistant.llm import thoughts
from assistant.llm.backends.llama_cpp import LlamaCpp
from assistant.llm.engines.server import Server
from assistant.llm.thoughts import without_thought
from assistant.protocols import Engine, silent
from assistant.settings import LLMSettings, load
from assistant.types import Completion, Options
from tests.servers import KEY, llama_server
from tests.templates import CLOSED, OPENED, TOLD, file_with, folder_with, openvino_with

CONTEXT = LLMSettings(context=1024)
Making = Callable[[str], Engine]


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("", ""),
        (" <thi", ""),
        ("<think>Hm.", ""),
        ("<think>\nHm.\n</think>\n\nOats.", "Oats."),
        ("Hm.\n</think>\n\nOats.", "Oats."),
        ("Is 1 < 2? <thinking> is no tag.", "Is 1 < 2? <thinking> is no tag."),
    ],
)
def test_the_reply_is_what_comes_after_the_thought(text: str, reply: str) -> None:
    assert without_thought(Completion(text), Options()) == Completion(reply)


def test_a_thought_that_never_ends_is_told_and_what_keeps_to_a_schema_is_left_as_it_is() -> None:
    for finish in ("length", "stop"):
        with pytest.raises(ModelError, match="thought for as long as its reply may be"):
            without_thought(Completion("<think>Hm.", finish=finish), Options())
    assert without_thought(Completion("<think>", finish="stop"), Options(stop=("\n",))).text == ""
    said = Completion('{"tag": "</think>"}', finish="length")
    assert without_thought(said, Options(schema="{}")) == said


def test_a_prompt_that_opens_no_thought_is_left_as_it_is() -> None:
    assert thoughts.with_thought_closed("<think>Hm.</think>\nassistant\n") == "<think>Hm.</think>\nassistant\n"


def test_a_reply_that_its_model_ends_without_a_thought_is_shown_then() -> None:
    of_server = thoughts.ThoughtFilter()
    of_server.unopened = True
    assert of_server.reply_text("Oats.", over=False, apart=False) == ""
    assert of_server.reply_text("Oats.", over=True, apart=False) == "Oats."


# --- real engines ---------------------------------------------------------------------------------------------------


@pytest.fixture(params=["llama.cpp", "openvino", "transformers"])
def making(request: pytest.FixtureRequest, smollm_path: Path, tmp_path: Path) -> Iterator[Making]:
    """Makes an engine of SmolLM2 with this chat template."""
    made: list[Engine] = []

    def llama_cpp(template: str) -> Engine:
        return LlamaCpp(file_with(template, smollm_path, tmp_path / f"{len(made)}.gguf"), CONTEXT)

    def openvino(template: str) -> Engine:
        pytest.importorskip("openvino_genai")
        from assistant.llm.backends.openvino import OpenVino
        from assistant.llm.engines.openvino_model import converted

        source = converted(smollm_path, load(), silent)  # once for all tests, which takes its time
        return OpenVino(openvino_with(template, source, tmp_path / f"{len(made)}"), CONTEXT)

    def transformers(template: str) -> Engine:
        from assistant.llm.engines.transformers import Transformers

        source = request.getfixturevalue("smollm_folder")
        return Transformers(folder_with(template, source, tmp_path / f"{len(made)}"), CONTEXT)

    makers = {"llama.cpp": llama_cpp, "openvino": openvino, "transformers": transformers}

    def make(template: str) -> Engine:
        made.append(makers[request.param](template))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


@pytest.mark.model
@pytest.mark.timeout(600)
def test_a_thought_that_a_template_opens_is_over_before_the_model_goes_on(making: Making) -> None:
    question = "Which drink holds no lactose?"
    opened, closed, told = (run(making(one), question, max_tokens=12)[-1] for one in (OPENED, CLOSED, TOLD))
    assert opened.text
    assert (opened.text, opened.prompt_tokens) == (closed.text, closed.prompt_tokens)
    assert (opened.text, opened.prompt_tokens) == (told.text, told.prompt_tokens)


@pytest.fixture
def served(smollm_path: Path, tmp_path: Path) -> Iterator[Callable[[str], Server]]:
    """An engine on a real llama-server, which has SmolLM2 with this chat template."""
    with ExitStack() as stack:

        def serve(template: str) -> Server:
            running = stack.enter_context(llama_server(file_with(template, smollm_path, tmp_path / "served.gguf")))
            engine = Server(LLMSettings(backend="server", server=running.address, api_key=KEY))
            stack.callback(engine.close)
            return engine

        yield serve


@pytest.mark.model
def test_a_real_llama_server_whose_template_opens_thoughts_is_known_and_nothing_of_one_is_shown(
    served: Callable[[str], Server],
) -> None:
    engine = served(OPENED)
    assert engine.abilities.unopened
    shown = list[str]()
    with pytest.raises(ModelError, match="thought for as long as its reply may be"):
        shown.extend(piece.text for piece in engine.stream(ask("Hi"), Options(8), Event()))
    assert set(shown) <= {""}


@pytest.mark.model
def test_a_real_llama_server_whose_template_is_told_not_to_think_answers(served: Callable[[str], Server]) -> None:
    engine = served(TOLD)
    assert engine.abilities.unopened is False
    assert run(engine, "Hi", max_tokens=8)[-1].text
