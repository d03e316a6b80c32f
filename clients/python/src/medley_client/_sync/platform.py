"""The few parts of the client that differ in more than their words from those of the async one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
V = TypeVar("V")

#: Ends what a caller waits for, and is no error of the work.
LEAVING = (KeyboardInterrupt, SystemExit)

#: Called with a value each time there is a new one.
Listener = Callable[[V], None]


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def run_blocking(work: Callable[[], T]) -> T:
    return work()


def notify(listener: Listener[V], value: V) -> None:
    listener(value)


def shielded(work: Callable[[], None]) -> None:
    work()
