"""Generated parts of the documentation: tests/test_readme.py checks them, CONTRIBUTING.md tells how to write them."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args, get_origin

import grimp
import typer
from pydantic import BaseModel
from typer.main import get_command

from assistant.__main__ import app, load
from assistant.registry import variants
from assistant.settings import Section, Settings

# The settings that name a variant, whose files say which there are.
_VARIANTS: dict[str, variants.Kind] = {"turn.loop": "loops", "turn.strategy": "strategies"}


def help_texts() -> str:
    """The help of every command, as it is printed; that of single commands is folded away."""
    command = get_command(app)
    top = typer.Context(command, info_name="python -m assistant")
    texts = [f"```\n{command.get_help(top)}\n```\n"]
    for name in command.list_commands(top):
        sub = load(name)
        inner = typer.Context(sub, info_name=name, parent=top)
        summary = f"<summary><code>{inner.command_path}</code></summary>"
        texts.append(f"<details>\n{summary}\n\n```\n{sub.get_help(inner)}\n```\n\n</details>\n")
    return "\n".join(texts)


def settings_table() -> str:
    """Every setting with its default."""
    rows = ["| setting | default | meaning |", "|---|---|---|", *_rows(Settings, "")]
    return "\n".join(rows)


def packages() -> dict[str, set[str]]:
    """Which others each package imports: those (and modules) right inside `assistant`, `ptkb` and `benchmarks`."""
    graph = grimp.build_graph("assistant", "benchmarks", "ptkb", cache_dir=None)
    names = {*graph.find_children("assistant"), "benchmarks", "ptkb"}
    for name in names:
        graph.squash_module(name)
    return {name: graph.find_modules_directly_imported_by(name) & names for name in names}


def layers() -> list[list[str]]:
    """The packages as the contract in pyproject.toml orders them, the top layer first."""
    text = Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    [ordered] = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    return [layer.split(" | ") for layer in ordered]


def packages_map() -> str:
    """The packages and who imports whom; an arrow that follows from others is left out."""
    imports = packages()
    order = [name for layer in layers() for name in layer]
    above: dict[str, set[str]] = {}  # all that a package imports, directly or through others
    arrows: list[str] = []
    for name in reversed(order):
        through = set().union(*(above[one] for one in imports[name]))
        above[name] = imports[name] | through
        arrows += [f"    {_short(name)} --> {_short(one)}" for one in order if one in imports[name] - through]
    table = [
        "| package | what it contains |",
        "|---|---|",
        *(f"| `{_short(name)}` | {_about(name)} |" for name in order),
    ]
    return "\n".join(["```mermaid", "flowchart TD", *reversed(arrows), "```", "", *table])


def _short(name: str) -> str:
    return name.removeprefix("assistant.")


def _about(name: str) -> str:
    """The first line of its docstring, read without importing it."""
    spec = find_spec(name)
    assert spec
    assert spec.origin
    said = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8")))
    assert said, f"{name} says nothing of itself"
    return said.split("\n\n")[0].replace("\n", " ")


def _among(setting: str, annotation: object) -> str:
    """The values that a setting can have, where these are few words."""
    values: Sequence[object] = get_args(annotation) if get_origin(annotation) is Literal else ()
    if kind := _VARIANTS.get(setting):
        values = variants.names(kind)
    return f" (one of {', '.join(f'`{value}`' for value in values)})" if values else ""


def _rows(model: type[BaseModel], prefix: str) -> list[str]:
    rows: list[str] = []
    for name, field in model.model_fields.items():
        if isinstance(field.default, Section):
            rows.extend(_rows(type(field.default), f"{prefix}{name}."))
        else:
            default = "your data folder" if name == "data_dir" else field.get_default(call_default_factory=True)
            rows.append(
                f"| `{prefix}{name}` | `{default!r}` | {field.description}{_among(prefix + name, field.annotation)} |"
            )
    return rows
