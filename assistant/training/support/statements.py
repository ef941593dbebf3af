"""Statements from questions and answers, by grammar: "When did the war end?" and "1945" is "The war ended in 1945".

Only what a few patterns of English cover is turned; for the rest there is no statement, rather than a broken one.
After the idea of Demszky et al. 2018, "Transforming question answering datasets into natural language inference
datasets", without their parser.
"""

from __future__ import annotations

import re

_BE = {"is", "was", "are", "were"}
_DO = {"did", "does", "do"}
_MODAL = {"can", "could", "will", "would", "should", "may", "must", "has", "have", "had"}
_AUXILIARY = _BE | _DO | _MODAL
_PAST_TENSES = dict(
    pair.split(":")
    for pair in (
        "become:became begin:began break:broke bring:brought build:built buy:bought catch:caught choose:chose "
        "come:came die:died do:did draw:drew drink:drank drive:drove eat:ate fall:fell feel:felt fight:fought "
        "find:found fly:flew get:got give:gave go:went grow:grew have:had hear:heard hold:held keep:kept "
        "know:knew lead:led learn:learned leave:left lie:lay lose:lost make:made mean:meant meet:met pay:paid "
        "put:put read:read rise:rose run:ran say:said see:saw sell:sold send:sent set:set show:showed "
        "sing:sang sit:sat speak:spoke spend:spent stand:stood steal:stole swim:swam take:took teach:taught "
        "tell:told think:thought throw:threw understand:understood wear:wore win:won write:wrote "
        "occur:occurred"
    ).split()
)
_PARTICIPLES = frozenset(
    "become begun born broken brought built bought caught chosen come done drawn driven eaten fallen felt fought found"
    " given gone grown heard held kept known laid led left lost made meant met paid put read risen run said seen sold"
    " sent set shown sung spoken spent stolen taken taught thought told thrown understood won worn written".split()
)
_LEADING_PREPOSITION = re.compile(
    r"^(?:in|on|at|by|from|during|since|until|before|after|around|about|near|for|to|with|because)\b", re.I
)
_PREPOSITIONS = frozenset("in of from by to for with on at as about into".split())
_HOW_MANY = re.compile(r"^how (?:many|much) ", re.IGNORECASE)


def statement(question: str, answer: str, passage: str = "") -> str | None:
    """The answer put into the question's place, as one sentence; None where no pattern fits.

    Args:
        question: one that asks for a thing, a person, a place, a time or a count.
        answer: the few words that answer it.
        passage: where the verbs of questions with "did" are looked for in their past tense.
    """
    words = question.strip().rstrip("?. ").split()
    # "What was he a part of": what is left of it ends in the middle
    if not 3 <= len(words) <= 30 or words[-1].lower() in _PREPOSITIONS or not answer.strip():
        return None
    sentence = _count_statement(words, answer) if _HOW_MANY.match(question) else _wh_statement(words, answer, passage)
    if sentence is None:
        return None
    trimmed = " ".join(sentence.split()).rstrip(".")
    return f"{trimmed[0].upper()}{trimmed[1:]}."


def _count_statement(words: list[str], answer: str) -> str | None:
    """Of a count: "How many people died in 1471" is "{answer} people died in 1471"."""
    tail = words[2:]
    position = next((n for n, word in enumerate(tail) if word.lower() in _AUXILIARY), None)
    if position is None:
        return f"{answer} {' '.join(tail)}" if not answer.lower().endswith(tail[0].lower()) else None
    if tail[position].lower() in _BE and [word.lower() for word in tail[position + 1 : position + 2]] == ["there"]:
        return f"there {tail[position]} {answer} {' '.join(tail[:position])} {' '.join(tail[position + 2 :])}"
    return None


def _wh_statement(words: list[str], answer: str, passage: str) -> str | None:
    wh_word = words[0].lower()
    if wh_word not in {"who", "what", "which", "when", "where"}:
        return None
    position = next((n for n, word in enumerate(words[1:6], 1) if word.lower() in _AUXILIARY), None)
    if position is None:
        # "Who won the war": the question's subject is what is asked for
        return f"{answer} {' '.join(words[1:])}" if wh_word == "who" else None
    auxiliary, tail = words[position].lower(), words[position + 1 :]
    if not tail or (position > 1 and wh_word in {"who", "when", "where"}):
        return None
    if auxiliary in _DO:
        return _do_statement(auxiliary, tail, _adverbial(wh_word, answer), wh_word, passage)
    if auxiliary in _BE:
        return _be_statement(wh_word, position, auxiliary, tail, answer)
    return f"{answer} {auxiliary} {' '.join(tail)}" if wh_word == "who" or position > 1 else None


def _be_statement(wh_word: str, position: int, auxiliary: str, tail: list[str], answer: str) -> str | None:
    """With a form of "be": "Where was she born" is "she was born in {answer}"."""
    if position > 1:
        # "Which country is the largest": the answer is one
        return f"{answer} {auxiliary} {' '.join(tail)}"
    split_at = next((n for n, word in enumerate(tail) if n and _is_participle(word)), None)
    if wh_word in {"when", "where"}:
        if split_at is None:
            return f"{' '.join(tail)} {auxiliary} {_adverbial(wh_word, answer)}"
        return f"{' '.join(tail[:split_at])} {auxiliary} {' '.join(tail[split_at:])} {_adverbial(wh_word, answer)}"
    if _is_participle(tail[0]):
        return f"{answer} {auxiliary} {' '.join(tail)}"
    return f"{' '.join(tail)} {auxiliary} {answer}" if split_at is None else None


def _do_statement(auxiliary: str, tail: list[str], answer: str, wh_word: str, passage: str) -> str | None:
    """With a form of "do": "What did Kepler discover in 1609" is "Kepler discovered {answer} in 1609"."""
    passage_words = set(re.findall(r"[a-z]+", passage.lower()))
    for n, word in enumerate(tail[1:6], 1):
        past_form = _past_tense(word.lower())
        if word in _PAST_TENSES or (
            word.islower() and len(word) > 2 and (past_form in passage_words or f"{word}s" in passage_words)
        ):
            verb = {"did": past_form, "does": f"{word}s", "do": word}[auxiliary]
            text_before, text_after = " ".join(tail[:n]), " ".join(tail[n + 1 :])
            if wh_word in {"when", "where"}:
                return f"{text_before} {verb} {text_after} {answer}"
            return (
                f"{text_before} {verb} {answer} {text_after}"
                if text_after.split()[-1:] not in (["to"], ["with"])
                else None
            )
    return None


def _past_tense(verb: str) -> str:
    if verb in _PAST_TENSES:
        return _PAST_TENSES[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    return f"{verb[:-1]}ied" if verb.endswith("y") and verb[-2:-1] not in "aeiou" else f"{verb}ed"


def _is_participle(word: str) -> bool:
    return word in _PARTICIPLES or (word.endswith("ed") and len(word) > 4)


def _adverbial(wh_word: str, answer: str) -> str:
    """When and where things happen, with a preposition in front."""
    return f"in {answer}" if wh_word in {"when", "where"} and not _LEADING_PREPOSITION.match(answer) else answer
