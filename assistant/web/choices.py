"""The settings panel: what each user chose for answers, kept in the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from threading import Lock
from typing import Any, get_args

import gradio as gr

from assistant.errors import SequiturError, SettingsError
from assistant.library.collections import MARK, collections
from assistant.library.shelves import library_names, own_library
from assistant.registry import variants
from assistant.settings import IfUnanswerable, RelevanceSettings, Settings
from assistant.store.conversations import Conversations
from assistant.types import Choices
from assistant.web import render
from assistant.web.live import place
from assistant.web.opening import Opening
from assistant.web.tab import QUIET, Updates, guarded, user_of
from assistant.web.view import View

KINDS: dict[str, variants.Kind] = {"strategy": "strategies", "loop": "loops"}
DESCRIBED_CHOICES = (*KINDS, "retriever")  # with a sentence beneath
# By whether that is in OpenSearch, which nobody has tried with a real one (docs/opensearch.md).
RETRIEVER_LABELS = {
    False: "How passages are searched",
    True: "How passages are searched (in OpenSearch, not tried with a real one)",
}
CHOICE_NAMES = ("strategy", "loop", "loops", "k", "library", "retriever", "below")
UNANSWERABLE_OPTIONS = (
    ("Answer from the passages all the same", "answer"),
    ("Say that the library doesn't hold it", "refuse"),
    ("Answer from the model's own knowledge, and say so", "own"),
    ("Ask me what to do", "ask"),
)
# What can be chosen by a number: from 1 up to this.
MAX_VALUES = {"k": 20, "loops": 5}


class UserChoices:
    """What users chose, as far as it still exists; the settings' defaults for the rest."""

    def __init__(self, conversations: Conversations, settings: Settings) -> None:
        self._conversations, self._settings = conversations, settings
        self._lock = Lock()

    def __call__(self, user: str) -> Choices:
        """What this user chose; where that is no number of passages, the one that their loop takes."""
        defaults = Choices(
            self._settings.turn.strategy,
            self._settings.turn.loop,
            library=self._settings.library,
            loops=self._settings.turn.grg_rounds,
            retriever=self._settings.retrieve.retriever,
            below=self._settings.relevance.if_unanswerable_for("chat"),
        )
        preferences = self._conversations.preferences(user)
        valid_choices = {
            name: preferences[name]
            for name in CHOICE_NAMES
            if name in preferences and self.valid(user, name, preferences[name])
        }
        k = self._settings.retrieve.top_k_for(valid_choices.get("loop", defaults.loop))
        return replace(defaults, **{"k": k, **valid_choices})

    @property
    def uses_opensearch(self) -> bool:
        """Whether libraries are searched in OpenSearch."""
        return bool(self._settings.retrieve.opensearch.address)

    @property
    def relevance(self) -> RelevanceSettings:
        """How passages are judged, which nobody chooses."""
        return self._settings.relevance

    def keep(self, user: str, name: str, value: Any) -> bool:
        """Keep one choice; a number that goes on anyway is none, since a slider tells of it as it is hidden, too.

        Returns:
            whether anything changed by it.

        Raises:
            SettingsError: there is no such choice.
        """
        if not self.valid(user, name, value):
            raise SettingsError("This can't be chosen any more; reload the page to see what can.")
        with self._lock:  # quick choices must not undo each other
            preferences = self._conversations.preferences(user)
            current = (
                asdict(self(user))[name] if name in MAX_VALUES and name not in preferences else preferences.get(name)
            )
            if value == current:
                return False
            self._conversations.set_preferences(user, {**preferences, name: value})
            return True

    def valid(self, user: str, name: str, value: Any) -> bool:
        """Whether a choice is available."""
        if name in MAX_VALUES:
            return type(value) is int and 1 <= value <= MAX_VALUES[name]
        if name == "retriever":
            return value in variants.names("retrievers")
        if name == "below":
            return value in get_args(IfUnanswerable)
        if name == "library":
            return value in [library for _, library in self.libraries(user)]
        return value in variants.names(KINDS[name])

    def libraries(self, user: str) -> list[tuple[str, str]]:
        """(label, name) of each library that the user may choose. Their own documents are searched with any of them."""
        own_name = own_library(user)
        names = dict.fromkeys([self._settings.library, *library_names(self._settings, user)])
        return [
            ("Only my documents" if name == own_name else f"{name.capitalize()} library, and my documents", name)
            for name in names
        ] + [(f"Only the collection {MARK}{name}", MARK + name) for name in collections(user, self._settings)]


