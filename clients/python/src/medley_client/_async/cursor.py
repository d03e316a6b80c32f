"""Lists that come in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

from .._requests import Page

T = TypeVar("T")


class AsyncCursor(Generic[T]):
    """A list: a loop reads it to its end, and asks for the next page when it needs it."""

    def __init__(self, load: Callable[[str | None], Awaitable[Page[T]]], start: str | None) -> None:
        self._load = load
        self._start = start

    async def pages(self) -> AsyncIterator[Page[T]]:
        after = self._start
        while True:
            page = await self._load(after)
            yield page
            if not page.has_more or page.last_id is None or page.last_id == after:
                return
            after = page.last_id

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.data:
                yield item

    async def first(self) -> Page[T]:
        """Returns the first page alone, with one request."""
        return await self._load(self._start)

    async def take(self, count_max: int) -> list[T]:
        """Returns the first items, at most `count_max`."""
        items: list[T] = []
        if count_max <= 0:
            return items
        async for item in self:
            items.append(item)
            if len(items) >= count_max:
                break
        return items
