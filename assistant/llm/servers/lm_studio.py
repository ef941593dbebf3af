"""LM Studio: OpenAI-compatible, without probabilities; its own API tells the context of what is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from assistant.llm.servers.openai_compatible import OpenAICompatible
from assistant.llm.servers.wire import Json, Wire


class LmStudio(OpenAICompatible):
    """A model of LM Studio."""

    KIND, PORT, CANCELS = "LM Studio", 1234, True

    @classmethod
    async def recognises(cls, wire: Wire, listed: Sequence[Json]) -> bool:  # noqa: ARG003
        """Its own list of models tells how long each one's context may be."""
        return any("max_context_length" in one for one in await _models(wire))

    @classmethod
    async def writers(cls, wire: Wire, listed: Sequence[Json]) -> Sequence[Json]:
        """All but those that make vectors of texts."""
        others = {one["id"] for one in await _models(wire) if one.get("type") == "embeddings"}
        return [one for one in listed if one["id"] not in others]

    async def probe(self) -> None:
        """As of every server; a model that was loaded for its first word has a context only then.

        Raises:
            ModelError: it can't answer at all, or has less context than is set.
        """
        await super().probe()
        self.abilities = replace(self.abilities, context=await self._context())

    async def longest(self) -> int | None:
        """The context that the model was loaded with; one that is not loaded yet may get another than it could."""
        return next(
            (one.get("loaded_context_length") for one in await _models(self.wire) if one["id"] == self.model), None
        )


async def _models(wire: Wire) -> list[dict[str, Any]]:
    found = (await wire.glance("/api/v0/models")).get("data")
    return [one for one in found if isinstance(one, dict) and "id" in one] if isinstance(found, list) else []
