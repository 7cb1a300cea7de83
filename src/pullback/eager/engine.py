"""The backward engine (layer 3): walks the graph from the roots and accumulates at the leaves.

A first pass counts each node's dependents; a second runs nodes whose dependents are all done,
highest sequence number first.  Both are loops, so depth costs no stack.  All state of a pass is
local to the call: passes may nest and may run in several threads over shared graphs.

In an ordinary pass cotangents are payloads (arrays) and rules run on arrays: no Tensor is made, and
nothing is recorded.  With `create_graph` they are Tensors, and the same rules record themselves.
"""

from __future__ import annotations

import sys
import threading
from contextvars import Context, copy_context
from heapq import heappop, heappush, heappushpop
from typing import Any

import numpy as np

from pullback.config import MODE, NO_GRAD
from pullback.core.callsite import at
from pullback.core.quiet import quiet, silent_context
from pullback.eager.node import LEAF, AccumulateGrad, Extras, Node
from pullback.eager.tensor import Tensor, untangled, wrap, wrap_with_edge
from pullback.errors import GraphError
from pullback.ops.broadcast import cast, sum_to

_ndarray = np.ndarray
_references = sys.getrefcount

# One lock per leaf would be paid for by every leaf; a few shared ones serve as well.
_LOCKS = tuple(threading.Lock() for _ in range(64))


class Request:
    """What a pass is asked for: which gradients to return instead of accumulating.

    `targets` maps a node to the output numbers wanted from it; `needed` is filled with the nodes
    that lead to a target.
    """

    __slots__ = ("targets", "captured", "needed", "accumulate")

    def __init__(self, edges: list[tuple[Node, int]], accumulate: bool) -> None:
        self.targets: dict[Node, list[int]] = {}
        for node, number in edges:
            self.targets.setdefault(node, []).append(number)
        self.captured: dict[tuple[Node, int], Any] = {}
        self.needed: set[Node] = set()
        self.accumulate = accumulate  # at targets that are leaves: `backward(inputs=...)`


def held_once(buffers: dict[Node, Any], node: Node) -> int:
    """The number of references to the buffer of `node`, seen from this function."""
    return _references(buffers[node])


def _calibrate() -> int:
    """What `held_once` gives for an array that nothing but the dict holds."""
    buffers: dict[Any, Any] = {None: np.empty(1)}
    return held_once(buffers, None)  # type: ignore[arg-type]


SOLE = _calibrate()


def _calibrate_local() -> int:
    """The count of an array that one local variable holds: not the same in all Pythons."""
    buffers: dict[Any, Any] = {None: np.empty(1)}
    g = buffers.pop(None)
    return _references(g)


SOLE_LOCAL = _calibrate_local()


def count_dependents(roots: list[Node]) -> dict[Node, int]:
    """How many recorded uses each node reachable from the roots has within that graph."""
    counts: dict[Node, int] = dict.fromkeys(roots, 0)
    stack = list(counts)
    while stack:
        for edge in stack.pop().edges:
            if type(edge) is tuple:
                child = edge[0]
                n = counts.get(child)
                if n is None:
                    counts[child] = 1
                    stack.append(child)
                else:
                    counts[child] = n + 1
    return counts


def find_needed(counts: dict[Node, int], request: Request) -> None:
    """Mark the nodes that lead to a target: sequence numbers are a topological order."""
    targets, needed = request.targets, request.needed
    order = sorted(
        counts, key=lambda n: -1 if type(n) is AccumulateGrad else n.sequence
    )
    for node in order:
        if node in targets:
            needed.add(node)
            continue
        for edge in node.edges:
            if type(edge) is tuple and edge[0] in needed:
                needed.add(node)
                break


