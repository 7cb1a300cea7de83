"""Hand tracking: a skinned hand fitted to points, and the Jacobian of the residuals.

The skeleton is a wrist and five fingers of four bones.  The pose has 26 parameters: a global
rotation vector, a global translation, and for each finger two angles of its first joint and one of
each of the next two (the last bone only carries the tip).  A bone's transform is that of its parent,
times its place at rest, times its own rotation; linear blend skinning moves vertex i to

    v_i  =  R (sum_b  W_ib  T_b  T0_b^-1  v0_i) + t

with T0_b the transform at rest and weights W_ib that add up to 1.  A measured point z_j belongs to a
vertex (residual z_j - v), or, with free correspondences, to a place (a, b) on a triangle:
z_j - (a v_1 + b v_2 + (1 - a - b) v_3), where the 2 n further parameters are each seen by one
residual only.
"""  # noqa: E501

from __future__ import annotations

from typing import Any

import numpy as np

from bench.adbench import Problem, leaves, tensors
from bench.adbench.ba import rotated

FINGERS, BONES = 5, 4


def instance(rng: Any, points: int = 8, vertices: int = 20, free: bool = False) -> dict[str, Any]:
    """A random hand; `free` adds correspondences on triangles."""
    rest = np.tile(np.eye(4), (BONES, FINGERS, 1, 1))
    rest[..., :3, 3] = rng.normal(size=(BONES, FINGERS, 3)) * 0.1
    rest[..., 0, 3] += 1.0
    weights = rng.random((1 + BONES * FINGERS, vertices)) ** 4
    data = {
        "pose": rng.normal(size=26) * 0.3, "rest": rest,
        "weights": weights / weights.sum(0), "vertices": rng.normal(size=(vertices, 3)),
        "measured": rng.normal(size=(points, 3)),
        "corners": np.stack([rng.permutation(vertices)[:3] for _ in range(points)]),
    }  # fmt: skip
    if free:
        data["place"] = rng.random((points, 2)) / 2
    return data


def bone_rotation(torch: Any, bend: Any, side: Any) -> Any:
    """Rotations about x by `bend`, then about z by `side`: (fingers,) -> (fingers, 4, 4)."""
    cb, sb, cs, ss = torch.cos(bend), torch.sin(bend), torch.cos(side), torch.sin(side)
    zero, one = torch.zeros_like(cb), torch.ones_like(cb)
    rows = [
        cs, -ss * cb, ss * sb, zero,
        ss, cs * cb, -cs * sb, zero,
        zero, sb, cb, zero,
        zero, zero, zero, one,
    ]  # fmt: skip
    return torch.stack(rows, 1).reshape(len(bend), 4, 4)


def problem(torch: Any, data: dict[str, Any]) -> Problem:
    """The residuals (points, 3) in the pose, and in the places on triangles if these are free."""
    t = tensors(torch, data)
    at_rest = np.empty_like(data["rest"])
    at_rest[0] = data["rest"][0]
    for level in range(1, BONES):
        at_rest[level] = at_rest[level - 1] @ data["rest"][level]
    # vertices seen from each bone at rest, times their weights: constants of the model
    homogeneous = np.concatenate([data["vertices"], np.ones((len(data["vertices"]), 1))], 1)
    inverse = np.linalg.inv(at_rest.reshape(-1, 4, 4))
    local = np.einsum("bij,vj->biv", inverse, homogeneous) * data["weights"][1:, None]
    local = torch.from_numpy(local)
    at_wrist = torch.from_numpy(homogeneous[:, :3] * data["weights"][0][:, None])
    corners, measured, rest = t["corners"], t["measured"], t["rest"]

    def vertices(pose: Any) -> Any:
        angles = pose[6:].reshape(FINGERS, BONES)
        none = torch.zeros_like(angles[:, 0])
        own = [
            bone_rotation(torch, angles[:, 0], angles[:, 1]),
            bone_rotation(torch, angles[:, 2], none),
            bone_rotation(torch, angles[:, 3], none),
        ]
        chain = [rest[0] @ own[0]]
        for level in range(1, BONES):
            step = rest[level] @ own[level] if level < len(own) else rest[level]
            chain.append(chain[-1] @ step)
        bones = torch.stack(chain).reshape(BONES * FINGERS, 4, 4)
        moved = (bones[:, :3] @ local).sum(0).transpose(0, 1) + at_wrist
        return rotated(torch, pose[None, :3].expand(moved.shape[0], 3), moved) + pose[3:6]

    def value(pose: Any, place: Any = None) -> Any:
        v = vertices(pose)
        if place is None:
            return measured - v[corners[:, 0]]
        a, b = place[:, :1], place[:, 1:]
        return measured - (
            a * v[corners[:, 0]] + b * v[corners[:, 1]] + (1 - a - b) * v[corners[:, 2]]
        )

    inputs = [t["pose"]] + ([t["place"]] if "place" in t else [])
    count = len(measured)
    seeds = torch.eye(3 * count, dtype=measured.dtype).reshape(3 * count, count, 3)

    def derivative() -> list[Any]:
        """(points * 3, 26) and, if places are free, the blocks (points, 3, 2)."""
        mine = leaves(inputs)
        out = value(*mine)
        blocks = list(torch.autograd.grad(out, mine[0], seeds, retain_graph=True,
                                          is_grads_batched=True))  # fmt: skip
        if len(mine) > 1:  # residual j sees place j only: rows of one kind go together
            totals = out.sum(0)
            rows = [torch.autograd.grad(e, mine[1], retain_graph=True)[0] for e in totals]
            blocks.append(torch.stack(rows, 1))
        return blocks

    def dense(blocks: list[Any]) -> Any:
        parts = [blocks[0].numpy()]
        if len(blocks) > 1:
            of_place = np.zeros((count, 3, count, 2))
            j = np.arange(count)
            of_place[j, :, j] = blocks[1].numpy()
            parts.append(of_place.reshape(3 * count, 2 * count))
        return np.concatenate(parts, 1)

    return Problem(inputs, value, derivative, dense)
