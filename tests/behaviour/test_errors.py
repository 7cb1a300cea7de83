"""Bad input: PyTorch's exception types and key phrases, and the user's line at the end."""

from __future__ import annotations

import pytest

import pullback as torch

M = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: torch.ones(2) + torch.ones(3), RuntimeError,
         "The size of tensor a \\(2\\) must match the size of tensor b \\(3\\)"),
        (lambda: M.sum(2), IndexError, "Dimension out of range"),
        (lambda: M.sum((0, 0)), RuntimeError, "appears multiple times"),
        (lambda: M[2], IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        (lambda: M[0, 0, 0], IndexError, "too many indices for tensor of dimension 2"),
        (lambda: torch.tensor(1.0)[0], IndexError, "invalid index of a 0-dim tensor"),
        (lambda: M["a"], TypeError, "only integers, slices"),
        (lambda: M[1.5], IndexError, "only integers, slices"),
        (lambda: M[::-1], ValueError, "step must be greater than zero"),
        (lambda: M[[0, 5]], IndexError, "out of bounds"),
        (lambda: M[torch.tensor([True])], IndexError, "The shape of the mask"),
        (lambda: M[[0, 1], [0, 1, 2]], IndexError, "shape mismatch: indexing tensors"),
        (lambda: M[torch.tensor([0.5])], IndexError, "must be long, int, byte or bool"),
        (lambda: M.view(5), RuntimeError, "is invalid for input of size 6"),
        (lambda: M.view(-1, -1), RuntimeError, "only one dimension can be inferred"),
        (lambda: M.t().view(6), RuntimeError, "view size is not compatible"),
        (lambda: M.expand(3, 3), RuntimeError, "must match the existing size"),
        (lambda: M.permute(0, 0), RuntimeError, "duplicate dims"),
        (lambda: M @ M, RuntimeError, "shapes cannot be multiplied \\(2x3 and 2x3\\)"),
        (lambda: torch.mm(M, torch.ones(3)), RuntimeError, "mat2 must be a matrix"),
        (lambda: torch.dot(M, M), RuntimeError, "1D tensors expected"),
        (lambda: torch.dot(torch.ones(2), torch.ones(3)), RuntimeError, "same number of elements"),
        (lambda: M @ M.t().double(), RuntimeError, "to have the same dtype"),
        (lambda: torch.cat([]), ValueError, "non-empty list"),
        (lambda: torch.cat([M, torch.ones(3, 4)]), RuntimeError, "Sizes of tensors must match"),
        (lambda: torch.cat([M, torch.ones(2)]), RuntimeError, "same number of dimensions"),
        (lambda: torch.stack([M, torch.ones(2)]), RuntimeError, "equal size"),
        (lambda: torch.cat([M, 1]), TypeError, "expected Tensor as element 1"),
        (lambda: M.split(-1), RuntimeError, "split_size be non-negative"),
        (lambda: M.split([1, 5]), RuntimeError, "sum exactly to 2"),
        (lambda: M.chunk(0), RuntimeError, "greater than 0"),
        (lambda: M.gather(1, torch.tensor([[0, 9, 0]])), RuntimeError, "out of bounds"),
        (lambda: M.gather(1, torch.tensor([0])), RuntimeError, "same number of dimensions"),
        (lambda: M.index_select(0, torch.tensor([5])), IndexError, "index out of range in self"),
        (lambda: torch.ones(0).max(), RuntimeError, "numel\\(\\) == 0"),
        (lambda: torch.ones(0, 2).max(0), IndexError, "Expected reduction dim"),
        (lambda: M.argmax(5), IndexError, "Dimension out of range"),
        (lambda: torch.einsum("ij,jk->ik", M), RuntimeError, "fewer operands"),
        (lambda: torch.einsum("ij->k", M), RuntimeError, "does not appear in the equation"),
        (lambda: torch.einsum("i->i", M), RuntimeError, "does not match the number of dimensions"),
        (lambda: torch.clamp(M), RuntimeError, "At least one of 'min' or 'max'"),
        (lambda: torch.where(M, M, M), RuntimeError, "boolean tensor"),
        (lambda: M.masked_fill(M, 1), RuntimeError, "only supports boolean masks"),
        (lambda: torch.imag(M), RuntimeError, "not implemented for tensors with non-complex"),
        (lambda: torch.exp(3), TypeError, "must be Tensor, not int"),
        (lambda: torch.maximum(1, 2), TypeError, "must be Tensor"),
        (lambda: torch.add(M.long(), 1, alpha=0.5), RuntimeError, "argument alpha must not be"),
        (lambda: M.squeeze(7), IndexError, "Dimension out of range"),
        (lambda: torch.nn.functional.cross_entropy(M, torch.tensor([0, 7])), IndexError,
         "Target 7 is out of bounds"),
        (lambda: torch.nn.functional.cross_entropy(M, torch.tensor([0])), ValueError,
         "to match target batch_size"),
        (lambda: torch.nn.functional.linear(M, torch.ones(4, 2)), RuntimeError,
         "mat1 and mat2 shapes cannot be multiplied"),
        (lambda: torch.topk(M, 9), RuntimeError, "selected index k out of range"),
        (lambda: -torch.tensor([True]), RuntimeError, "Negation, the `-` operator, on a bool"),
        (lambda: torch.tensor([1]) // 0, RuntimeError, "ZeroDivisionError"),
        (lambda: torch.tensor([1]) % torch.tensor([0]), RuntimeError, "ZeroDivisionError"),
        (lambda: M.split(0), RuntimeError, "split_size can only be 0"),
        (lambda: M[::0], ValueError, "slice step cannot be zero"),
        (lambda: torch.softmax(M.long(), 0), NotImplementedError, "not implemented for 'Long'"),
        (lambda: M.to("cuda"), AssertionError, "Torch not compiled with CUDA enabled"),
        (lambda: torch.iinfo(torch.float32), TypeError, "requires an integer input type"),
        (lambda: torch.finfo(torch.int8), TypeError, "requires a floating point input type"),
        (lambda: torch.nothing, AttributeError, "has no attribute 'nothing'"),
    ],
)  # fmt: skip
def test_bad_calls(call, error: type[Exception], words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=words) as caught:
        call()
    if not isinstance(caught.value, AttributeError):
        assert isinstance(caught.value, torch.PullbackError)
        assert "test_errors.py:" in str(caught.value), "the message names the user's line"


def test_the_tensors_are_as_before() -> None:
    assert M.tolist() == [[1.0] * 3] * 2 and M._version == 0 and not M.requires_grad


def test_objects_from_other_threads_work() -> None:
    import threading

    x = torch.ones(2, requires_grad=True)
    found = []
    t = threading.Thread(target=lambda: found.append((x * 2).sum()))
    t.start()
    t.join()
    found[0].backward()
    assert x.grad.tolist() == [2.0, 2.0]