def run(
    roots: list[tuple[Node, int]],
    cotangents: list[Any],
    *,
    keep_graph: bool,
    create_graph: bool,
    request: Request | None = None,
) -> None:
    """One backward pass.  `cotangents` are payloads, or Tensors when `create_graph`.

    Raises GraphError over a freed graph or changed saved values; nodes that ran before the error
    keep what they have done, as in PyTorch.
    """
    # The pass runs in a context of its own; hooks run in the user's.
    user = copy_context()
    if not create_graph:
        walk = Pass(keep_graph, False, request, user).run
        if quiet.busy:  # a hook called backward: the context is in use
            silent_context().run(walk, roots, cotangents)
            return
        quiet.busy = True
        try:
            quiet.whole_pass(walk, roots, cotangents)
        finally:
            quiet.busy = False
        return
    token = MODE.set(MODE.get() & ~NO_GRAD)
    try:
        Pass(keep_graph, True, request, user).run(roots, cotangents)
    finally:
        MODE.reset(token)


class Pass:
    """The state of one pass."""

    __slots__ = (
        "keep", "create", "request", "counts", "buffers", "heap", "leaves", "user", "plain",
    )  # fmt: skip

    def __init__(
        self, keep: bool, create: bool, request: Request | None, user: Context
    ) -> None:
        self.keep = keep
        self.create = create
        self.request = request
        self.counts: dict[Node, int] = {}
        self.buffers: dict[Node, Any] = {}
        self.heap: list[tuple[int, Node]] = []
        self.leaves: list[Node] = []
        self.user = user
        self.plain = request is None and not create

    def run(self, roots: list[tuple[Node, int]], cotangents: list[Any]) -> None:
        """Count, seed, and work until nothing is ready."""
        counts = self.counts = count_dependents([node for node, _ in roots])
        if self.plain and len(roots) == 1 and roots[0][0].plan.is_plain:
            root = roots[0][0]
            self.buffers[root] = cotangents.pop()
            self.run_plain(root)
            return
        if self.request is not None:
            find_needed(counts, self.request)
        for (node, number), g in zip(roots, cotangents, strict=True):
            self.add(node, number, g)
        for node, _ in roots:
            if counts[node] == 0:
                counts[node] = -1  # a root given twice is ready once
                self.make_ready(node)
        del cotangents[:]  # the buffers are the only holders now
        if self.plain:
            self.run_plain(None)
            return
        heap, leaves = self.heap, self.leaves
        while True:
            while leaves:
                self.finish_leaf(leaves.pop())
            if not heap:
                return
            self.process(heappop(heap)[1])

    def run_plain(self, node: Any) -> None:
        """The loop of an ordinary pass.

        Nodes with one output, no joint rule and no hooks are run right here: a call per node, or
        per edge, would double the cost of a small graph.  Everything else goes to `process`.
        """
        buffers, counts, heap, leaves = self.buffers, self.counts, self.heap, self.leaves
        keep = self.keep
        g: Any = None
        end: Any
        while True:
            while leaves:
                end = leaves.pop()
                leaf = end.variable
                rare = leaf._rare
                if rare.hooks or rare.post_hooks or type(buffers.get(end)) is not _ndarray:
                    self.finish_leaf(end)
                else:
                    g = buffers.pop(end)
                    sole = _references(g) == SOLE_LOCAL  # not inside a call, whose stack counts
                    accumulate(leaf, g, sole, False)
            if node is None:
                if not heap:
                    return
                node = heappop(heap)[1]
            elif heap:
                node = heappushpop(heap, (-node.sequence, node))[1]
            plan = node.plan
            g = buffers.pop(node, None) if plan.is_plain else None
            if type(g) is not _ndarray:
                self.process(node, g)
                node = None
                continue
            saved = node.saved
            if saved is None:
                raise node.freed_error()
            for counter, number in node.versions:
                if counter[0] != number:
                    node.check_versions()
            edges = node.edges
            ready = None
            for i, rule, positions, position in plan.rules:
                if position >= 0:
                    r = rule(g, saved[position])
                elif positions:
                    r = rule(g, *[saved[j] for j in positions])
                else:
                    r = rule(g)
                child, number = edges[i]
                if r is not None:
                    if type(r) is not _ndarray:
                        r = as_array(r)
                    if child.plan.single:
                        if r.shape != child.shape or r.dtype is not child.dtype:
                            r = fit(r, node, i, child, number, False)
                        if child in buffers:
                            self.add(child, number, r)
                        else:
                            buffers[child] = r
                    else:
                        self.add(child, number, fit(r, node, i, child, number, False))
                    r = None  # a leaf takes over what nobody else holds
                n = counts[child] = counts[child] - 1
                if n == 0:
                    if child.plan is LEAF:
                        leaves.append(child)
                    elif ready is None:
                        ready = child
                    else:
                        heappush(heap, (-child.sequence, child))
            if plan.saves_values and not keep:
                node.saved = None
                node.versions = ()
            node = ready

    def make_ready(self, node: Node) -> None:
        """All dependents of `node` are done."""
        if type(node) is AccumulateGrad:
            self.leaves.append(node)
        else:
            heappush(self.heap, (-node.sequence, node))

    def add(self, node: Node, number: int, g: Any) -> None:
        """Add a cotangent to the buffer of a node's output."""
        buffers = self.buffers
        if node.plan.single:
            if node not in buffers:
                buffers[node] = g
            elif (
                type(g) is _ndarray
                and g.size > 256
                and held_once(buffers, node) == SOLE
                and owns(buffers[node])
            ):
                np.add(buffers[node], g, out=buffers[node])
            else:
                buffers[node] = as_array(buffers[node] + g)
            return
        slots = buffers.get(node)
        if slots is None:
            slots = buffers[node] = [None] * len(node.shape)
        slots[number] = g if slots[number] is None else as_array(slots[number] + g)

    # ------------------------------------------------------------ leaves
    def finish_leaf(self, node: Node) -> None:
        """Accumulate into a leaf, or hand the gradient to who asked for it."""
        assert isinstance(node, AccumulateGrad)
        steal = node in self.buffers and held_once(self.buffers, node) == SOLE
        g = self.buffers.pop(node, None)
        leaf = node.variable
        rare = leaf._rare
        if g is not None and rare is not None and rare.hooks:
            g = self.run_tensor_hooks(rare.hooks, g, leaf)
            steal = False
        request = self.request
        if request is not None:
            if node not in request.targets:
                return
            if not request.accumulate:
                request.captured[(node, 0)] = g
                return
        if g is not None:
            accumulate(leaf, g, steal, self.create)
            if rare is not None and rare.post_hooks:
                for hook in list(rare.post_hooks.values()):
                    self.call_user(hook, leaf)

    # ------------------------------------------------------------ inner nodes
    def process(self, node: Node, g: Any = None) -> None:
        """Run one node: hooks, captures, rules, and pass the results on."""
        request = self.request
        if g is None:
            g = self.buffers.pop(node, None)
        extras = node.plan.extras
        if extras is not None and g is not None:
            g = self.before_node(node, extras, g)
        if request is not None and node in request.targets:
            for number in request.targets[node]:
                request.captured[(node, number)] = (
                    g if node.plan.single or g is None else g[number]
                )
        if request is not None and not any(
            type(e) is tuple and e[0] in request.needed for e in node.edges
        ):
            results: Any = (None,) * len(node.edges)
        elif g is None:
            results = (None,) * len(node.edges)
        else:
            results = self.differentiate(node, g)
            if extras is not None and extras.post_hooks:
                results = self.after_node(extras, results, g)
        g = None
        for i, edge in enumerate(node.edges):
            if type(edge) is tuple:
                self.deliver(node, i, edge, results[i])

    def deliver(self, node: Node, i: int, edge: tuple[Node, int], r: Any) -> None:
        """Fit a result to the input it belongs to, and count the edge as done."""
        child, number = edge
        if r is not None and (self.request is None or child in self.request.needed):
            self.add(child, number, fit(r, node, i, child, number, self.create))
        n = self.counts[child] = self.counts[child] - 1
        if n == 0:
            self.make_ready(child)

    def differentiate(self, node: Node, g: Any) -> Any:
        """The cotangents of a node's inputs, aligned with its edges."""
        saved = node.saved
        if saved is None:
            raise node.freed_error()
        if node.versions:
            node.check_versions()
        plan = node.plan
        values = saved_as_tensors(node) if self.create else saved
        if not plan.single and plan.primitive.materialize:
            g = materialized(node, g, self.create)
        if plan.joint is not None:
            results = plan.joint(g, *[values[j] for j in plan.joint_positions])
        else:
            results = [None] * len(node.edges)
            request = self.request
            for i, rule, positions, _ in plan.rules:
                if request is None or node.edges[i][0] in request.needed:
                    results[i] = rule(g, *[values[j] for j in positions])
        if not self.keep and plan.saves_values:
            node.saved = None
            node.versions = ()
        return results

    # ------------------------------------------------------------ hooks
    def before_node(self, node: Node, extras: Extras, g: Any) -> Any:
        """Tensor hooks, pre-hooks and retained gradients of a node's outputs."""
        single = node.plan.single
        values = [g] if single else list(g)
        for number, hooks in extras.tensor_hooks.items():
            if values[number] is not None:
                values[number] = self.run_tensor_hooks(hooks, values[number], None)
        for number, reference in extras.retains.items():
            tensor = reference()
            if tensor is not None and values[number] is not None:
                kept = values[number]
                # The user may change .grad in place: it must not be a buffer of the pass.
                retained = kept if self.create else wrap(copy_payload(kept))
                before = tensor._grad  # later passes add up, as at a leaf
                tensor._grad = retained if before is None else before + retained
        if extras.pre_hooks:
            values = self.run_node_hooks(extras.pre_hooks, values, None)
        return values[0] if single else values

    def after_node(self, extras: Extras, results: Any, g: Any) -> Any:
        """Post-hooks of a node may replace the gradients of its inputs."""
        outputs = list(g) if isinstance(g, (list, tuple)) else [g]
        return self.run_node_hooks(extras.post_hooks, list(results), outputs)

    def run_node_hooks(self, hooks: dict[int, Any], values: list[Any], outputs: Any) -> list[Any]:
        """Call hooks with tuples of Tensors; a returned tuple replaces the first."""
        for hook in list(hooks.values()):
            mine = tuple(None if v is None else self.as_tensor(v) for v in values)
            if outputs is None:
                new = self.call_user(hook, mine)
            else:
                theirs = tuple(None if v is None else self.as_tensor(v) for v in outputs)
                new = self.call_user(hook, mine, theirs)
            if new is not None:
                new = new if isinstance(new, (tuple, list)) else (new,)
                values = [None if v is None else self.from_tensor(v) for v in new]
        return values

    def run_tensor_hooks(self, hooks: dict[int, Any], g: Any, leaf: Tensor | None) -> Any:
        """Call each hook with the gradient; what it returns replaces it."""
        for hook in list(hooks.values()):
            tensor = self.as_tensor(g)
            new = self.call_user(hook, tensor)
            if new is not None:
                check_hook_result(hook, new, tensor)
                g = self.from_tensor(new)
        return g

    def as_tensor(self, g: Any) -> Tensor:
        return g if isinstance(g, Tensor) else wrap(g)

    def from_tensor(self, value: Tensor) -> Any:
        return value if self.create else value._data

    def call_user(self, function: Any, *args: Any) -> Any:
        """Call a hook as the user would: in the user's context, recording if asked to."""
        mode = 0 if self.create else NO_GRAD
        return self.user.run(_call_in_mode, mode, function, args)


