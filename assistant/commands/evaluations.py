"""`evaluate`: all its commands in one group."""

from __future__ import annotations

from assistant.commands import evaluate_gates, evaluate_ptkb
from assistant.commands.evaluate import app
from assistant.commands.evaluate_chat import chat
from assistant.commands.evaluate_groundedness import groundedness
from assistant.commands.evaluate_personal import personal
from assistant.commands.evaluate_relevance import relevance
from assistant.commands.evaluate_scenarios import scenarios
from assistant.commands.evaluate_suitability import suitability
from assistant.commands.evaluate_support import support
from assistant.commands.evaluate_weighing import re_rag

for command in (
    support,
    evaluate_gates.intents,
    evaluate_ptkb.ptkb,
    evaluate_ptkb.memory,
    relevance,
    re_rag,
    suitability,
    groundedness,
    chat,
    scenarios,
    personal,
):
    app.command()(command)
