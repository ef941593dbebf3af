"""`mcp`: the SDK's own client against our server, in memory on scripted turns, and over standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent

from assistant.api.answers import API_CONVERSATION, Answers
from assistant.api.mcp import server
from assistant.types import Choices
from assistant.web.page import House
from tests.browser.fake import Loaded, Script, house

T = TypeVar("T")
ROOT = Path(__file__).parents[1]


class Given:
    """The server on scripted turns, and how often it was told to load."""

    def __init__(self, folder: Path) -> None:
        self.script, self.loading, self.started = Script(), Loaded(), 0
        self.house: House = house(folder, self.script, self.loading)[0]
        self.house.ptkb.add("ann", "ann likes oats.")
        self.server = server(Answers(self.house.chat, self.house.runs, lambda _: Choices()), "ann", self.start)

    def start(self) -> None:
        self.started += 1


@pytest.fixture
def given(tmp_path: Path) -> Given:
    return Given(tmp_path)


def ran(work: Callable[[], Awaitable[T]]) -> T:
    """What it returns. It runs in a thread of its own: a browser that is open keeps a loop running in this one."""

    async def wait() -> T:
        return await work()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, wait()).result()


def text(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_ask_answers_with_the_sources(given: Given, mode: str) -> None:
    told: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async def work() -> CallToolResult:
        async with Client(given.server, mode=mode) as client:
            [tool] = (await client.list_tools()).tools
            assert tool.name == "ask"
            assert list(tool.input_schema["properties"]) == ["question"]
            return await client.call_tool("ask", {"question": "What is a good diet?"}, progress_callback=note)

    result = ran(work)
    assert not result.is_error
    reply, sources, missing = text(result).split("\n\n")
    assert reply.startswith("Lentils, beans, tofu and eggs give you protein without meat. [1]")
    assert sources.startswith("Sources:\n[1] A vegetarian plate: Lentils, beans, tofu and eggs are rich in protein.")
    assert "[3] Fibre and satiety, which says a part: Most adults" in sources
    assert missing == "Not found in the sources:\nA good diet also makes you happy."
    assert given.started == 1
    assert told
    assert not given.house.conversations.list("ann")


@pytest.mark.parametrize(
    ("question", "error"), [("Fail, please.", "ran out of memory"), ("   ", "The message is empty")]
)
def test_what_cant_be_answered_is_told_in_a_sentence(given: Given, question: str, error: str) -> None:
    async def work() -> CallToolResult:
        async with Client(given.server) as client:
            return await client.call_tool("ask", {"question": question})

    result = ran(work)
    assert result.is_error
    assert error in text(result)


def test_questions_asked_side_by_side_are_answered_in_turn(given: Given) -> None:
    async def work() -> list[CallToolResult]:
        async with Client(given.server) as client:
            asked = (client.call_tool("ask", {"question": "What is a good diet?"}) for _ in range(3))
            return await asyncio.gather(*asked)

    assert not any(result.is_error for result in ran(work))


def test_a_client_that_gives_up_stops_the_answer(given: Given) -> None:
    given.script.go.clear()

    async def work() -> None:
        async with Client(given.server, mode="legacy") as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.call_tool("ask", {"question": "What is a good diet?"}), 1)
            for _ in range(200):
                if not given.house.runs.busy("ann", API_CONVERSATION):
                    return
                await asyncio.sleep(0.05)

    ran(work)
    assert not given.house.runs.busy("ann", API_CONVERSATION)


def test_what_is_asked_straight_after_giving_up_is_answered(given: Given) -> None:
    given.script.go.clear()

    async def work() -> CallToolResult:
        async with Client(given.server, mode="legacy") as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.call_tool("ask", {"question": "What is a good diet?"}), 1)
            asyncio.get_running_loop().call_later(0.5, given.script.go.set)
            return await client.call_tool("ask", {"question": "What is a good diet?"})

    assert not ran(work).is_error


def test_the_command_speaks_the_protocol_and_tells_what_is_missing(tmp_path: Path) -> None:
    """Models that can't be had are what is asked for, so that nothing is fetched."""
    settings = tmp_path / "settings.toml"
    settings.write_text('[llm]\nmodel = "/nowhere/none.gguf"\n[embedder]\nmodel = "/nowhere/none"\n')
    command = ["-m", "assistant", "mcp", "--data-dir", str(tmp_path), "--settings", str(settings)]

    async def work() -> list[CallToolResult]:
        with (tmp_path / "log").open("w") as errors:
            started = StdioServerParameters(command=sys.executable, args=command, cwd=str(ROOT))
            async with Client(stdio_client(started, errlog=errors)) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == ["ask"]
                return [await client.call_tool("ask", {"question": said}) for said in ("What is a good diet?", "  ")]

    missing, empty = ran(work)
    assert missing.is_error
    assert "/nowhere/none" in text(missing)
    assert empty.is_error