def _call_in_mode(mode: int, function: Any, args: tuple[Any, ...]) -> Any:
    token = MODE.set(MODE.get() & ~NO_GRAD | mode)
    try:
        return function(*args)
    finally:
        MODE.reset(token)


# -------------------------------------------------------------------- values
def as_array(value: Any) -> Any:
    """An array from a NumPy scalar or number; values of transforms stay."""
    return np.asarray(value) if isinstance(value, (np.generic, int, float, complex)) else value


def saved_as_tensors(node: Node) -> list[Any]:
    """What a node saved, as Tensors tied to the graph (for `create_graph`)."""
    plan = node.plan
    saved = node.saved
    assert saved is not None
    values = list(saved)
    for position, i in enumerate(plan.saved_inputs):
        values[position] = rewrap(saved[position], node.edges[i])
    start = len(plan.saved_inputs)
    for position, k in enumerate(plan.saved_outputs, start):
        values[position] = wrap_with_edge(saved[position], (node, k))
    return values


def rewrap(value: Any, edge: Any) -> Any:
    """A saved input as a Tensor with its old edge; the leaf itself where it is one."""
    if isinstance(value, (bool, int, float, complex)):
        return value
    if type(edge) is not tuple:
        return value if isinstance(value, Tensor) else wrap(value)
    node = edge[0]
    if type(node) is AccumulateGrad and node.variable._data is value:
        return node.variable
    return wrap_with_edge(value, edge)


