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
        return any("max_context_length" in model for model in await _models(wire))

    @classmethod
    async def writers(cls, wire: Wire, listed: Sequence[Json]) -> Sequence[Json]:
        """All but those that make vectors of texts."""
        embedding_ids = {model["id"] for model in await _models(wire) if model.get("type") == "embeddings"}
        return [model for model in listed if model["id"] not in embedding_ids]

    async def probe(self) -> None:
        """As of every server; a model that was loaded for its first word has a context only then.

        Raises:
            ModelError: it can't answer at all, or has less context than is set.
        """
        await super().probe()
        self.abilities = replace(self.abilities, context=await self._context())

    async def max_context(self) -> int | None:
        """The context that the model was loaded with; one that is not loaded yet may get another than it could."""
        return next(
            (model.get("loaded_context_length") for model in await _models(self.wire) if model["id"] == self.model),
            None,
        )


async def _models(wire: Wire) -> list[dict[str, Any]]:
    models = (await wire.glance("/api/v0/models")).get("data")
    return [model for model in models if isinstance(model, dict) and "id" in model] if isinstance(models, list) else []
