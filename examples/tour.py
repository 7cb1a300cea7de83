"""The tour: the founding programs, two real fits, a graph page and a loss plot (`make tour`)."""

from __future__ import annotations

import pathlib
import time

import matplotlib
import numpy as np
import scipy.optimize
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression, Ridge

import pullback as torch
from examples.founding_note import PROGRAMS

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

F = torch.nn.functional
OUT = pathlib.Path("out")
console = Console(width=100, highlight=False)


def founding_programs() -> None:
    """Run the note's programs and show their results."""
    console.rule("1. The founding note's programs")
    for program in PROGRAMS:
        console.print(f"[bold]{program.__name__}[/]: {program.__doc__}")
        for result in program():
            console.print(f"    {result}", markup=False)


class Network:
    """64 pixels -> 32 tanh units -> 10 digits."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.parameters = [
            (torch.randn(32, 64) / 8).requires_grad_(),
            torch.zeros(32, requires_grad=True),
            (torch.randn(10, 32) / 6).requires_grad_(),
            torch.zeros(10, requires_grad=True),
        ]

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        w1, b1, w2, b2 = self.parameters
        return F.linear(torch.tanh(F.linear(x, w1, b1)), w2, b2)


def fit_digits() -> tuple[Network, list[float]]:
    """Gradient descent on scikit-learn's bundled digits, beside its own linear classifier."""
    console.rule("2. Digits by gradient descent")
    data = load_digits()
    pixels, labels = (data.data / 16).astype(np.float32), data.target
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = order[:1400], order[1400:]
    x, y = torch.from_numpy(pixels[train]), torch.from_numpy(labels[train])
    network, losses = Network(), []
    start = time.perf_counter()
    with Progress(
        TextColumn("fitting"), BarColumn(), TextColumn("step {task.completed}/{task.total}"),
        TextColumn("loss {task.fields[loss]:.4f}"), TimeElapsedColumn(), console=console,
    ) as progress:  # fmt: skip
        task = progress.add_task("fit", total=400, loss=float("nan"))
        for _ in range(400):
            loss = F.cross_entropy(network(x), y)
            for p in network.parameters:
                p.grad = None
            loss.backward()
            with torch.no_grad():
                for p in network.parameters:
                    p -= 0.8 * p.grad
            losses.append(loss.item())
            progress.update(task, advance=1, loss=losses[-1])
    seconds = time.perf_counter() - start
    with torch.no_grad():
        guess = network(torch.from_numpy(pixels[test])).argmax(1).numpy()
    ours = float((guess == labels[test]).mean())
    peer = LogisticRegression(max_iter=2000).fit(pixels[train], labels[train])
    theirs = float(peer.score(pixels[test], labels[test]))
    console.print(
        f"400 steps in {seconds:.2f} s; accuracy on {len(test)} digits not seen: Pullback's "
        f"network {ours:.1%}, scikit-learn's LogisticRegression {theirs:.1%}"
    )
    return network, losses


def fit_diabetes() -> None:
    """Ridge regression by SciPy with our exact gradient: the optimum that scikit-learn computes."""
    console.rule("3. Diabetes by scipy.optimize.minimize(jac=True)")
    data = load_diabetes()
    x = torch.from_numpy(data.data)
    y = torch.from_numpy(data.target)
    alpha = 0.1

    def objective(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        p = torch.tensor(parameters, requires_grad=True)
        w, b = p[:-1], p[-1]
        loss = torch.square(x @ w + b - y).sum() + alpha * torch.dot(w, w)
        loss.backward()
        return loss.item(), p.grad.numpy()

    start = time.perf_counter()
    found = scipy.optimize.minimize(
        objective, np.zeros(data.data.shape[1] + 1), jac=True, method="L-BFGS-B",
        options={"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-8},
    )  # fmt: skip
    seconds = time.perf_counter() - start
    peer = Ridge(alpha=alpha).fit(data.data, data.target)
    table = Table("feature", "Pullback + SciPy", "scikit-learn Ridge", "difference")
    names = [*data.feature_names, "intercept"]
    theirs = np.append(peer.coef_, peer.intercept_)
    for name, a, b in zip(names, found.x, theirs, strict=True):
        table.add_row(name, f"{a:.4f}", f"{b:.4f}", f"{abs(a - b):.1e}")
    console.print(table)
    worst = float(np.abs(found.x - theirs).max() / np.abs(theirs).max())
    console.print(
        f"{found.nit} iterations, {found.nfev} gradients in {seconds:.2f} s; the largest relative "
        f"difference of a coefficient is {worst:.1e}"
    )
    if worst > 1e-3:
        raise SystemExit("the fit does not agree with scikit-learn's")


def pictures(network: Network, losses: list[float]) -> None:
    """The graph of one loss as a page, and the losses as a plot."""
    console.rule("4. Pictures")
    OUT.mkdir(exist_ok=True)
    x, y = torch.rand(5, 64), torch.arange(5)
    loss = F.cross_entropy(network(x), y)
    names = dict(zip(("w1", "b1", "w2", "b2"), network.parameters, strict=True))
    graph = torch.graph(loss, names={**names, "loss": loss})
    graph.save(OUT / "graph.html")
    console.print(str(graph), markup=False, soft_wrap=True)
    plt.figure(figsize=(6, 4))
    plt.plot(losses)
    plt.xlabel("step")
    plt.ylabel("cross entropy")
    plt.yscale("log")
    plt.title("Digits by gradient descent")
    plt.tight_layout()
    plt.savefig(OUT / "loss.png", dpi=120)
    console.print(f"graph page: {(OUT / 'graph.html').resolve()}", soft_wrap=True)
    console.print(f"loss plot:  {(OUT / 'loss.png').resolve()}", soft_wrap=True)


def main() -> None:
    """Everything in turn."""
    founding_programs()
    network, losses = fit_digits()
    fit_diabetes()
    pictures(network, losses)


if __name__ == "__main__":
    main()
