"""The exception tree (layer 0): every error of ours is also the builtin that PyTorch raises."""

from __future__ import annotations


class PullbackError(Exception):
    """Base of every error raised on purpose by Pullback."""


class GraphError(PullbackError, RuntimeError):
    """A rule of autograd was broken: what PyTorch reports as RuntimeError."""


class ShapeError(PullbackError, RuntimeError):
    """Shapes that do not fit together (RuntimeError, as in PyTorch)."""


class DtypeError(PullbackError, RuntimeError):
    """A dtype that the operation does not take (RuntimeError, as in PyTorch)."""


class UnsupportedError(PullbackError, NotImplementedError):
    """Something that Pullback does not do; the message names what to do instead."""


class TracingError(PullbackError, RuntimeError):
    """A value was asked for while a function was being transformed or traced."""


class ArgumentTypeError(PullbackError, TypeError):
    """An argument of the wrong type (TypeError, as in PyTorch)."""


class ArgumentValueError(PullbackError, ValueError):
    """An argument of the right type with a value that cannot be used (ValueError)."""


class ArgumentRuntimeError(PullbackError, RuntimeError):
    """An argument value that PyTorch refuses with a RuntimeError."""


class DeviceError(PullbackError, AssertionError):
    """A device that is not there (AssertionError, as PyTorch without CUDA)."""


class DimensionError(PullbackError, IndexError):
    """A dimension or an index out of range (IndexError, as in PyTorch)."""


class MissingAttributeError(PullbackError, AttributeError):
    """An attribute that is not there, or cannot be set yet (AttributeError, as in PyTorch)."""


class MissingKeyError(PullbackError, KeyError):
    """A name that cannot be a key, or is none (KeyError); its text is shown as it is."""

    def __str__(self) -> str:
        return Exception.__str__(self)


class GradWarning(UserWarning):
    """Reading the `.grad` of a tensor that does not keep one."""
