"""A mixture of Gaussians: the log posterior with a Wishart prior, and its gradient.

Parameters of component k: weight alpha_k (softmax of all is the mixture), mean mu_k, and a lower
triangular Q_k that factors the precision, Q_k^T Q_k, with diagonal exp(q_k) and l_k below it (rows
in order).  For points x_1 .. x_n in d dimensions

    log p  =  sum_i logsumexp_k(alpha_k + sum(q_k) - |Q_k (x_i - mu_k)|^2 / 2)
              - n logsumexp(alpha) - n d/2 log(2 pi)  +  sum_k log Wishart(Q_k^T Q_k; gamma, m)

and, with p = d + m + 1 degrees of freedom and scale matrix I / gamma^2,

    log Wishart  =  m sum(q_k) - gamma^2 |Q_k|^2 / 2 + p d (log gamma - log(2) / 2) - log Gamma_d(p/2).
"""  # noqa: E501

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bench.adbench import Problem, gradient_of, one_row, tensors


def instance(rng: Any, n: int = 20, d: int = 3, k: int = 4) -> dict[str, Any]:
    """n points in d dimensions, k components."""
    return {
        "alpha": rng.normal(size=k), "mu": rng.normal(size=(k, d)),
        "q": rng.normal(size=(k, d)) * 0.3, "l": rng.normal(size=(k, d * (d - 1) // 2)),
        "x": rng.normal(size=(n, d)), "gamma": 1.2, "m": 2,
    }  # fmt: skip


def log_multigamma(a: float, d: int) -> float:
    """log Gamma_d(a), the multivariate gamma function."""
    return d * (d - 1) / 4 * math.log(math.pi) + sum(math.lgamma(a - j / 2) for j in range(d))


def places(d: int) -> Any:
    """Where element (row, column) of Q is in the vector (0, exp(q), l): int array (d, d)."""
    index = np.zeros((d, d), np.int64)
    index[np.diag_indices(d)] = 1 + np.arange(d)
    index[np.tril_indices(d, -1)] = 1 + d + np.arange(d * (d - 1) // 2)
    return index


def problem(torch: Any, data: dict[str, Any]) -> Problem:
    """The log posterior in (alpha, mu, q, l)."""
    t = tensors(torch, data)
    x, gamma, m = t["x"], t["gamma"], t["m"]
    n, d = x.shape
    k = len(t["alpha"])
    index = torch.from_numpy(places(d).reshape(-1))
    zero = torch.zeros(k, 1, dtype=x.dtype)
    p = d + m + 1
    constant = k * (
        p * d * (math.log(gamma) - math.log(2) / 2) - log_multigamma(p / 2, d)
    ) - n * d / 2 * math.log(2 * math.pi)

    def value(alpha: Any, mu: Any, q: Any, low: Any) -> Any:
        diagonal = torch.exp(q)
        factors = torch.cat([zero, diagonal, low], 1)[:, index].reshape(k, d, d)
        centred = x[None] - mu[:, None]  # (k, n, d)
        mapped = centred @ factors.transpose(1, 2)
        logs = q.sum(1)
        inner = (alpha + logs)[:, None] - 0.5 * (mapped**2).sum(2)
        likelihood = torch.logsumexp(inner, 0).sum() - n * torch.logsumexp(alpha, 0)
        prior = m * logs.sum() - 0.5 * gamma**2 * ((diagonal**2).sum() + (low**2).sum())
        return likelihood + prior + constant

    inputs = [t["alpha"], t["mu"], t["q"], t["l"]]
    return Problem(inputs, value, lambda: gradient_of(torch, inputs, value), one_row)
