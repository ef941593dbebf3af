"""A piece of the page that Python renders and the browser patches in place.

The value is HTML from `render.py`, every piece of text in it escaped. `js/patch.js` puts it into the page node by
node, so that what is open, focused, selected or half typed stays so while an answer streams in. Elements with
`data-event="x"` send the event `x` with their `data-*` values (a form: its fields too), and with what the tab shows.
"""

from __future__ import annotations

import json

import gradio as gr
from gradio.blocks import Block

Live = gr.HTML


def live(elem_id: str, *events: str, value: str = "") -> Live:
    """A live piece, to be placed where it is to stand.

    `events` are the names that its elements may send: listen with `piece.<name>(...)`. Gradio knows them by the script.
    """
    return gr.HTML(
        value,
        html_template="",
        js_on_load=f"sequitur.then(({{ live }}) => live(element, props, trigger, watch, {json.dumps(events)}))",
        apply_default_css=False,
        elem_id=elem_id,
        render=False,
    )


def place(*components: Block) -> None:
    """Let components stand here, one beneath the other, in the page that is being built."""
    for component in components:
        component.render()  # type: ignore[no-untyped-call]
