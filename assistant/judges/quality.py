"""Tells reliable passages from unreliable ones and junk by their words (Generate-Retrieve-Generate, section 2.2.4).

TF-IDF and logistic regression. A passage's length has no influence: its vector has length 1. The classifier learns the
style of the sources that the labels came from, so a label means "written like an encyclopedia", not "true".
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from assistant.errors import DataError, ModelError, disk_errors_as

Label = Literal["reliable", "unreliable", "junk"]
LABELS: tuple[Label, ...] = ("reliable", "unreliable", "junk")
VERSION = 1
# Terms in fewer texts than this say little of any other text.
RAREST = 3
STRENGTH = 10.0
# Marks that a usual collection of Wikipedia puts into its texts ("<unk>", "well @-@ known"); learned, they would tell
# the collection and not the style.
_MARKS = {"<unk>": "", "@-@": "-", "@,@": ",", "@.@": "."}


@dataclass(frozen=True, slots=True)
class Judgement:
    """The label of a passage, and the model's probability for it, in [1/3, 1]."""

    label: Label
    probability: float


@dataclass(frozen=True, eq=False)
class Classifier:
    """A trained model: the `idf` of its `terms`, shape (terms,); `weights`, (terms, labels); `bias`, (labels,)."""

    terms: tuple[str, ...]
    idf: NDArray[np.float32]
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]

    def judge(self, texts: Sequence[str]) -> list[Judgement]:
        """The most likely label of each text."""
        return [
            Judgement(LABELS[int(row.argmax())], float(row.max()))
            for row in (self.probabilities(texts) if texts else ())
        ]

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Shape (len(texts), labels), in the order of `LABELS`; each row sums to 1."""
        scores = np.asarray(self._vectors.transform(texts) @ self.weights, dtype=np.float64) + self.bias
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return cast("NDArray[np.float64]", odds / odds.sum(axis=1, keepdims=True))

    def save(self, path: Path) -> None:
        """Write the model as plain arrays (.npz), which load without running anything.

        Raises:
            ModelError: the file can't be written.
        """
        terms = np.frombuffer("\n".join(self.terms).encode(), dtype=np.uint8)
        with disk_errors_as(ModelError, f"The model can't be written to {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                np.savez_compressed(
                    file,
                    version=np.array(VERSION),
                    terms=terms,
                    idf=self.idf,
                    weights=self.weights,
                    bias=self.bias,
                )

    @staticmethod
    def load(path: Path) -> Classifier:
        """The model that `save` wrote.

        Raises:
            ModelError: the file can't be read, or is no such model or one of another version.
        """
        try:
            with np.load(path, allow_pickle=False) as archive:
                version, arrays = int(archive["version"]), {name: archive[name] for name in archive.files}
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile, zlib.error) as error:
            raise ModelError(f"{path} is no model of passage quality ({error}); {_AGAIN}.") from error
        if version != VERSION:
            raise ModelError(f"{path} is a model of version {version}, not {VERSION}; {_AGAIN}.")
        return _checked(path, arrays)

    @cached_property
    def _vectors(self) -> Any:
        vectors = _vectorizer(vocabulary=self.terms)
        vectors.idf_ = self.idf
        return vectors


_AGAIN = "train it with: python -m assistant train quality --data FILE --out FILE"


def fit(texts: Sequence[str], labels: Sequence[Label]) -> Classifier:
    """Learn from labelled texts.

    Raises:
        DataError: a label has no text, or no term occurs often enough to be learned from.
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - a second to import

    missing = [label for label in LABELS if label not in labels]
    if missing:
        raise DataError(f"No text is labelled {' or '.join(missing)}; all of {', '.join(LABELS)} are needed.")
    vectors = _vectorizer(min_df=RAREST)
    try:
        matrix = vectors.fit_transform(texts)
    except ValueError as error:
        raise DataError(f"No word is in {RAREST} of the {len(texts)} texts; give more of them.") from error
    # A label has as many texts as somebody happened to collect, which says nothing of passages to come.
    model = LogisticRegression(C=STRENGTH, class_weight="balanced", max_iter=1000)
    model.fit(matrix, [LABELS.index(label) for label in labels])
    terms = tuple(str(term) for term in vectors.get_feature_names_out())
    idf, weights, bias = (
        np.asarray(array, dtype=np.float32) for array in (vectors.idf_, model.coef_.T, model.intercept_)
    )
    return Classifier(terms, idf, weights, bias)


def _vectorizer(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415

    return TfidfVectorizer(preprocessor=_normalised, sublinear_tf=True, **options)


def _normalised(text: str) -> str:
    for mark, char in _MARKS.items():
        text = text.replace(mark, char)
    return text.lower()


def _checked(path: Path, arrays: dict[str, NDArray[Any]]) -> Classifier:
    try:
        terms = tuple(arrays["terms"].tobytes().decode().split("\n"))
        model = Classifier(terms, arrays["idf"], arrays["weights"], arrays["bias"])
    except (KeyError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} is no model of passage quality ({error}); {_AGAIN}.") from error
    shapes = model.idf.shape, model.weights.shape, model.bias.shape
    if shapes != ((len(terms),), (len(terms), len(LABELS)), (len(LABELS),)):
        raise ModelError(f"{path} is a broken model: its arrays do not fit together; {_AGAIN}.")
    return model
