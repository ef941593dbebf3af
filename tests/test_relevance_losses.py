"""The losses and their gradients, against equations 5 to 10 written out for three contexts."""

from math import exp, inf, log

import pytest
import torch

from assistant.training.relevance.losses import generation_loss, loss, relevance_loss

SCORES = [0.5, -1.0, 2.0]
LIKELIHOODS = [log(0.6), log(0.1), log(0.02)]
ALL = torch.ones(1, 3, dtype=torch.bool)


def softmax(values: list[float]) -> list[float]:
    total = sum(exp(value) for value in values)
    return [exp(value) / total for value in values]


def tensors(scores: list[float] = SCORES, logs: list[float] = LIKELIHOODS) -> tuple[torch.Tensor, torch.Tensor]:
    made = [torch.tensor([values], dtype=torch.float64, requires_grad=True) for values in (scores, logs)]
    return made[0], made[1]


def test_generation_loss_and_its_gradients() -> None:
    scores, logs = tensors()
    found = generation_loss(scores, logs, ALL)
    found.backward()
    w, g = softmax(SCORES), [exp(one) for one in LIKELIHOODS]
    p = sum(wj * gj for wj, gj in zip(w, g, strict=True))
    assert found.item() == pytest.approx(-log(p))
    # d/ds_j of -log sum_i w_i g_i = -w_j (g_j - p) / p, and d/dF_j = -w_j g_j / p
    assert scores.grad[0].tolist() == pytest.approx([-wj * (gj - p) / p for wj, gj in zip(w, g, strict=True)])
    assert logs.grad[0].tolist() == pytest.approx([-wj * gj / p for wj, gj in zip(w, g, strict=True)])


def test_relevance_loss_and_its_gradients() -> None:
    scores, logs = tensors()
    found = relevance_loss(scores, logs, ALL)
    found.backward()
    p, q = softmax(SCORES), softmax(LIKELIHOODS)
    ratio = [log(pj / qj) for pj, qj in zip(p, q, strict=True)]
    kl = sum(pj * rj for pj, rj in zip(p, ratio, strict=True))
    assert found.item() == pytest.approx(kl)
    # d/ds_j of KL(p || q) = p_j (log(p_j / q_j) - KL), and d/dF_j = q_j - p_j
    assert scores.grad[0].tolist() == pytest.approx([pj * (rj - kl) for pj, rj in zip(p, ratio, strict=True)])
    assert logs.grad[0].tolist() == pytest.approx([qj - pj for pj, qj in zip(p, q, strict=True)])


def test_the_divergence_is_from_estimator_to_generator_not_the_other_way() -> None:
    p, q = softmax(SCORES), softmax(LIKELIHOODS)
    other_way = sum(qj * log(qj / pj) for pj, qj in zip(p, q, strict=True))
    assert relevance_loss(*tensors(), ALL).item() != pytest.approx(other_way, abs=0.1)


def test_both_are_summed_and_questions_are_averaged() -> None:
    scores, logs = tensors()
    parts = generation_loss(scores, logs, ALL).item(), relevance_loss(scores, logs, ALL).item()
    assert loss(scores, logs, ALL).item() == pytest.approx(sum(parts))
    assert loss(scores, logs, ALL, weight=0.5).item() == pytest.approx(parts[0] + parts[1] / 2)
    twice = [torch.cat([one, one + torch.tensor([[-1.0, 0.0, -2.0]])]) for one in (scores, logs)]
    second = loss(twice[0][1:], twice[1][1:], ALL).item()
    assert loss(*twice, ALL.repeat(2, 1)).item() == pytest.approx((sum(parts) + second) / 2)


def test_contexts_that_are_missing_change_nothing() -> None:
    scores, logs = tensors([*SCORES, 7.0], [*LIKELIHOODS, -0.01])
    present = torch.tensor([[True, True, True, False]])
    found = loss(scores, logs, present)
    found.backward()
    assert found.item() == pytest.approx(loss(*tensors(), ALL).item())
    assert scores.grad[0, 3].item() == logs.grad[0, 3].item() == 0
    assert scores.grad.isfinite().all()


def test_impossible_answers_leave_everything_finite() -> None:
    for likelihoods in ([log(0.6), -inf, log(0.1)], [-inf, -inf, -inf]):
        scores, logs = tensors(logs=likelihoods)
        found = loss(scores, logs, ALL)
        found.backward()
        assert found.isfinite()
        assert scores.grad.isfinite().all()
    # where every answer is impossible the generator tells nothing apart: L_gen can't either
    scores, logs = tensors(logs=[-inf] * 3)
    generation_loss(scores, logs, ALL).backward()
    assert scores.grad[0].tolist() == pytest.approx([0, 0, 0])
