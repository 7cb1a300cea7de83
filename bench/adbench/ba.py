"""Bundle adjustment: reprojection errors of points in cameras, and their sparse Jacobian.

A camera has 11 parameters: rotation r (axis times angle), centre c, focal length f, principal point
u, radial distortion (k1, k2).  It sees the point X at

    f (1 + k1 s + k2 s^2) p + u,     p = (Y1, Y2) / Y3,  s = |p|^2,  Y = R(r) (X - c)

with Rodrigues' rotation R(r) v = v cos a + (e x v) sin a + e (e . v) (1 - cos a), a = |r|, e = r / a.
Observation j, of point P_j in camera C_j at z_j with weight w_j, gives w_j (projection - z_j) and the
weight error 1 - w_j^2.  Each depends on 11 + 3 + 1 parameters only, whatever their number.
"""  # noqa: E501

from __future__ import annotations

from typing import Any

import numpy as np

from bench.adbench import Problem, leaves, tensors


def instance(rng: Any, cameras: int = 3, points: int = 6, observations: int = 12) -> dict[str, Any]:
    """Random cameras that look at random points."""
    camera = np.concatenate([
        rng.normal(size=(cameras, 3)) * 0.2, rng.normal(size=(cameras, 3)) * 0.3,
        1 + rng.random((cameras, 1)), rng.normal(size=(cameras, 4)) * 0.1,
    ], 1)  # fmt: skip
    return {
        "camera": camera, "point": rng.normal(size=(points, 3)) + [0, 0, 6.0],
        "weight": 0.5 + rng.random(observations),
        "which_camera": rng.integers(0, cameras, observations),
        "which_point": rng.integers(0, points, observations),
        "seen": rng.normal(size=(observations, 2)),
    }  # fmt: skip


def rotated(torch: Any, r: Any, v: Any) -> Any:
    """v (n, 3) turned by the rotation vectors r (n, 3), none of them zero."""
    angle = (r**2).sum(1, keepdim=True).sqrt()
    e = r / angle
    e1, e2, e3 = e.unbind(1)
    v1, v2, v3 = v.unbind(1)
    across = torch.stack([e2 * v3 - e3 * v2, e3 * v1 - e1 * v3, e1 * v2 - e2 * v1], 1)
    along = e * (e * v).sum(1, keepdim=True)
    return v * torch.cos(angle) + across * torch.sin(angle) + along * (1 - torch.cos(angle))


def projected(torch: Any, camera: Any, point: Any) -> Any:
    """Where cameras (n, 11) see points (n, 3): (n, 2)."""
    y = rotated(torch, camera[:, 0:3], point - camera[:, 3:6])
    p = y[:, :2] / y[:, 2:]
    s = (p**2).sum(1, keepdim=True)
    stretch = 1 + camera[:, 9:10] * s + camera[:, 10:11] * s**2
    return camera[:, 6:7] * stretch * p + camera[:, 7:9]


def problem(torch: Any, data: dict[str, Any]) -> Problem:
    """All errors, (observations, 3): two of reprojection and that of the weight."""
    t = tensors(torch, data)
    which_camera, which_point, seen = t["which_camera"], t["which_point"], t["seen"]

    def errors(camera: Any, point: Any, weight: Any) -> Any:
        """With one camera, point and weight for each observation."""
        off = weight[:, None] * (projected(torch, camera, point) - seen)
        return torch.cat([off, 1 - weight[:, None] ** 2], 1)

    def value(camera: Any, point: Any, weight: Any) -> Any:
        return errors(camera[which_camera], point[which_point], weight)

    def derivative() -> list[Any]:
        """Blocks (observations, 3, 11), (.., 3, 3), (.., 3): one pass for each kind of error."""
        mine = leaves([t["camera"][which_camera], t["point"][which_point], t["weight"]])
        found = errors(*mine).sum(0)
        rows = [torch.autograd.grad(e, mine, retain_graph=True, materialize_grads=True)
                for e in found]  # fmt: skip
        return [torch.stack(blocks, 1) for blocks in zip(*rows, strict=True)]

    def dense(blocks: list[Any]) -> Any:
        cameras, points, count = len(t["camera"]), len(t["point"]), len(seen)
        of_camera = np.zeros((count, 3, cameras, 11))
        of_point = np.zeros((count, 3, points, 3))
        of_weight = np.zeros((count, 3, count))
        j = np.arange(count)
        of_camera[j, :, data["which_camera"]] = blocks[0].numpy()
        of_point[j, :, data["which_point"]] = blocks[1].numpy()
        of_weight[j, :, j] = blocks[2].numpy()
        parts = [a.reshape(3 * count, -1) for a in (of_camera, of_point, of_weight)]
        return np.concatenate(parts, 1)

    return Problem([t["camera"], t["point"], t["weight"]], value, derivative, dense)
