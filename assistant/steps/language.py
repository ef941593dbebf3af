"""Questions in other languages than English: put into English first, and on wish the reply back into the language.

The search's stemming, the sentence encoder and the judges know English. So a message in another language is understood,
searched for and answered in English, unless the library itself has passages in the language of the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from threading import Event
from typing import Any

from assistant.prompting.budget import fit
from assistant.protocols import Parts
from assistant.text.sentences import quote, sentences
from assistant.types import Completion, Options, Turn

ENGLISH = "en"
# Languages that are told apart, by their ISO 639-1 codes; more would only make short messages less sure.
LANGUAGES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian", "fi": "Finnish", "fr": "French",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "nl": "Dutch", "no": "Norwegian",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian",
    "sr": "Serbian", "sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese",
    "zh": "Chinese",
}  # fmt: skip
# A probability of English under which a message is in another language (of 1,700 English messages and questions that
# were looked at, one had less), and characters above which it is a text rather than a message.
_UNLIKELY, _LONGEST = 0.01, 1000
# Passages that tell whether the library is in the language of the message, and a probability of English under which one
# surely isn't: foreign names in an English passage bring it down to a ten-thousandth.
_ASKED, _SURELY = 3, 1e-6


def message(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `english`, what was said in English, unless it is English or the library has passages in its language."""
    language = language_of(turn.utterance)
    if language == ENGLISH or len(turn.utterance) > _LONGEST or stop.is_set() or _is_held(language, turn, parts):
        yield turn
        return
    room = _room(turn.utterance)
    messages, cuts = fit("english", parts.llm, room, utterance=turn.utterance)
    turn = replace(turn, cuts=turn.cuts + cuts)
    [completion] = parts.llm.complete([messages], _options(room), stop)
    yield replace(turn, english=_finished(completion))


def is_due(turn: Turn, parts: Parts) -> bool:
    """Whether replies are to be in the language of the message, and this one was in another than English."""
    return parts.settings.turn.translate and bool(turn.english)


def reply(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Puts the `answer` to a message that was put into English into the language of the message, with its markers.

    That is for models that write other languages well (`turn.translate`): what has been checked is the English.
    """
    answer = turn.answer
    if not turn.english or answer is None or answer.unknown or stop.is_set():
        yield turn
        return
    body = answer.text
    said = [one.text for one in turn.sentences] or [quote(body, span) for span in sentences(body)]
    words = dict(zip(said, _translated(said, turn, parts, stop), strict=True))
    yield replace(
        turn,
        answer=replace(answer, text=_put_in(body, words)),
        sentences=tuple(replace(one, text=words[one.text]) for one in turn.sentences),
        citations=tuple(replace(one, sentence=words.get(one.sentence, one.sentence)) for one in turn.citations),
    )


def language_of(text: str, unlikely: float = _UNLIKELY) -> str:
    """The language that a text is most likely in, an ISO 639-1 code; English unless it is less likely than this."""
    ranked = _identifier().rank(text)
    return str(ranked[0][0]) if dict(ranked)[ENGLISH] < unlikely else ENGLISH


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415 - reads its model

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(LANGUAGES))
    return identifier


def _is_held(language: str, turn: Turn, parts: Parts) -> bool:
    """Whether the message as it is finds passages in its language."""
    found = parts.retriever.search(turn.utterance, _ASKED)
    return any(language_of(passage.text, _SURELY) == language for passage in found)


def _translated(texts: list[str], turn: Turn, parts: Parts, stop: Event) -> list[str]:
    """The texts in the language of the message; one that can't be put into it stays as it is."""
    language = LANGUAGES[language_of(turn.utterance)]
    prompts = [fit("translate", parts.llm, _room(text), language=language, text=text)[0] for text in texts]
    most = max(map(_room, texts), default=1)
    found = parts.llm.complete(prompts, _options(most), stop) if prompts else []
    return [_finished(one) or text for one, text in zip(found, texts, strict=True)]


def _put_in(body: str, words: dict[str, str]) -> str:
    pieces, end = list[str](), 0
    for text, other in words.items():
        place = body.find(text, end)
        if place >= 0:
            pieces += [body[end:place], other]
            end = place + len(text)
    return "".join(pieces) + body[end:]


def _room(text: str) -> int:
    """Tokens for a text in another language: at most one for each character is plenty."""
    return 40 + len(text)


def _options(room: int) -> Options:
    return Options(max_tokens=room, stop=("\n",))


def _finished(completion: Completion) -> str:
    """What was written, if it came to its end."""
    return completion.text.strip().strip('"') if completion.finish == "stop" else ""
