"""`explain(t)`: in plain words, whether and why a tensor has a gradient (layer 4)."""

from __future__ import annotations

from typing import Any

from pullback.api import arguments
from pullback.core import dtypes
from pullback.core.callsite import CallSite
from pullback.eager.node import REASONS, AccumulateGrad, Node, Origin, changed_at
from pullback.eager.tensor import Tensor, gradient_edge


class Explanation:
    """Sentences about one tensor; prints as text.  `facts` names them for programs."""

    def __init__(self, sentences: list[str], facts: dict[str, Any]) -> None:
        self.sentences = sentences
        self.facts = facts

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    __repr__ = __str__


def explain(tensor: Any, output: Any = None) -> Explanation:
    """Why `tensor` has, or lacks, a gradient.

    tensor: Tensor - the one that surprises you.
    output: Tensor, optional - a result (a loss); then also whether it depends on `tensor`.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> print(pullback.explain(x))
    A leaf of shape [2] and dtype torch.float32 that requires grad.
    Its .grad is None: no backward pass has reached it yet.
    """
    t = arguments.tensor(tensor, "explain", "tensor")
    sentences: list[str] = []
    facts: dict[str, Any] = {"requires_grad": t._requires_grad, "leaf": t.is_leaf}
    described = f"of shape {list(t.shape)} and dtype {t.dtype}"
    if not t._requires_grad:
        _without_grad(t, described, sentences, facts)
    elif t.is_leaf:
        sentences.append(f"A leaf {described} that requires grad.")
        _about_grad(t, sentences, facts)
    else:
        node = gradient_edge(t)[0]
        sentences.append(
            f"A result {described}, made by {type(node).__name__} at {node.call_site}. It is not a "
            "leaf, so backward() passes its gradient on and keeps none"
            + (": retain_grad() was called, so .grad is kept." if t.retains_grad
               else " (call retain_grad() before backward() to keep it).")
        )  # fmt: skip
        facts["made_at"] = node.call_site
        _about_graph(node, sentences, facts)
    if t._counter is not None and t._counter[0]:
        site = changed_at(t._counter)
        sentences.append(
            f"Its memory was changed in place {t._counter[0]} time(s)"
            + (f", the last time at {site}." if site else ".")
        )
        facts["changed_at"] = site
    if output is not None:
        _about_output(t, arguments.tensor(output, "explain", "output"), sentences, facts)
    return Explanation(sentences, facts)


def _without_grad(t: Tensor, described: str, sentences: list[str], facts: dict[str, Any]) -> None:
    origin = t._edge
    if isinstance(origin, Origin):
        facts["reason"], facts["cut_at"] = origin.reason, origin.call_site
        cure = {
            "detach": "use the tensor before detach() where the gradient should flow",
            "no_grad": "compute it outside no_grad()",
            "integer": "only floating point and complex values have derivatives",
            "nondifferentiable": "the operation is constant wherever it has a derivative",
        }[origin.reason]
        sentences.append(
            f"A tensor {described} without a gradient: it was {REASONS[origin.reason]} at "
            f"{origin.call_site}, or computed from such a tensor. To get one, {cure}."
        )
    elif not dtypes.is_differentiable(t._data.dtype):
        facts["reason"] = "integer"
        sentences.append(
            f"A tensor {described} without a gradient: only floating point and complex tensors "
            "can require grad. Convert it first, for instance with .float()."
        )
    else:
        facts["reason"] = "constant"
        sentences.append(
            f"A leaf {described} that does not require grad: nothing it came from did either. "
            "Call requires_grad_() before using it."
        )
    if t._grad is not None:
        sentences.append("It has a .grad from an earlier time.")


def _about_grad(t: Tensor, sentences: list[str], facts: dict[str, Any]) -> None:
    facts["has_grad"] = t._grad is not None
    if t._grad is not None:
        sentences.append(
            "Its .grad is set: gradients of further backward passes are added to it (zero_() it, "
            "or set it to None, in between)."
        )
        return
    accumulator = t._rare.accumulator() if t._rare is not None and t._rare.accumulator else None
    facts["used"] = accumulator is not None
    sentences.append(
        "Its .grad is None: "
        + ("it is used in a graph, but no backward pass has reached it yet."
           if accumulator is not None else "no backward pass has reached it yet.")
    )  # fmt: skip


def _walk(node: Node) -> list[Node]:
    """All nodes that a node depends on, itself first."""
    seen = {node}
    stack, found = [node], []
    while stack:
        n = stack.pop()
        found.append(n)
        for edge in n.edges:
            if type(edge) is tuple and edge[0] not in seen:
                seen.add(edge[0])
                stack.append(edge[0])
    return found


def _sites(items: list[CallSite]) -> str:
    unique = list(dict.fromkeys(str(s) for s in items))
    more = f" (and {len(unique) - 3} more)" if len(unique) > 3 else ""
    return "; ".join(unique[:3]) + more


def _about_graph(node: Node, sentences: list[str], facts: dict[str, Any]) -> None:
    nodes = _walk(node)
    leaves = [n for n in nodes if isinstance(n, AccumulateGrad)]
    sentences.append(
        f"Its graph has {len(nodes) - len(leaves)} operation(s) and reaches {len(leaves)} "
        f"leaf/leaves: shapes {', '.join(str(list(n.shape)) for n in leaves[:5])}."
    )
    facts["leaves"] = [n.variable for n in leaves]
    freed = [n for n in nodes if n.freed]
    facts["freed"] = bool(freed)
    if freed:
        sentences.append(
            "Saved values were freed by an earlier backward(): another pass over "
            f"{type(freed[0]).__name__} at {freed[0].call_site} needs retain_graph=True in the "
            "first."
        )
    stale = [(n, c) for n in nodes for c, number in n.versions if int(c[0]) != int(number)]
    facts["overwritten"] = bool(stale)
    for n, counter in stale[:3]:
        sentences.append(
            f"backward() will fail: a value that {type(n).__name__} saved at {n.call_site} was "
            f"overwritten in place at {changed_at(counter)}."
        )
    cuts = [e for n in nodes for e in n.edges if isinstance(e, Origin)]
    facts["cuts"] = cuts
    if cuts:
        for reason in dict.fromkeys(c.reason for c in cuts):
            sites = [c.call_site for c in cuts if c.reason == reason]
            sentences.append(f"The graph ends at values {REASONS[reason]} at {_sites(sites)}.")


def _about_output(t: Tensor, output: Tensor, sentences: list[str], facts: dict[str, Any]) -> None:
    if not output._requires_grad:
        facts["reached"] = False
        sentences.append("The output itself does not require grad: explain(output) says why.")
        return
    if not t._requires_grad:
        facts["reached"] = False
        return
    nodes = set(_walk(gradient_edge(output)[0]))
    facts["reached"] = gradient_edge(t)[0] in nodes
    if facts["reached"]:
        sentences.append("The output depends on it.")
        return
    cuts = [e.call_site for n in nodes for e in n.edges if isinstance(e, Origin)]
    sentences.append(
        "The output does not depend on it through recorded operations"
        + (f"; the graph of the output was cut at {_sites(cuts)}." if cuts else ".")
    )



