"""Generated parts of the documentation: tests/test_readme.py checks them, CONTRIBUTING.md tells how to write them."""

from __future__ import annotations

import typer
from pydantic import BaseModel
from typer.main import get_command

from assistant.__main__ import app, load
from assistant.settings import Section, Settings


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


def _rows(model: type[BaseModel], prefix: str) -> list[str]:
    rows: list[str] = []
    for name, field in model.model_fields.items():
        if isinstance(field.default, Section):
            rows.extend(_rows(type(field.default), f"{prefix}{name}."))
        else:
            default = "your data folder" if name == "data_dir" else field.get_default(call_default_factory=True)
            rows.append(f"| `{prefix}{name}` | `{default!r}` | {field.description} |")
    return rows
