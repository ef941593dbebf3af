"""Tells whether a reply says that it does not know, however a model words it. One function, used everywhere."""

from __future__ import annotations

import re

# The word alone, with or without a frame: "Unknown.", "Answer: unknown", "The answer is not mentioned."
_BARE = r"""
    ^\W* (?:(?:final\s)?answer\W+)? (?:(?:the\sanswer|it|that|this)(?:\sis|'s)\s)?
    (?: unknown | n/a | none | no\sanswer
      | (?:not|un)\s?(?:known|stated|specified|mentioned|given|provided|available|found|clear) )
    (?: \W*$ | \W*\b(?:in|from|by|based|because|since|as|given|according)\b )
"""
_SOURCE = (
    r"(?:passages?|texts?|documents?|contexts?|sources?|notes?|articles?|excerpts?|library|materials?|information|"
    r"paragraphs?|snippets?)"
)
_TELLS = (
    r"(?:mention|say|state|specify|contain|provide|include|give|indicate|discuss|address|tell|describe|answer|cover|"
    r"hold|list|offer|refer|have|explain|name|identify|reveal|disclose)"
)
_TOLD = (
    r"(?:mentioned|said|stated|specified|contained|provided|included|given|indicated|discussed|addressed|told|"
    r"described|answered|covered|listed|found|available|disclosed|named|identified|present|clear)"
)
# Of these a sentence can be about nothing else than a text; breakfast, too, may not be included or available.
_SAID = r"(?:mentioned|said|given|stated|specified|told|described|discussed|addressed|disclosed|identified|clear)"
_MATTER = r"(?:information|answers?|details?|data|knowledge|clue|idea|access|context|enough|mention)"
_NOT = r"(?:\s(?:not|never)|n'?t|not)"
# A library without a car park and an article without nuts are no texts that leave a question open.
_GOODS = rf"""
    (?!(?:library|materials?|articles?|information\s(?:desk|office|cent(?:er|re)|counter|point))\b [^.;]{{0,50}}?
    (?:{_NOT}\s (?:have|contain|hold|list|offer|include|provide|give) | (?:has|have|holds?|contains?|offers?)\s no)\b
    (?![^.;]*\b(?:{_MATTER}|reference|indication|any|anything|who|whom|whose|what|when|where|why|how|which|whether)\b))
"""
_SILENT_SOURCE = rf"""
    {_GOODS} \b{_SOURCE}\b (?!\sof\b) [^.;]{{0,50}}? \b(?:do|does|did|can|ca|could|is|are|was|were|has|have){_NOT}\s
    (?:\w+\s){{0,3}}? (?:{_TELLS}|{_TOLD}|enough|sufficient)\b (?!\s(?:to|by)\b)
  | \b(?:none|neither|nothing|nowhere)\b [^.;]{{0,20}} \b{_SOURCE}\b [^.;]{{0,30}} \b(?:{_TELLS}(?:e?s)?|about|on)\b
  | ^\W* n/a\b
  | \bno\s {_SOURCE}\s {_TELLS}(?:e?s)?\b
  | \b{_SOURCE}\s (?:\w+ly\s)? never\s {_TELLS}(?:e?s)?\b
  | \b{_SOURCE}\b [^.;]{{0,40}} \b(?:say|says|said|tell|tells)\s nothing\b
  | \b{_SOURCE}\b \s (?:\w+\s)? (?:is|are)\ssilent\b
  | {_GOODS} \b{_SOURCE}\b \s (?:\w+ly\s)? (?:has|have|holds?|contains?|offers?|gives?|provides?)\s (?:nothing|no)\b
  | \b{_SOURCE}\b \s (?:\w+ly\s)? fails?\sto\s {_TELLS}\b
  | \b{_SOURCE}\b \s leaves?\b [^.;]{{0,30}} \bopen\b
  | \b(?:is|are|was|were){_NOT}\s in\s (?:\w+\s){{0,2}} {_SOURCE}\b
"""
_NOT_IN_SOURCE = rf"""
    \b(?:is|are|was|were|has|have){_NOT}\s (?:been\s)? (?:\w+ly\s)? {_TOLD}\b
    (?: \s(?:in|by|from|within)\s (?:\w+\s){{0,2}} {_SOURCE}\b | \s(?:anywhere|here)\b )
  | \b(?:is|are|was|were|has|have){_NOT}\s (?:been\s)? (?:\w+ly\s)? {_SAID} \W*$
  | \b(?:{_MATTER}|it|this|that)\s (?:is|are|was|were){_NOT}\s (?:\w+ly\s)? {_TOLD} \W*$
  | \bit(?:'s|\sis|\swas){_NOT}\s (?:\w+ly\s)? {_TOLD}\s (?:whether|if|who|what|when|where|which|how|why)\b
  | (?:\b(?:no|not\senough|not\sany|insufficient|lacks?)|n't\s(?:enough|any))\s (?:\w+\s){{0,3}}?
    (?:information|mention|details?|indication|reference|data|answer)\b
    (?: \s(?:about|on|regarding|to|of|in|for|is|was|can|could|available|given|provided|that)\b | \W*$ )
  | ^\W* (?:no\s)? (?:information|details?|answer) \s (?:not\s)? {_TOLD} \W*$
"""
_CANNOT = rf"""
    \b(?:i|we)(?:'m|'re|\sam|\sare)?\s? (?:do|did|could|can|ca|was|were)?{_NOT}\s (?:\w+\s)?
    (?:know|have(?=\s(?:[\w']+\s){{0,3}}?{_MATTER}\b)|find|see|able|sure|tell|say|answer|determine|provide)\b
    (?!\s how\s to\b)
  | \b(?:i|we)(?:'m|'re|\sam|\sare|\swas|\swere)\sunable\b
  | \b(?:i|we)\s (?:\w+ly\s)? have\sno\s (?:idea|clue|way|answer|information|knowledge|data)\b
  | \b(?:i|we)(?:'m|'re|\sam|\sare){_NOT}\s (?:told|given|informed)\b
  | \b(?:this|that|it|question|answer|point)\b [^.;]{{0,30}} \sremains?\s (?:open|unclear|unknown|unanswered)\b
  | \b(?:can|ca|could){_NOT}\sbe\s(?:\w+ly\s)?(?:determined|answered|found|inferred|known|established|identified)\b
  | \bit(?:'s|\sis|\swas)\s(?:unclear|unknown|not\sclear|not\sknown|uncertain)
    (?: \W*$ | [,;]
      | \s(?:whether|if|who|whom|whose|what|when|where|which|how|why|from|in|based|to\s(?:me|us)|at|exactly)\b )
  | \bit(?:'s|\sis|\swas)\s(?:not\spossible|impossible)\s to\s (?:determine|say|tell|know|answer|identify|find)\b
"""
_UNKNOWN = re.compile("|".join((_BARE, _SILENT_SOURCE, _NOT_IN_SOURCE, _CANNOT)), re.IGNORECASE | re.VERBOSE)
# What a reply quotes is said by somebody else, unless the quotation is all of it.
_QUOTED = re.compile(r"(?<=\w[ ,]) ?[\"“][^\"”]*[\"”]")
_FIRST = re.compile(r"(?<=[.!?])\s")


def says_unknown(text: str) -> bool:
    """Whether the first sentence of `text` says that the answer is not known or not in the passages.

    An empty text counts as unknown. Only the beginning is looked at: a reply that answers first and then adds what its
    sources leave open is an answer.
    """
    line = text.strip().replace("’", "'").split("\n")[0]
    if not line.strip(" .*_\"'"):
        return True
    sentences = _FIRST.split(line, maxsplit=2)
    # "I'm sorry." alone says nothing yet.
    head = " ".join(sentences[:2]) if re.match(r"\W*(?:i'm )?sorry", line, re.IGNORECASE) else sentences[0]
    return bool(_UNKNOWN.search(_QUOTED.sub(" ", head)))
