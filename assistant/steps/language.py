"""Translates messages and facts in other languages into English and, if the settings say so, the reply back.

The stemming of the search, the sentence encoder and the judges are made for English. So a message in another language
is translated, searched for and answered in English, unless the library has passages in the language of the message.
Facts are translated as well if the turn is in English; otherwise "Ich bin Vegetarier" would rule nothing out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from threading import Event
from typing import Any

from assistant.grounding.citations import before_marker
from assistant.judges.recent_results import RecentResults
from assistant.prompting.budget import fit
from assistant.protocols import Parts
from assistant.text.sentences import quote, sentences
from assistant.types import Completion, Fact, Options, Turn

ENGLISH = "en"
# The languages that can be recognised, by their ISO 639-1 codes; with more of them, short messages would be recognised
# less surely.
LANGUAGES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian", "fi": "Finnish", "fr": "French",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "nl": "Dutch", "no": "Norwegian",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian",
    "sr": "Serbian", "sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese",
    "zh": "Chinese",
}  # fmt: skip
# A message whose probability of being English is lower than this counts as in another language (that was so for one in
# 1,700 English messages and questions that were looked at). With more characters than this it is a text, not a message.
_UNLIKELY_MESSAGE, _MAX_MESSAGE_CHARS = 0.01, 1000
# The same probability for a fact, which is shorter than a message; 3 of 3,797 English facts have a lower one.
_UNLIKELY_FACT = 0.05
# How many passages are looked at to tell whether the library is in the language of the message, and the probability of
# English below which a passage surely isn't English: foreign names in an English one lower it to a ten-thousandth.
_PASSAGES_CHECKED, _SURELY_FOREIGN = 3, 1e-6
# Translations of facts, by model and text: facts hardly change from turn to turn.
_FACTS: RecentResults[tuple[str, str], str] = RecentResults(2_000)


def message(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `english`, the translation, unless the message is English or the library has passages in its language.

    If the turn goes on in English, the facts in `known` get their translations.
    """
    language = language_of(turn.utterance)
    if language != ENGLISH:
        if len(turn.utterance) > _MAX_MESSAGE_CHARS or stop.is_set() or _is_library_language(language, turn, parts):
            yield turn
            return
        max_tokens = _token_limit(turn.utterance)
        # on one line, since the model's reply ends at the first line break
        utterance = " ".join(turn.utterance.split())
        messages, cuts = fit("english", parts.llm, max_tokens, utterance=utterance)
        [completion] = parts.llm.complete([messages], _options(max_tokens), stop)
        turn = replace(turn, cuts=turn.cuts + cuts, english=_finished(completion))
    goes_on_in_english = language == ENGLISH or bool(turn.english)
    yield replace(turn, known=_with_english(turn.known, parts, stop)) if goes_on_in_english else turn


def is_due(turn: Turn, parts: Parts) -> bool:
    """Whether this message was translated, and replies are to be translated back."""
    return parts.settings.turn.translate and bool(turn.english)


def reply(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Translates the `answer` back into the language of the message, with its markers.

    This is for models that write other languages well (`turn.translate`): only the English text has been checked.
    """
    answer = turn.answer
    if not turn.english or answer is None or answer.unknown or stop.is_set():
        yield turn
        return
    body = answer.text
    originals = [sentence.text for sentence in turn.sentences] or [quote(body, span) for span in sentences(body)]
    translations = dict(zip(originals, _translated(originals, turn, parts, stop), strict=True))
    yield replace(
        turn,
        answer=replace(answer, text=_with_translations(body, originals, translations)),
        sentences=tuple(replace(sentence, text=translations[sentence.text]) for sentence in turn.sentences),
        citations=tuple(
            replace(citation, sentence=translations.get(citation.sentence, citation.sentence))
            for citation in turn.citations
        ),
    )


def language_of(text: str, unlikely: float = _UNLIKELY_MESSAGE) -> str:
    """The most likely language of a text, as its ISO 639-1 code; English unless its probability is below `unlikely`."""
    ranked = _identifier().rank(text)
    return str(ranked[0][0]) if dict(ranked)[ENGLISH] < unlikely else ENGLISH


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415 - reads its model

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(LANGUAGES))
    return identifier


def _with_english(facts: tuple[Fact, ...], parts: Parts, stop: Event) -> tuple[Fact, ...]:
    """The facts; those in other languages get a translation, which is cached, even if it failed."""
    texts = [fact.text for fact in facts if fact.on and language_of(fact.text, _UNLIKELY_FACT) != ENGLISH]
    cache_keys = [(parts.llm.name, text) for text in texts]
    if not cache_keys or stop.is_set():
        return facts

    def translated(keys: list[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], str]]:
        max_tokens = max(_token_limit(text) for _, text in keys)
        prompts = [fit("english_fact", parts.llm, max_tokens, fact=text)[0] for _, text in keys]
        completions = parts.llm.complete(prompts, _options(max_tokens), stop)
        completed = zip(keys, completions, strict=True)
        return ((key, _finished(completion)) for key, completion in completed if completion.finish != "cancelled")

    translations = _FACTS.of(cache_keys, translated)
    return tuple(replace(fact, english=translations.get((parts.llm.name, fact.text), "")) for fact in facts)


def _is_library_language(language: str, turn: Turn, parts: Parts) -> bool:
    """Whether a search for the message, untranslated, finds a passage in its language."""
    passages = parts.retriever.search(turn.utterance, _PASSAGES_CHECKED)
    return any(language_of(passage.text, _SURELY_FOREIGN) == language for passage in passages)


def _translated(texts: list[str], turn: Turn, parts: Parts, stop: Event) -> list[str]:
    """The texts translated into the language of the message.

    A text whose translation fails stays as it is. So does a text of several lines, which is code or a table.
    """
    language = LANGUAGES[language_of(turn.utterance)]
    single_lines = [text for text in texts if "\n" not in text]
    prompts = [
        fit("translate", parts.llm, _token_limit(text), language=language, text=text)[0] for text in single_lines
    ]
    max_tokens = max(map(_token_limit, single_lines), default=1)
    completions = parts.llm.complete(prompts, _options(max_tokens), stop) if prompts else []
    translations = dict(zip(single_lines, map(_finished, completions), strict=True))
    return [translations.get(text) or text for text in texts]


def _with_translations(body: str, originals: list[str], translations: dict[str, str]) -> str:
    """The text with each sentence replaced by its translation; the markers stay in place."""
    pieces, end = list[str](), 0
    for sentence in originals:
        original, translation = before_marker(sentence), before_marker(translations[sentence])
        start = body.find(original, end)
        if start >= 0:
            pieces += [body[end:start], translation]
            end = start + len(original)
    return "".join(pieces) + body[end:]


def _token_limit(text: str) -> int:
    """Tokens for a text in another language: at most one for each character is plenty."""
    return 40 + len(text)


def _options(max_tokens: int) -> Options:
    return Options(max_tokens=max_tokens, stop=("\n",))


def _finished(completion: Completion) -> str:
    """The text of a completion that came to its end, else ""."""
    return completion.text.strip().strip('"') if completion.finish == "stop" else ""
