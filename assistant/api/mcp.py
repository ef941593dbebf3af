"""A server of the Model Context Protocol with one tool, `ask`, which answers a question with its sources."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from assistant.api.answers import Answers, follow, progress
from assistant.errors import SequiturError
from assistant.types import Turn
from assistant.wording.replies import reply
from assistant.wording.views import sources, unsourced_kind

INSTRUCTIONS = (
    "Answers questions from a library of sources and from the user's own documents, with regard to what the user has "
    "told about themselves. Numbers such as [1] stand for the sources listed beneath the answer."
)

_PATIENCE = 60.0  # seconds


def server(answers: Answers, user: str, start: Callable[[], None]) -> MCPServer:
    """The server, which asks as this user; `start` is called when it begins to serve, and may load things meanwhile."""
    turns = asyncio.Lock()

    @asynccontextmanager
    async def lifespan(_: MCPServer) -> AsyncIterator[None]:
        start()
        yield

    async def ask(question: str, context: Context) -> str:
        """Answer a question from the library and the user's documents, with the sources that say so."""
        async with turns:
            # one that a client gave up may still be ending
            await asyncio.to_thread(answers.runs.end, user, _PATIENCE)
            try:
                return reply_with_sources(await _answer(answers, user, question, context))
            except SequiturError as error:
                raise ToolError(str(error)) from error

    mcp_server = MCPServer(
        "sequitur", title="Sequitur", instructions=INSTRUCTIONS, log_level="WARNING", lifespan=lifespan
    )
    mcp_server.add_tool(ask)
    return mcp_server


async def _answer(answers: Answers, user: str, question: str, context: Context) -> Turn:
    last_line = ""
    run = await answers.begin(user, question)
    async with aclosing(follow(run)) as turns:
        steps = 0
        async for turn in turns:
            if (line := progress(turn)) != last_line:
                last_line, steps = line, steps + 1
                await context.report_progress(steps, message=line)
    if turn.status != "done":
        raise SequiturError(turn.error or "The answer was stopped before it was done.")
    return turn


def reply_with_sources(turn: Turn) -> str:
    """The reply with its sources, and what of it no source says."""
    source_lines = [
        f"[{source.n}] {source.title}{', which says a part' if source.partly else ''}: {source.quote}"
        for source in sources(turn)
    ]
    unsupported = [
        sentence.text for sentence in turn.sentences if sentence.state == "not" and unsourced_kind(turn) != "own"
    ]
    parts = [
        reply(turn.answer),
        _titled_list("Sources", source_lines),
        _titled_list("Not found in the sources", unsupported),
    ]
    return "\n\n".join(part for part in parts if part)


def _titled_list(title: str, lines: list[str]) -> str:
    return "\n".join([f"{title}:", *lines]) if lines else ""
