"""The scaled update of NumPy's own BLAS, where NumPy was built with it."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.api import inplace
from pullback.core.blas import axpy


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 7, 10_001])
def test_update_equals_numpy(dtype: type, n: int) -> None:
    update = axpy(np.dtype(dtype).itemsize)
    if update is None:
        pytest.skip("NumPy has another BLAS here")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=n).astype(dtype), rng.normal(size=n).astype(dtype)
    want = y + dtype(0.3) * x
    update(0.3, x, y)
    assert np.allclose(y, want, rtol=1e-6, atol=1e-6)


def test_without_that_blas_the_update_is_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inplace, "axpy", lambda itemsize: None)
    x = torch.ones(5)
    x.add_(torch.ones(5), alpha=0.5).sub_(torch.ones(5), alpha=0.25)
    assert x.tolist() == [1.25] * 5 and x._version == 2