def fit(r: Any, node: Node, i: int, child: Node, number: int, create: bool) -> Any:
    """A rule's result in the shape and dtype of the input that it belongs to."""
    single = child.plan.single
    shape = child.shape if single else child.shape[number]
    dtype = child.dtype if single else child.dtype[number]
    if create:
        if not isinstance(r, Tensor):
            r = wrap(np.asarray(r))
        payload = r._data
    else:
        payload = r = as_array(r)
    if payload.shape != shape:
        if not node.plan.broadcasts:
            raise GraphError(
                f"Function {node.name()} returned an invalid gradient at index {i} - got "
                f"{list(payload.shape)} but expected shape compatible with {list(shape)}"
                + at(node.call_site)
            )
        r = sum_to(r, shape)
    if payload.dtype is not dtype and payload.dtype != dtype:
        r = cast(r, dtype=dtype)
    return r if create else as_array(r)


def materialized(node: Node, g: list[Any], create: bool) -> tuple[Any, ...]:
    """Zeros for the outputs that nothing was asked of."""
    filled = []
    for k, value in enumerate(g):
        if value is None:
            zero = np.zeros(node.shape[k], node.dtype[k])
            value = wrap(zero) if create else zero
        filled.append(value)
    return tuple(filled)


def owns(array: Any) -> bool:
    """Whether an array has memory of its own that may be written."""
    return array.base is None and array.flags.writeable


