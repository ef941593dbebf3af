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
_PAST = dict(
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
_FREE = re.compile(
    r"^(?:in|on|at|by|from|during|since|until|before|after|around|about|near|for|to|with|because)\b", re.I
)
_LINKS = frozenset("in of from by to for with on at as about into".split())
_HOW = re.compile(r"^how (?:many|much) ", re.IGNORECASE)


def statement(question: str, answer: str, passage: str = "") -> str | None:
    """The answer put into the question's place, as one sentence; None where no pattern fits.

    Args:
        question: one that asks for a thing, a person, a place, a time or a count.
        answer: the few words that answer it.
        passage: where the verbs of questions with "did" are looked for in their past tense.
    """
    words = question.strip().rstrip("?. ").split()
    # "What was he a part of": what is left of it ends in the middle
    if not 3 <= len(words) <= 30 or words[-1].lower() in _LINKS or not answer.strip():
        return None
    found = _counted(words, answer) if _HOW.match(question) else _asked(words, answer, passage)
    if found is None:
        return None
    plain = " ".join(found.split()).rstrip(".")
    return f"{plain[0].upper()}{plain[1:]}."


def _counted(words: list[str], answer: str) -> str | None:
    """Of a count: "How many people died in 1471" is "{answer} people died in 1471"."""
    rest = words[2:]
    at = next((n for n, word in enumerate(rest) if word.lower() in _AUXILIARY), None)
    if at is None:
        return f"{answer} {' '.join(rest)}" if not answer.lower().endswith(rest[0].lower()) else None
    if rest[at].lower() in _BE and [word.lower() for word in rest[at + 1 : at + 2]] == ["there"]:
        return f"there {rest[at]} {answer} {' '.join(rest[:at])} {' '.join(rest[at + 2 :])}"
    return None


def _asked(words: list[str], answer: str, passage: str) -> str | None:
    asked = words[0].lower()
    if asked not in {"who", "what", "which", "when", "where"}:
        return None
    at = next((n for n, word in enumerate(words[1:6], 1) if word.lower() in _AUXILIARY), None)
    if at is None:
        # "Who won the war": the question's subject is what is asked for
        return f"{answer} {' '.join(words[1:])}" if asked == "who" else None
    auxiliary, rest = words[at].lower(), words[at + 1 :]
    if not rest or (at > 1 and asked in {"who", "when", "where"}):
        return None
    if auxiliary in _DO:
        return _done(auxiliary, rest, _placed(asked, answer), asked, passage)
    if auxiliary in _BE:
        return _been(asked, at, auxiliary, rest, answer)
    return f"{answer} {auxiliary} {' '.join(rest)}" if asked == "who" or at > 1 else None


def _been(asked: str, at: int, auxiliary: str, rest: list[str], answer: str) -> str | None:
    """With a form of "be": "Where was she born" is "she was born in {answer}"."""
    if at > 1:
        # "Which country is the largest": the answer is one
        return f"{answer} {auxiliary} {' '.join(rest)}"
    split = next((n for n, word in enumerate(rest) if n and _is_participle(word)), None)
    if asked in {"when", "where"}:
        if split is None:
            return f"{' '.join(rest)} {auxiliary} {_placed(asked, answer)}"
        return f"{' '.join(rest[:split])} {auxiliary} {' '.join(rest[split:])} {_placed(asked, answer)}"
    if _is_participle(rest[0]):
        return f"{answer} {auxiliary} {' '.join(rest)}"
    return f"{' '.join(rest)} {auxiliary} {answer}" if split is None else None


def _done(auxiliary: str, rest: list[str], answer: str, asked: str, passage: str) -> str | None:
    """With a form of "do": "What did Kepler discover in 1609" is "Kepler discovered {answer} in 1609"."""
    there = set(re.findall(r"[a-z]+", passage.lower()))
    for n, word in enumerate(rest[1:6], 1):
        past = _past(word.lower())
        if word in _PAST or (word.islower() and len(word) > 2 and (past in there or f"{word}s" in there)):
            verb = {"did": past, "does": f"{word}s", "do": word}[auxiliary]
            before, behind = " ".join(rest[:n]), " ".join(rest[n + 1 :])
            if asked in {"when", "where"}:
                return f"{before} {verb} {behind} {answer}"
            return f"{before} {verb} {answer} {behind}" if behind.split()[-1:] not in (["to"], ["with"]) else None
    return None


def _past(verb: str) -> str:
    if verb in _PAST:
        return _PAST[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    return f"{verb[:-1]}ied" if verb.endswith("y") and verb[-2:-1] not in "aeiou" else f"{verb}ed"


def _is_participle(word: str) -> bool:
    return word in _PARTICIPLES or (word.endswith("ed") and len(word) > 4)


def _placed(asked: str, answer: str) -> str:
    """When and where things happen, with a preposition in front."""
    return f"in {answer}" if asked in {"when", "where"} and not _FREE.match(answer) else answer
