"""Which facts about the user matter for this turn: Sentence-BERT relevance, with a threshold (GRG, section 2.2.1).

Facts are stored, or stated by the messages of this conversation. In "I'm vegan. What could I cook?" the first sentence
becomes a fact of the turn, and the second one is searched for and answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.protocols import Parts
from assistant.types import Turn
from ptkb.extract import lasting_statements, outdated_facts, unknown_statements, without_statements
from ptkb.rank import rank
from ptkb.stated import stated_before, stated_now


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over in milliseconds
    """Adds `stated`, `rest`, and `facts`: all facts that are switched on, most relevant first; those used are marked.

    A fact that a newer one contradicts is left out. The model is always given what the message itself states.
    """
    knobs, embedder = parts.settings.facts, parts.embedder
    stated = lasting_statements(turn.utterance_in_english, embedder)
    turn = replace(turn, stated=stated, rest=without_statements(turn.utterance_in_english, embedder) if stated else "")
    earlier_facts = stated_before(turn, embedder)
    stated_facts = stated_now(turn, earlier_facts, embedder)
    earlier_facts = [fact for fact in earlier_facts if unknown_statements([fact.text], stated_facts, embedder)]
    facts = [*turn.known, *earlier_facts, *stated_facts]
    contradicted_ids = outdated_facts(facts)
    ranked = rank(
        [fact for fact in facts if fact.id not in contradicted_ids],
        turn.request,
        turn.history,
        embedder,
        knobs.threshold,
        knobs.max_facts,
        knobs.max_chars_to_tell_all,
    )
    stored_ids, stated_ids = {fact.id for fact in turn.known}, {fact.id for fact in stated_facts}
    yield replace(
        turn,
        facts=tuple(
            replace(fact, stored=fact.id in stored_ids, told=fact.told or fact.id in stated_ids) for fact in ranked
        ),
    )
