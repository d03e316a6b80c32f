"""The few parts of the async client that differ in more than their words from those of the other one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

T = TypeVar("T")
V = TypeVar("V")

#: Ends what a caller waits for, and is no error of the work.
LEAVING = (KeyboardInterrupt, SystemExit, asyncio.CancelledError)

#: Called with a value each time there is a new one; what it returns is awaited if it can be.
Listener = Callable[[V], Awaitable[None] | None]


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def run_blocking(work: Callable[[], T]) -> T:
    """Runs what waits for a disk, in a thread."""
    return await asyncio.to_thread(work)


async def notify(listener: Listener[V], value: V) -> None:
    result = listener(value)
    if inspect.isawaitable(result):
        await result


async def shielded(work: Callable[[], Coroutine[object, object, None]]) -> None:
    """Awaits work that goes on to its end if the caller is canceled meanwhile."""
    await asyncio.shield(asyncio.ensure_future(work()))
