"""Groups of options that several commands share: the fields of a dataclass become options of each command.

The groups that say where the settings and the data are, and which language model is asked, are defined here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer import Option, Typer
from typer.models import CommandFunctionType

from assistant.commands.common import DataDir, Model, settings_of
from assistant.settings import AnyBackend, Settings


@dataclass(frozen=True)
class SettingsOptions:
    """The options that say where the settings and the data are."""

    settings_file: Annotated[Path | None, Option("--settings", help="A TOML file with settings.")] = None
    data_dir: DataDir = None

    def load_settings(self, **overrides: Any) -> Settings:
        """The settings of the file and the environment, with the command line's on top; see `settings_of`."""
        return settings_of(self.settings_file, self.data_dir, **overrides)


@dataclass(frozen=True)
class ModelOptions(SettingsOptions):
    """The same, and which language model is asked."""

    model: Model = None
    backend: Annotated[AnyBackend | None, Option(help="What runs it, as in the setting llm.backend.")] = None

    def load_settings(self, **overrides: Any) -> Settings:
        """See `SettingsOptions`."""
        return super().load_settings(llm={"model": self.model, "backend": self.backend}, **overrides)


class Group(Typer):
    """A group of commands, whose parameters may be groups of options."""

    def command(self, *args: Any, **kwargs: Any) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """As Typer has it."""
        register: Any = super().command(*args, **kwargs)
        return lambda command: register(with_option_groups(command))


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each parameter that is a dataclass replaced by that dataclass's fields, as options."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = signature(command).parameters

    @wraps(command)
    def with_options(**values: Any) -> None:
        for name, kind in groups.items():
            members = [option.name for option in _options(parameters[name], kind) if option.name in values]
            given_values = {member: value for member in members if (value := values.pop(member)) is not None}
            # typer gives lists where tuples are declared
            values[name] = kind(
                **{
                    key: tuple(option_value) if isinstance(option_value, list) else option_value
                    for key, option_value in given_values.items()
                }
            )
        command(**values)

    options = [option for name, parameter in parameters.items() for option in _options(parameter, hints[name])]
    with_options.__signature__ = Signature(options)  # type: ignore[attr-defined]
    with_options.__annotations__ = {option.name: option.annotation for option in options}
    return with_options


def _options(parameter: Parameter, kind: Any) -> Iterator[Parameter]:
    if not is_dataclass(kind):
        yield parameter.replace(annotation=kind, kind=Parameter.KEYWORD_ONLY)
        return
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        hint: Any = hints[field.name]
        default: Any = Parameter.empty if field.default is MISSING else field.default
        if get_origin(hint) is not Annotated:
            continue  # not an option
        bare_type, option = get_args(hint)
        if get_origin(bare_type) is tuple:
            option = copy(option)  # others that share it may have another default
            if option.show_default is True:  # the dataclass has the default itself
                option.show_default = ", ".join(map(str, default)) or False
            hint, default = Annotated[list[get_args(bare_type)[0]] | None, option], None  # type: ignore[misc]
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
