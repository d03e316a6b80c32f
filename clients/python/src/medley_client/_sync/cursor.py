# Written from _async by test/python-client/written.unit.test.ts: change the file there, and run it with --update.
"""Lists that come in pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from .._requests import Page

T = TypeVar("T")


class Cursor(Generic[T]):
    """A list: a loop reads it to its end, and asks for the next page when it needs it."""

    def __init__(self, load: Callable[[str | None], Page[T]], start: str | None) -> None:
        self._load = load
        self._start = start

    def pages(self) -> Iterator[Page[T]]:
        after = self._start
        while True:
            page = self._load(after)
            yield page
            if not page.has_more or page.last_id is None or page.last_id == after:
                return
            after = page.last_id

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            for item in page.data:
                yield item

    def first(self) -> Page[T]:
        """Returns the first page alone, with one request."""
        return self._load(self._start)

    def take(self, count_max: int) -> list[T]:
        """Returns the first items, at most `count_max`."""
        items: list[T] = []
        if count_max <= 0:
            return items
        for item in self:
            items.append(item)
            if len(items) >= count_max:
                break
        return items
