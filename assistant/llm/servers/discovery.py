"""Which kind of server answers, which of its models is meant, and which servers run on this computer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from assistant.errors import ModelError
from assistant.llm.servers.llama_server import LlamaServer
from assistant.llm.servers.lm_studio import LmStudio
from assistant.llm.servers.ollama import Ollama
from assistant.llm.servers.openai_compatible import OpenAICompatible
from assistant.llm.servers.vllm import Vllm
from assistant.llm.servers.wire import Json, UnlistedError, Wire

KINDS: tuple[type[OpenAICompatible], ...] = (Vllm, LlamaServer, Ollama, LmStudio)
# The names that stand for the only model of a server: what llm.model is where nobody chose, now and formerly.
ANY_MODEL = ("auto", "default")
_MAX_NAMES = 20
# What is on this computer can be reached at once, and tells what it is soon, even if it is busy.
_GLANCE, _PATIENCE = 1.0, 5.0


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server on this computer."""

    kind: str
    address: str
    models: tuple[str, ...]


async def meet(wire: Wire, model: str, context: int | None, default_context: int) -> OpenAICompatible:
    """The server, asked what it can do with this model; see `OpenAICompatible`.

    Raises:
        ModelError: it doesn't answer, has no such model, or can't do what is needed.
    """
    kind, listed = await kind_and_models(wire, model)
    entry = _entry(listed, model, wire.root)
    server = kind(wire, entry["id"], entry, context, default_context)
    await server.probe()
    return server


async def kind_and_models(wire: Wire, model: str) -> tuple[type[OpenAICompatible], Sequence[Json]]:
    """What kind of server it is, as far as it can be told, and its models that can write, if it lists any.

    Raises:
        ModelError: it can't be asked, or has no list and the model isn't named.
    """
    listed = await models(wire, model)
    for kind in KINDS:
        if await kind.recognises(wire, listed):
            return kind, await kind.writers(wire, listed)
    return OpenAICompatible, listed


async def models(wire: Wire, model: str) -> Sequence[Json]:
    """What the server lists; nothing where it has no list, but the model is named.

    Raises:
        ModelError: it can't be asked, or has no list and the model isn't named.
    """
    try:
        return await wire.models()
    except UnlistedError:
        if model in ANY_MODEL:
            raise
        return []


async def local_servers(addresses: Sequence[str] = ()) -> list[LocalServer]:
    """The servers that answer where those of their kind usually do, or at these addresses, all asked at once."""
    urls = addresses or [f"http://127.0.0.1:{kind.PORT}" for kind in KINDS]
    wires = [Wire(address, connect=_GLANCE) for address in urls]  # making one takes time that none should wait for
    servers = await asyncio.gather(*map(_server_at, wires))
    return [server for server in servers if server]


async def _server_at(wire: Wire) -> LocalServer | None:
    try:
        async with asyncio.timeout(_PATIENCE):
            kind, listed = await kind_and_models(wire, ANY_MODEL[0])
    except (ModelError, TimeoutError):
        return None
    finally:
        await wire.close()
    return LocalServer(kind.KIND, wire.root, tuple(str(model["id"]) for model in listed))


def _entry(listed: Sequence[Json], model: str, root: str) -> Json:
    """What is listed of the model that is meant. One that lists nothing may have any."""
    entries = {str(entry["id"]): entry for entry in listed}
    for name in (model, f"{model}:latest"):
        if name in entries:
            return entries[name]
    if model in ANY_MODEL and len(entries) == 1:
        return listed[0]
    if model not in ANY_MODEL and not entries:
        return {"id": model}
    names = [*list(entries)[:_MAX_NAMES], *(["..."] if len(entries) > _MAX_NAMES else [])]
    available = f"it has {', '.join(names)}" if names else "it lists none, so fetch or load one there"
    if model in ANY_MODEL:
        raise ModelError(f"Which model of {root} is meant is not said; choose one (llm.model): {available}.")
    raise ModelError(f"The server at {root} has no model '{model}'; choose one of its own (llm.model): {available}.")
