"""How the page looks and behaves: its theme, styles and scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr
from markupsafe import Markup
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

FOLDER = Path(__file__).parent
SCRIPTS = FOLDER / "js"
GRADIO_ASSETS = Path(gr.__file__).parent / "templates/frontend/assets"
# In this order: of two rules that are as specific, the later one holds.
STYLES = (
    *("theme", "frame", "parts", "header", "conversations", "turn", "steps", "confidence", "comparison", "welcome"),
    *("composer", "offer", "notices", "panel", "models", "viewer", "print"),
)
FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif")
MONO = ("ui-monospace", "SF Mono", "Menlo", "Consolas", "monospace")


class CachedFiles(StaticFiles):
    """Files that the browser keeps as long as `caching`, the value of their Cache-Control, says."""

    def __init__(self, directory: Path, caching: str) -> None:
        super().__init__(directory=directory)
        self._caching = caching

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """One of them, as the base class has it."""
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = self._caching
        return response


def files() -> list[Mount]:
    """The parts of the page's script, and Gradio's own, some ninety a page.

    The browser asks each time whether ours are still the same. It never asks for Gradio's, whose names change with what
    is in them; Gradio itself says nothing about how long they hold.
    """
    return [
        Mount("/js", CachedFiles(SCRIPTS, "no-cache")),
        Mount("/assets", CachedFiles(GRADIO_ASSETS, "public, max-age=31536000, immutable")),
    ]


def style(names: Sequence[str]) -> Markup:
    """These of the styles, to stand in a page."""
    text = "".join((FOLDER / "css" / f"{name}.css").read_text(encoding="utf-8") for name in names)
    return Markup(text)  # noqa: S704 - our own files


def look() -> dict[str, Any]:
    """Style, script and theme, all from this folder: nothing is fetched from another host."""
    theme = gr.themes.Base(primary_hue=gr.themes.colors.teal, font=list(FONTS), font_mono=list(MONO)).set(
        button_primary_background_fill="#0b6b63",
        button_primary_background_fill_hover="#08544e",
        button_primary_background_fill_dark="#0b6b63",
        button_primary_background_fill_hover_dark="#08544e",
        button_primary_text_color="#ffffff",
        button_primary_text_color_dark="#ffffff",
    )
    return {
        "theme": theme,
        # Not as `css`, which gradio rewrites selector by selector, and breaks at the commas of `:is(a, b)`.
        "head": f'<style>{style(STYLES)}</style><script>window.sequitur ??= import("./js/page.js");</script>',
        "favicon_path": FOLDER / "favicon.svg",
        "footer_links": [],
    }