def copy_payload(g: Any) -> Any:
    """A copy with real memory (no repeated elements); values of transforms are immutable."""
    return np.array(g, order="C") if type(g) is _ndarray else g


def accumulate(leaf: Tensor, g: Any, steal: bool, create: bool) -> None:
    """PyTorch's rules: the first gradient is taken over, or copied when anyone else holds it;
    later ones are added in place, or out of place when the result must stay differentiable."""
    with _LOCKS[(id(leaf) >> 6) & 63]:
        old = leaf._grad
        if create:
            leaf._grad = g if old is None else old + g
            return
        if old is None:
            if type(g) is not _ndarray:
                leaf._grad = wrap(untangled(g))
                return
            flags = g.flags
            if not (steal and flags.owndata and flags.c_contiguous and flags.writeable):
                data = leaf._data
                if type(data) is not _ndarray or data.flags.c_contiguous:
                    g = g.copy()
                else:  # PyTorch lays a gradient out as its leaf
                    fresh = np.empty_like(data)
                    np.copyto(fresh, g)
                    g = fresh
            leaf._grad = wrap(g)
        elif old._requires_grad or type(g) is not _ndarray or type(old._data) is not _ndarray:
            leaf._grad = wrap(untangled(old._data + g))
        else:
            np.add(old._data, g, out=old._data)
            if old._counter is not None:
                old._counter[0] += 1


def check_hook_result(hook: Any, new: Any, old: Tensor) -> None:
    """A hook must return None or a gradient that fits."""
    if not isinstance(new, Tensor):
        raise TypeError(f"hook {hook!r} must return None or a Tensor, got {type(new).__name__}")
    if new._data.shape != old._data.shape:
        raise GraphError(
            f"hook {hook!r} has changed the size of value: {list(old.shape)} became "
            f"{list(new.shape)}"
        )
    if new._data.dtype != old._data.dtype:
        raise GraphError(
            f"hook {hook!r} has changed the type of value: {old.dtype} became {new.dtype}"
        )
