"""Switching recording off and on (layer 4): as context managers and as decorators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from typing import Any

from pullback.config import MODE, NO_GRAD
from pullback.core.callsite import with_site
from pullback.errors import ArgumentTypeError


class GradMode:
    """Base of the modes: sets one bit of the mode, and puts back what was there."""

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._previous: list[int] = []

    def __enter__(self) -> None:
        self._previous.append(MODE.get() & NO_GRAD)
        switch(self._enabled)

    def __exit__(self, *exception: Any) -> None:
        switch(not self._previous.pop())

    def clone(self) -> GradMode:
        """A fresh instance, for each call of a decorated function."""
        return GradMode(self._enabled)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(function):
            return self._decorate_generator(function)
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaiting(*args: Any, **kwargs: Any) -> Any:
                with self.clone():
                    return await function(*args, **kwargs)

            return awaiting

        @functools.wraps(function)
        def calling(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return calling

    def _decorate_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The mode holds while the generator's own code runs, not while it is suspended."""

        @functools.wraps(function)
        def generating(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            generator = function(*args, **kwargs)
            resume: Callable[[], Any] = functools.partial(next, generator)
            try:
                while True:
                    with self.clone():
                        value = resume()
                    try:
                        sent = yield value
                        resume = functools.partial(generator.send, sent)
                    except GeneratorExit:
                        with self.clone():
                            generator.close()
                        raise
                    except BaseException as error:
                        resume = functools.partial(generator.throw, error)
            except StopIteration as stop:
                return stop.value

        return generating


class no_grad(GradMode):  # noqa: N801  PyTorch's name
    """Nothing is recorded inside: results do not require grad.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> with pullback.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        self = object.__new__(cls)
        if function is None:
            return self
        GradMode.__init__(self, False)
        return self(function)  # `@no_grad` without parentheses

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__(False)


class enable_grad(GradMode):  # noqa: N801  PyTorch's name
    """Operations are recorded inside, also within `no_grad`."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        self = object.__new__(cls)
        if function is None:
            return self
        GradMode.__init__(self, True)
        return self(function)

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__(True)


class set_grad_enabled(GradMode):  # noqa: N801  PyTorch's name
    """Switches recording at once; as a context manager, puts it back at the end.

    mode: bool - whether operations are recorded.
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise ArgumentTypeError(
                with_site(
                    "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not "
                    f"{type(mode).__name__}"
                )
            )
        super().__init__(mode)
        self._at_construction = MODE.get() & NO_GRAD
        switch(self._enabled)

    def __enter__(self) -> None:
        self._previous.append(self._at_construction)
        switch(self._enabled)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        switch(not self._at_construction)  # a decorator changes nothing outside the function
        return super().__call__(function)

    @property
    def mode(self) -> bool:
        """Whether recording is on inside."""
        return self._enabled


def switch(enabled: bool) -> None:
    """Set the recording bit of the thread's (or task's) mode."""
    mode = MODE.get()
    MODE.set(mode & ~NO_GRAD if enabled else mode | NO_GRAD)


def is_grad_enabled() -> bool:
    """Whether operations are being recorded here."""
    return not MODE.get() & NO_GRAD
