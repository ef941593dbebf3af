"""Options that stand once for several commands: the fields of a dataclass become options of each that takes it.

Those that say where settings, data and the language model are found stand here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from typer import Option

from assistant import turn as flow
from assistant.commands.common import Backend, DataDir, Model, Rounds, SettingsFile, settings_of
from assistant.settings import IfUnanswerable, Settings
from assistant.types import Choices


@dataclass(frozen=True)
class Settled:
    """The options that say where the settings and the data are."""

    settings: SettingsFile = None
    data_dir: DataDir = None

    def knobs(self, **more: str | None) -> Settings:
        """The settings, with what the command line says on top."""
        return settings_of(self.settings, self.data_dir, **more)


@dataclass(frozen=True)
class Modelled(Settled):
    """The same, and the language model that is asked."""

    model: Model = None
    backend: Backend = None

    def knobs(self, **more: str | None) -> Settings:
        """See `Settled`."""
        return settings_of(self.settings, self.data_dir, model=self.model, backend=self.backend, **more)


@dataclass(frozen=True)
class Way:
    """The options that say how a turn goes; what is left out is as the settings have it."""

    loop: Annotated[str | None, Option(help="How the passages are found.")] = None
    loops: Rounds = None
    strategy: Annotated[str | None, Option(help="How the answer is made from the passages.")] = None
    k: Annotated[int | None, Option("--k", min=1, max=20, help="Passages shown to the model.")] = None

    def choices(self, settings: Settings, library: str = "", below: IfUnanswerable | Literal[""] = "") -> Choices:
        """What the turn does; of another library than the settings', where one is named.

        Raises:
            SettingsError: there is no such loop or strategy; the message lists those there are.
        """
        loop = self.loop or settings.turn.loop
        choices = Choices(
            self.strategy or settings.turn.strategy,
            loop,
            self.k or settings.retrieve.top_k_for(loop),
            library or settings.library,
            loops=self.loops or settings.turn.grg_rounds,
            retriever=settings.retrieve.retriever,
            below=below,
        )
        flow.check(choices)
        return choices


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of a dataclass, wherever a parameter is one, as options of its own."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = signature(command).parameters

    @wraps(command)
    def spreading(**given: Any) -> None:
        for name, kind in groups.items():
            own = [one.name for one in _options(parameters[name], kind)]
            values = {one: given.pop(one) for one in own if one in given}
            given[name] = kind(**{one: _as_declared(value) for one, value in values.items() if value is not None})
        command(**given)

    options = [one for name, at in parameters.items() for one in _options(at, hints[name])]
    spreading.__signature__ = Signature(options)  # type: ignore[attr-defined]
    spreading.__annotations__ = {one.name: one.annotation for one in options}
    return spreading


def _as_declared(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _options(parameter: Parameter, kind: Any) -> Iterator[Parameter]:
    if not is_dataclass(kind):
        yield parameter.replace(annotation=kind, kind=Parameter.KEYWORD_ONLY)
        return
    hints = get_type_hints(kind, include_extras=True)
    for one in fields(kind):
        hint, default = hints[one.name], Parameter.empty if one.default is MISSING else one.default
        if get_origin(hint) is not Annotated:
            continue  # nothing that a person chooses
        plain, *said = get_args(hint)
        if get_origin(plain) is tuple:
            hint, default = Annotated[list[get_args(plain)[0]] | None, *said], None  # type: ignore[misc]
        yield Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
