"""An LSTM whose matrices are diagonal: the loss over a sequence of characters, and its gradient.

For layers l and time t, with input u (the layer below; at the bottom x_t scaled by s_in), hidden
state h and cell c, all of size b, elementwise:

    forget = sigmoid(u w_1 + b_1)      ingate = sigmoid(h w_2 + b_2)
    output = sigmoid(u w_3 + b_3)      change = tanh(h w_4 + b_4)
    c <- c forget + ingate change      h <- output tanh(c)

The prediction y = h_top s_out + b_out is scored as minus the mean of x_(t+1) . (y - logsumexp y).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.adbench import Problem, gradient_of, one_row, tensors


def instance(rng: Any, layers: int = 2, size: int = 5, length: int = 6) -> dict[str, Any]:
    """Random parameters and a random sequence in one-hot form."""
    return {
        "weights": rng.normal(size=(layers, 2, 4, size)) * 0.5,
        "ends": rng.normal(size=(3, size)),
        "state": rng.normal(size=(layers, 2, size)) * 0.5,
        "sequence": np.eye(size)[rng.integers(0, size, length)],
    }


def problem(torch: Any, data: dict[str, Any]) -> Problem:
    """The loss in (weights, ends): w and b of each layer; s_in, s_out, b_out."""
    t = tensors(torch, data)
    sequence, state = t["sequence"], t["state"]
    layers = len(state)

    def value(weights: Any, ends: Any) -> Any:
        scale_in, scale_out, shift_out = ends.unbind(0)
        per_layer = [[part.unbind(0) for part in layer.unbind(0)] for layer in weights.unbind(0)]
        hidden = [state[k, 0] for k in range(layers)]
        cell = [state[k, 1] for k in range(layers)]
        total = 0.0
        for step in range(len(sequence) - 1):
            u = sequence[step] * scale_in
            for k, (w, b) in enumerate(per_layer):
                h = hidden[k]
                forget = torch.sigmoid(u * w[0] + b[0])
                ingate = torch.sigmoid(h * w[1] + b[1])
                output = torch.sigmoid(u * w[2] + b[2])
                change = torch.tanh(h * w[3] + b[3])
                cell[k] = cell[k] * forget + ingate * change
                hidden[k] = u = output * torch.tanh(cell[k])
            y = u * scale_out + shift_out
            total = total + torch.dot(sequence[step + 1], y - torch.logsumexp(y, 0))
        return -total / (len(sequence) - 1)

    inputs = [t["weights"], t["ends"]]
    return Problem(inputs, value, lambda: gradient_of(torch, inputs, value), one_row)