class ChoicePanel:
    """Native components of gradio, shown as each user left them."""

    name, title = "settings", "Settings"

    def __init__(self, view: View, choices: UserChoices, prepare: Callable[[str, Choices], str]) -> None:
        """`prepare` begins to make what a user's choices need, and says what they must wait for."""
        self._view, self._choices, self._prepare = view, choices, prepare
        self._fields: dict[str, Any] = {
            "strategy": _dropdown("strategy", "How answers are made", _menu("strategies")),
            "loop": _dropdown("loop", "How passages are found", _menu("loops")),
            "loops": _slider("loops", "Drafts and searches, one after the other"),
            "k": _slider("k", "Passages the model reads"),
            "library": _dropdown("library", "Where answers come from"),
            "retriever": _dropdown("retriever", RETRIEVER_LABELS[choices.uses_opensearch], _by_name("retrievers")),
            "below": _unanswerable_dropdown(choices.relevance),
        }

    def place(self) -> None:
        """Place the fields."""
        place(*self._fields.values())

    def wire(self, opening: Opening) -> None:
        """Show the user's choices when the page opens; keep each as soon as it is made."""
        fields = self._fields

        def show(user: str) -> Updates:
            values = asdict(self._choices(user))
            updates = {field: _field_update(name, values[name]) for name, field in fields.items() if name != "library"}
            updates[fields["loops"]] = _rounds(values["loop"], values["loops"])
            libraries = gr.Dropdown(choices=self._choices.libraries(user), value=values["library"])
            return {**updates, fields["library"]: libraries}

        opening.fill(list(fields.values()), show)
        for name, field in fields.items():
            event = field.release if name in MAX_VALUES else field.input
            outputs = [field, self._view.pieces.notice, *([fields["k"], fields["loops"]] if name == "loop" else [])]
            # A key that is held down makes many choices; the last is the one to keep. It comes as the browser sent it:
            # what can't be chosen is told here, where Gradio would fail at it without a word.
            options = {**QUIET, "trigger_mode": "always_last", "preprocess": False}
            event(self._keeper(name, field), field, outputs, **options)

    def _keeper(self, name: str, field: Any) -> Any:
        def keep(value: Any, request: gr.Request) -> Updates:
            def act() -> Updates:
                user = user_of(request)
                try:
                    changed = self._choices.keep(user, name, value)
                except SequiturError as error:
                    return self._as_stored(user, name, field, str(error))
                choices = self._choices(user)
                updates = {field: _field_update(name, value)} if name in DESCRIBED_CHOICES else {}
                # A menu tells of a choice twice at once; the second must not undo a number that was typed in between.
                if name == "loop" and changed:
                    updates[self._fields["k"]] = choices.k
                    updates[self._fields["loops"]] = _rounds(choices.loop, choices.loops)
                wait_notice = self._prepare(user, choices) if name in {"retriever", "library"} else ""
                return {**updates, **({self._view.pieces.notice: render.notice(wait_notice)} if wait_notice else {})}

            return guarded(act, self._view.pieces.notice)

        return keep

    def _as_stored(self, user: str, name: str, field: Any, problem: str) -> Updates:
        """The choice that goes on, and a banner that says why: one that can't be kept is not shown as if it were."""
        stored_value = asdict(self._choices(user))[name]
        return {field: _field_update(name, stored_value), self._view.pieces.notice: render.notice(problem)}


def _dropdown(name: str, label: str, choices: Sequence[tuple[str, str]] = (), **options: Any) -> gr.Dropdown:
    return gr.Dropdown(list(choices), label=label, elem_id=name, render=False, **options)


def _slider(name: str, label: str) -> gr.Slider:
    return gr.Slider(1, MAX_VALUES[name], step=1, label=label, buttons=[], elem_id=name, render=False)


def _rounds(loop: str, rounds: int) -> gr.Slider:
    """How often is asked only of the loops that write drafts."""
    writes_drafts = loop in variants.names("loops") and hasattr(variants.module("loops", loop), "DRAFTS")
    return gr.Slider(value=rounds, visible=writes_drafts)


def _unanswerable_dropdown(relevance: RelevanceSettings) -> gr.Dropdown:
    """What happens where no passage seems to answer; shown where somebody tells."""
    return _dropdown(
        "below",
        "When no passage seems to answer",
        UNANSWERABLE_OPTIONS,
        info=f"Which is when the confidence of the best is under {relevance.threshold:g}.",
        visible=relevance.estimator != "none",
    )


def _menu(kind: variants.Kind) -> list[tuple[str, str]]:
    return [(variant.title, variant.name) for variant in variants.menu(kind)]


def _by_name(kind: variants.Kind) -> list[tuple[str, str]]:
    return [(variants.described(kind, name).title, name) for name in variants.names(kind)]


def _field_update(name: str, value: Any) -> Any:
    """The field's new value, and beneath it what it means: of a variant, the name that commands know it by as well."""
    if name == "retriever":
        return gr.Dropdown(value=value, info=variants.described("retrievers", value).summary)
    if name not in KINDS:
        return value
    variant = variants.described(KINDS[name], value)
    return gr.Dropdown(value=value, info=f"{variant.summary} ({variant.name})")
