"""Function transforms against `torch.func`: `python -m bench.transforms`."""

from __future__ import annotations

from bench.measure import medians, one_core

one_core()

from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import torch  # noqa: E402

import pullback  # noqa: E402

torch.set_num_threads(1)
Call = Callable[[], object]
RNG = np.random.default_rng(0)


def rosenbrock(x: Any) -> Any:
    """A chain of n - 1 coupled terms."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def hessian(T: Any) -> Call:
    x = T.tensor(RNG.standard_normal(100))
    h = T.func.hessian(rosenbrock)
    return lambda: h(x)


def hvp_forward(T: Any) -> Call:
    x, v = T.tensor(RNG.standard_normal(10**6)), T.tensor(RNG.standard_normal(10**6))
    gradient = T.func.grad(rosenbrock)
    return lambda: T.func.jvp(gradient, (x,), (v,))[1]


def hvp_reverse(T: Any) -> Call:
    x, v = T.tensor(RNG.standard_normal(10**6)), T.tensor(RNG.standard_normal(10**6))
    gradient = T.func.grad(rosenbrock)
    return lambda: T.func.vjp(gradient, x)[1](v)[0]


def jacobian(name: str) -> Callable[[Any], Call]:
    def work(T: Any) -> Call:
        w = T.tensor(RNG.standard_normal((200, 200)) / 14)
        x = T.tensor(RNG.standard_normal(200))
        j = getattr(T.func, name)(lambda x: T.tanh(w @ T.tanh(w @ x)))
        return lambda: j(x)

    return work


def per_example(T: Any) -> Call:
    shapes = ((128, 784), (128,), (10, 128), (10,))
    params = tuple(T.tensor(RNG.standard_normal(s).astype(np.float32) * 0.05) for s in shapes)
    x = T.tensor(RNG.standard_normal((256, 784)).astype(np.float32))
    y = T.nn.functional.one_hot(T.tensor(RNG.integers(0, 10, 256)), 10)

    def loss(p: Any, x: Any, y: Any) -> Any:
        hidden = T.relu(x @ p[0].T + p[1])
        return -(T.log_softmax(hidden @ p[2].T + p[3], -1) * y).sum()

    gradients = T.func.vmap(T.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: gradients(params, x, y)


WORKLOADS: list[tuple[str, Callable[[Any], Call]]] = [
    ("hessian of Rosenbrock, n=100", hessian),
    ("Hessian-vector, n=1e6, jvp(grad)", hvp_forward),
    ("Hessian-vector, n=1e6, vjp(grad)", hvp_reverse),
    ("jacrev 200 to 200", jacobian("jacrev")),
    ("jacfwd 200 to 200", jacobian("jacfwd")),
    ("vmap(grad), MLP, batch 256", per_example),
]


def main() -> None:
    """Print the table; the bound of each is 0.7."""
    print(f"{'workload':<36} {'torch.func':>12} {'ratio':>7}")
    for name, work in WORKLOADS:
        found = medians({"torch": work(torch), "pullback": work(pullback)}, 21)
        ratio = found["pullback"] / found["torch"]
        print(f"{name:<36} {found['torch'] * 1e6:10.1f}us {ratio:7.3f}", flush=True)


if __name__ == "__main__":
    main()
