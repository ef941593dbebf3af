"""The settings panel: what each user chose for answers, kept in the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import gradio as gr

from assistant import variants
from assistant.conversation import Conversations
from assistant.settings import Settings
from assistant.types import Choices
from assistant.web.tab import QUIET, Updates, guarded, user_of
from assistant.web.view import View

KEPT = ("strategy", "loop", "k", "library")
MOST_PASSAGES = 20
LIBRARIES = (("Starter library", "starter"), ("My documents", "mine"), ("Both", "all"))


def chosen(conversations: Conversations, settings: Settings, user: str) -> Choices:
    """What the user chose; the settings' defaults where nothing was chosen or a kept choice is no longer there."""
    usual = Choices(settings.turn.strategy, settings.turn.loop, settings.retrieve.k, settings.library)
    kept = conversations.preferences(user)
    return replace(usual, **{name: kept[name] for name in KEPT if name in kept and valid(name, kept[name])})


def valid(name: str, value: Any) -> bool:
    """Whether a choice can be used."""
    if name == "k":
        return isinstance(value, int) and 1 <= value <= MOST_PASSAGES
    offered: Mapping[str, list[str]] = {
        "strategy": variants.names("strategies"),
        "loop": variants.names("loops"),
        "library": [library for _, library in LIBRARIES],
    }
    return value in offered[name]


class ChoicePanel:
    """Native components of gradio, shown as each user left them."""

    def __init__(self, view: View, settings: Settings) -> None:
        self._view, self._settings = view, settings
        self.strategy = gr.Radio(_named("strategies"), label="How answers are made", elem_id="strategy")
        self.loop = gr.Radio(_named("loops"), label="How passages are found", elem_id="loop")
        self.k = gr.Slider(1, MOST_PASSAGES, step=1, label="Passages the model reads", elem_id="k")
        self.library = gr.Radio(list(LIBRARIES), label="Where answers come from", elem_id="library")

    def wire(self, page: gr.Blocks) -> None:
        """Show the user's choices when the page opens; keep each as soon as it is made."""
        fields = {name: getattr(self, name) for name in KEPT}

        def show(request: gr.Request) -> Updates:
            choices = asdict(chosen(self._view.conversations, self._settings, user_of(request)))
            return {field: choices[name] for name, field in fields.items()}

        show.__annotations__ = {"request": gr.Request}
        page.load(show, None, list(fields.values()), **QUIET)
        for name, field in fields.items():
            event = field.release if name == "k" else field.input
            event(self._keeper(name), field, [self._view.pieces.notice], **QUIET)

    def _keeper(self, name: str) -> Any:
        def keep(value: Any, request: gr.Request) -> Updates:
            def act() -> Updates:
                if valid(name, value):
                    user, stored = user_of(request), self._view.conversations
                    stored.set_preferences(user, {**stored.preferences(user), name: value})
                return {}

            return guarded(act, self._view.pieces.notice)

        keep.__annotations__ = {"value": Any, "request": gr.Request}
        return keep


def _named(kind: variants.Kind) -> list[tuple[str, str]]:
    return [(f"{name}: {variants.summary(kind, name)}", name) for name in variants.names(kind)]
