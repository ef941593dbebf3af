"""The judge of support by words."""

from threading import Event

from assistant.judges.support.words import ByWords
from assistant.types import Claim, Passage, Verdict

OATS = Passage("o", "Oats", "oats hold much fibre")


def test_the_share_of_words_is_the_support() -> None:
    claims = [Claim("Oats hold fibre", (OATS,)), Claim("Oats hold no milk", (OATS,)), Claim("Oats", ())]
    assert ByWords(0.6).judge(claims, Event()) == [Verdict(1.0, "supported"), Verdict(0.5, "not"), Verdict(0.0, "not")]
