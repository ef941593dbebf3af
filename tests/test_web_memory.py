"""What a tab that is used keeps in the memory of the server."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from assistant.web.server import serve
from benchmarks.visitor import Visitor
from tests.browser.fake import Loaded, Script, house


def test_a_tab_keeps_no_more_after_many_replies_than_after_one(tmp_path: Path) -> None:
    with closing(serve(*house(tmp_path, Script(), Loaded()))) as served, closing(Visitor(served.url)) as visitor:
        sessions, kept = served.page.app.state_holder.session_data, []
        for n in range(4):
            visitor.send("composer", "ask", utterance=f"What is a good diet, {n}?")
            kept.append(len(sessions[visitor.session].config_values))
    assert kept[1:] == kept[:-1], "Gradio keeps a copy of what the page showed"
