"""Teaches small networks of one hidden layer, and logistic curves, from embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from torch.nn.functional import binary_cross_entropy_with_logits

from assistant.judges.suitability.knowledge import Network

Array = NDArray[np.float32]
HIDDEN, DROPOUT, DECAY, RATE, BATCH = 256, 0.3, 1e-3, 3e-3, 256


def train_network(vectors: Array, labels: Array, epochs: int, seed: int, noise: float = 0.0) -> Network:
    """Learn k labels in [0, 1] (n, k) of vectors (n, d); a label that isn't a number counts for nothing.

    `noise` is the length of what is added to each vector at random, so that what is near to it is learned too.
    """
    torch.manual_seed(seed)
    scale = vectors.shape[1] ** 0.5  # of vectors of length 1, numbers about 1 are learned from faster
    inputs, targets = torch.from_numpy(vectors) * scale, torch.from_numpy(labels)
    hidden_layer, output_layer = torch.nn.Linear(inputs.shape[1], HIDDEN), torch.nn.Linear(HIDDEN, targets.shape[1])
    layers = torch.nn.Sequential(hidden_layer, torch.nn.ReLU(), torch.nn.Dropout(DROPOUT), output_layer)
    steps = epochs * -(-len(inputs) // BATCH)
    optimizer = torch.optim.AdamW(layers.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=RATE, total_steps=steps)
    for _ in range(epochs):
        for batch in torch.randperm(len(inputs)).split(BATCH):  # type: ignore[no-untyped-call]
            noisy = inputs[batch] + noise * torch.randn(len(batch), inputs.shape[1])
            known_mask = ~targets[batch].isnan()
            losses = binary_cross_entropy_with_logits(layers(noisy), targets[batch].nan_to_num(), reduction="none")
            loss = (losses * known_mask).sum() / len(batch)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return Network(
        _weights(hidden_layer.weight * scale, hidden_layer.bias), _weights(output_layer.weight, output_layer.bias)
    )


def fit_logistic_curve(vectors: Array, labels: Sequence[bool], balance: Literal["balanced"] | None = None) -> Array:
    """The weights (d + 1,) of a logistic curve, the intercept last; both labels count the same if "balanced"."""
    regression = LogisticRegression(C=10, max_iter=1000, class_weight=balance).fit(vectors, labels)
    return np.append(regression.coef_[0], regression.intercept_).astype(np.float32)


def _weights(weight: torch.Tensor, bias: torch.Tensor) -> Array:
    matrix: Array = np.column_stack([weight.detach().numpy(), bias.detach().numpy()]).astype(np.float32)
    return matrix
