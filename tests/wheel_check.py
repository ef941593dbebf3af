"""Whether an installed Sequitur is whole: run it by the Python that it is installed for, outside the checkout.

It has to have every file of the checkout, a prompt that renders, weights that judge, and a page that is served.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import NoReturn
from urllib.request import urlopen

import assistant
from assistant.judges import load as judges
from assistant.judges.relevance.load import load_calibrated
from assistant.judges.support.trained import Support
from assistant.parts import load_embedder
from assistant.prompting.render import render
from assistant.protocols import silent
from assistant.settings import FactSettings, Settings
from assistant.types import Claim, Passage

CHECKOUT = Path(__file__).parents[1]
INSTALLED = Path(assistant.__file__).parents[1]
SEQUITUR = Path(sys.executable).with_name("sequitur")

BREAD = Passage("bread", "Bread", "Bread is made of flour, water and salt.")
SLEEP = Passage("sleep", "Sleep", "A cool, dark and quiet room helps people to fall asleep.")
NEVER = Event()


def every_file_is_there() -> None:
    folders = {"assistant": "assistant", "ptkb": "ptkb", "prompts": "assistant/prompts"}
    for here, there in folders.items():
        for file in (CHECKOUT / here).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                copy = INSTALLED / there / file.relative_to(CHECKOUT / here)
                assert copy.read_bytes() == file.read_bytes(), copy


def a_prompt_is_rendered() -> None:
    *_, last = render("chat/concat", question="What is bread made of?", passages=[BREAD], facts=[], history=[])
    assert "flour" in last.content


def no_language_model() -> NoReturn:
    raise AssertionError("the shipped estimator needs none")


def the_weights_judge() -> None:
    # the larger judges stand on an encoder that is fetched
    settings = Settings(facts=FactSettings(suitability="small"))
    estimator = load_calibrated("shipped", None, no_language_model, settings, silent)
    relevant, beside = estimator.estimate("What is bread made of?", [BREAD, SLEEP], NEVER)
    assert relevant.confidence > 0.2 > beside.confidence
    support = Support()
    said, unsaid = support.judge([Claim("Bread is made of flour.", (one,)) for one in (BREAD, SLEEP)], NEVER)
    assert said.probability >= support.threshold > unsaid.probability
    embedder = load_embedder(settings, silent)
    suitability = judges.suitability(settings, embedder)
    [[clash, harmless]] = suitability.clashes(["I have a peanut allergy."], ["Eat peanuts.", "Go to bed early."], NEVER)
    assert clash >= suitability.threshold > harmless


def the_command_is_there() -> None:
    told = subprocess.run([SEQUITUR, "--help"], capture_output=True, text=True, timeout=60, check=True)
    assert "Usage: sequitur" in told.stdout
    told = subprocess.run([SEQUITUR, "bench"], capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 2
    assert told.stderr.startswith("Error: The benchmarks come with Sequitur's source")


def the_page_is_served() -> None:
    with TemporaryDirectory() as folder:
        command = [SEQUITUR, "serve", "--port", "0", "--data-dir", folder]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as page:
            assert page.stderr
            try:
                found = re.search(r"http://\S+", page.stderr.readline())
                assert found
                with urlopen(found[0], timeout=60) as answer:
                    assert b"Sequitur" in answer.read()
            finally:
                page.kill()


def check() -> None:
    assert CHECKOUT not in (INSTALLED, *Path.cwd().parents, Path.cwd()), "this is the checkout, not an installation"
    checks = (every_file_is_there, a_prompt_is_rendered, the_weights_judge, the_command_is_there, the_page_is_served)
    for checked in checks:
        checked()
        sys.stdout.write(checked.__name__.replace("_", " ") + "\n")


if __name__ == "__main__":
    check()
