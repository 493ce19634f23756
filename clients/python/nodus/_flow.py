"""What the client does, written once for those who block and those who await.

A flow is a generator that yields effects, such as one exchange with the server or a pause, and returns a result. An
effect is a function without arguments that a driver calls: ``Blocking`` takes what it returns, ``Concurrent`` awaits
it. Whatever is decided (tries, keys, pages, positions, waits) stands in flows and does no I/O itself.

``@operation`` and ``@stream`` make methods of flows. Read from an object, such a method is driven in the object's
way; read from the class, it is the flow, which other flows go through by ``yield from``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import update_wrapper
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, TypeVar, cast, overload

P = ParamSpec("P")
T = TypeVar("T")

Effect = Callable[[], Any]
Flow = Generator[Effect, Any, T]


class Item(Generic[T]):
    """What a stream hands out, among its effects."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value


Stream = Generator[Effect | Item[T], Any, None]


def collected(items: Stream[T]) -> Flow[list[T]]:
    """All that a stream hands out, together."""
    found: list[T] = []
    try:
        step = next(items)
        while True:
            if isinstance(step, Item):
                found.append(cast("Item[T]", step).value)
                step = next(items)
                continue
            try:
                outcome = yield step
            except BaseException as error:  # noqa: BLE001 (the stream decides what it means)
                step = items.throw(error)
            else:
                step = items.send(outcome)
    except StopIteration:
        return found


class Blocking:
    """Objects whose operations return when they are done."""

    def _drive(self, flow: Flow[T]) -> T:
        try:
            effect = next(flow)
            while True:
                try:
                    outcome = effect()
                except BaseException as error:  # noqa: BLE001 (the flow decides what it means)
                    effect = flow.throw(error)
                else:
                    effect = flow.send(outcome)
        except StopIteration as end:
            return cast("T", end.value)

    def _stream(self, flow: Stream[T]) -> Generator[T]:
        try:
            step = next(flow)
            while True:
                if isinstance(step, Item):
                    yield cast("Item[T]", step).value
                    step = next(flow)
                    continue
                try:
                    outcome = step()
                except BaseException as error:  # noqa: BLE001 (the flow decides what it means)
                    step = flow.throw(error)
                else:
                    step = flow.send(outcome)
        except StopIteration:
            return
        finally:
            flow.close()


class Concurrent:
    """Objects whose operations are awaited."""

    async def _drive(self, flow: Flow[T]) -> T:
        try:
            effect = next(flow)
            while True:
                try:
                    outcome = await effect()
                except BaseException as error:  # noqa: BLE001 (the flow decides what it means; a cancellation, too)
                    effect = flow.throw(error)
                else:
                    effect = flow.send(outcome)
        except StopIteration as end:
            return cast("T", end.value)

    async def _stream(self, flow: Stream[T]) -> AsyncGenerator[T]:
        try:
            step = next(flow)
            while True:
                if isinstance(step, Item):
                    yield cast("Item[T]", step).value
                    step = next(flow)
                    continue
                try:
                    outcome = await step()
                except BaseException as error:  # noqa: BLE001 (the flow decides what it means; a cancellation, too)
                    step = flow.throw(error)
                else:
                    step = flow.send(outcome)
        except StopIteration:
            return
        finally:
            flow.close()


class operation(Generic[P, T]):
    """A method with one result."""

    def __init__(self, flow: Callable[Concatenate[Any, P], Flow[T]]) -> None:
        self._flow = flow
        self.__doc__ = flow.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Callable[Concatenate[Any, P], Flow[T]]: ...
    @overload
    def __get__(self, owner: Blocking, kind: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, owner: Concurrent, kind: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self._flow
        return _bound(owner, self._flow, owner._drive)


class reading(Generic[T]):
    """An attribute that is read from the server each time; of those who await, it is awaited."""

    def __init__(self, flow: Callable[[Any], Flow[T]]) -> None:
        self._flow = flow
        self.__doc__ = flow.__doc__

    def __set_name__(self, kind: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, owner: None, kind: type) -> Callable[[Any], Flow[T]]: ...
    @overload
    def __get__(self, owner: Blocking, kind: type) -> T: ...
    @overload
    def __get__(self, owner: Concurrent, kind: type) -> Coroutine[Any, Any, T]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self._flow
        return owner._drive(self._flow(owner))

    def __set__(self, owner: Any, value: NoReturn) -> NoReturn:
        raise AttributeError(f"{self._name} is the server's to say, and cannot be set")


class stream(Generic[P, T]):
    """A method with many results, each given as soon as it is there; ``close()`` or ``aclose()`` ends it early."""

    def __init__(self, flow: Callable[Concatenate[Any, P], Stream[T]]) -> None:
        self._flow = flow
        self.__doc__ = flow.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Callable[Concatenate[Any, P], Stream[T]]: ...
    @overload
    def __get__(self, owner: Blocking, kind: type) -> Callable[P, Generator[T]]: ...
    @overload
    def __get__(self, owner: Concurrent, kind: type) -> Callable[P, AsyncGenerator[T]]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self._flow
        return _bound(owner, self._flow, owner._stream)


def _bound(owner: Any, flow: Callable[..., Any], driver: Callable[[Any], Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return driver(flow(owner, *args, **kwargs))

    update_wrapper(call, flow)
    # So that the shown signature is the one to call: without `self`.
    call.__wrapped__ = flow.__get__(owner)  # type: ignore[attr-defined]
    return call
