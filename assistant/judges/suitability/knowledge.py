"""What the judge by tags has learned of facts and of things: networks, curves and known things, in one folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assistant.errors import ModelError
from assistant.judges.suitability.names import plain

SHIPPED = Path(__file__).parents[1] / "shipped" / "suitability"
ARRAYS, NOTES, NAMES = "knowledge.npz", "judge.json", "names.txt"

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """One hidden layer with ReLU and a logistic curve an output: `first` (h, d + 1), `second` (k, h + 1)."""

    first: Array
    second: Array

    def __call__(self, vectors: Array) -> Array:
        """Probabilities (n, k) for vectors (n, d)."""
        hidden_layer = np.maximum(linear(vectors, self.first), 0)
        return sigmoid(linear(hidden_layer, self.second))


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What was learned, for embeddings of `dimension` d from the embedder that is named.

    `groups` tells which of G groups a fact belongs to; `rules` (G, T) says which of T tags each group rules out. `tags`
    are the tags' names. `things` (n, d) are known things, `names` (n) their names, `has` (n, T) their tags. `marks`
    tells the tags of a name or text from its embedding. `named` (d + 1,) is the logistic curve for whether a fact, with
    the name hidden, rules out what it names; `offers` is the one for whether a text offers it. `mix` weighs the signals
    of a pair. `ordinary` are plain words of facts that name nothing: "allergic", "hate".
    """

    groups: Network
    rules: Array
    names: tuple[str, ...]
    tags: tuple[str, ...]
    things: Array
    has: Array
    marks: Network
    named: Array
    offers: Array
    mix: Array
    ordinary: frozenset[str]
    embedder: str
    threshold: float
    chosen_on: str

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The positions of the things with each plain name."""
        positions: dict[str, list[int]] = {}
        for n, name in enumerate(self.names):
            positions.setdefault(plain(name), []).append(n)
        return positions

    @cached_property
    def tag_places(self) -> dict[str, int]:
        """The position of the tag with each plain name."""
        return {plain(tag): n for n, tag in enumerate(self.tags)}

    def save(self, folder: Path) -> None:
        """Write it into the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        scale = np.abs(self.things).max() / 127
        arrays: dict[str, Any] = {
            "things": np.round(self.things / scale).astype(np.int8),
            "scale": np.array([scale], np.float32),
            "has": np.round(self.has * 2).astype(np.uint8),
            **{name: getattr(self, name).astype(np.float16) for name in _ARRAYS},
            **{f"{net}_{n}": getattr(getattr(self, net), n).astype(np.float16) for net in _NETWORKS for n in _LAYERS},
        }
        np.savez_compressed(folder / ARRAYS, **arrays)
        (folder / NAMES).write_text("\n".join(self.names) + "\n", encoding="utf-8")
        notes = {name: getattr(self, name) for name in _NOTES} | {
            "tags": " ".join(t.replace(" ", "_") for t in self.tags),
            "ordinary": " ".join(sorted(self.ordinary)),
        }
        (folder / NOTES).write_text(json.dumps(notes, indent=2) + "\n", encoding="utf-8")

    @staticmethod
    def load(folder: Path) -> Knowledge:
        """Read what `save` wrote.

        Raises:
            ModelError: it is missing or broken.
        """
        try:
            notes = json.loads((folder / NOTES).read_text(encoding="utf-8"))
            names_read = tuple((folder / NAMES).read_text(encoding="utf-8").splitlines())
            with np.load(folder / ARRAYS) as archive:
                arrays = {name: archive[name].astype(np.float32) for name in archive.files}
            if not len(names_read) == len(arrays["things"]) == len(arrays["has"]):
                raise ValueError("its names and things differ in number")  # noqa: TRY301
            parts: dict[str, Any] = {
                **{name: arrays[name] for name in _ARRAYS},
                **{net: Network(*(arrays[f"{net}_{n}"] for n in _LAYERS)) for net in _NETWORKS},
                **{name: notes[name] for name in _NOTES},
            }
            return Knowledge(
                names=names_read,
                tags=tuple(tag.replace("_", " ") for tag in notes["tags"].split()),
                things=arrays["things"] * arrays["scale"],
                has=arrays["has"] / 2,
                ordinary=frozenset(notes["ordinary"].split()),
                **parts,
            )
        except Exception as error:  # a broken archive may raise anything
            problem = f"{folder} holds no complete judge ({error}); get or train it again."
            raise ModelError(f"The suitability judge can't be used: {problem}") from error


_ARRAYS = ("rules", "named", "offers", "mix")
_NETWORKS, _LAYERS = ("groups", "marks"), ("first", "second")
_NOTES = ("embedder", "threshold", "chosen_on")


def linear(vectors: Array, weights: Array) -> Array:
    """Logits (n, k) of vectors (n, d) by `weights` (k, d + 1), whose last column is the bias."""
    logits: Array = np.asarray(vectors @ weights[:, :-1].T + weights[:, -1])
    return logits


def sigmoid(logits: Array) -> Array:
    """The probabilities that belong to logits, of the same shape."""
    probabilities: Array = np.asarray(1 / (1 + np.exp(-np.clip(logits, -30, 30))), np.float32)
    return probabilities
