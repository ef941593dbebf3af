"""Finds out what a server can do, or why it cannot be used, before anybody relies on it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from assistant.errors import ModelError
from assistant.llm.servers.discovery import ANY_MODEL, kind_and_models, meet, models
from assistant.llm.servers.openai_compatible import Abilities, display_name
from assistant.llm.servers.wire import CONNECT, Wire
from assistant.settings import LLMSettings

# Seconds for all that is asked: a model may have to be loaded for the first word.
PATIENCE = 120.0
# And for a look at whether a server is still there.
_GLANCE = 3.0


@dataclass(frozen=True, slots=True)
class Probed:
    """A server as it was found: its kind, its models, and what it can do with `model`; or the `reason` why not."""

    kind: str = ""
    models: tuple[str, ...] = ()
    model: str = ""
    abilities: Abilities | None = None
    reason: str = ""


async def probe(llm: LLMSettings) -> Probed:
    """What the server of these settings can do; asks it for a word or two, where it is told which model is meant."""
    probed = Probed()
    try:
        wire = _wire(llm, PATIENCE)
    except ModelError as error:
        return Probed(reason=str(error))
    try:
        async with asyncio.timeout(PATIENCE):
            kind, listed = await kind_and_models(wire, llm.model)
            probed = Probed(kind.KIND, tuple(str(entry["id"]) for entry in listed))
            if llm.model in ANY_MODEL and len(listed) > 1:
                return _with_reason(probed, f"It has {len(listed)} models; choose one of them.")
            explicit_context = llm.context if "context" in llm.model_fields_set else None
            server = await meet(wire, llm.model, explicit_context, llm.context)
            return Probed(probed.kind, probed.models, server.name, server.abilities)
    except ModelError as error:
        return _with_reason(probed, str(error))
    except TimeoutError:
        return _with_reason(
            probed, f"{wire.root} took over {PATIENCE:.0f} seconds for a few words; see what it does, and test again."
        )
    finally:
        await wire.close()


async def absences(servers: Sequence[LLMSettings]) -> list[str]:
    """For each of the servers why it can't be reached, "" where it answers; all are asked at once."""
    return list(await asyncio.gather(*map(_absence, servers)))


async def only_model(llm: LLMSettings) -> str:
    """What the only model of a server is called; "" where it has several, or can't be asked.

    Raises:
        ModelError: the address is none.
    """
    wire = _wire(llm, _GLANCE, connect=1.0)
    try:
        async with asyncio.timeout(_GLANCE):
            _, listed = await kind_and_models(wire, llm.model)
    except (ModelError, TimeoutError):
        return ""
    finally:
        await wire.close()
    return display_name(str(listed[0]["id"])) if len(listed) == 1 else ""


async def _absence(llm: LLMSettings) -> str:
    try:
        wire = _wire(llm, _GLANCE, connect=1.0)
    except ModelError as error:
        return str(error)
    try:
        async with asyncio.timeout(_GLANCE):
            await models(wire, llm.model)
    except ModelError as error:
        return str(error)
    except TimeoutError:
        return f"The server at {wire.root} doesn't answer; see what it does."
    finally:
        await wire.close()
    return ""


def _wire(llm: LLMSettings, first_word_seconds: float, connect: float = CONNECT) -> Wire:
    return Wire(llm.server, llm.api_key.get_secret_value(), first_word_seconds, connect)


def _with_reason(probed: Probed, reason: str) -> Probed:
    return Probed(probed.kind, probed.models, reason=reason)
