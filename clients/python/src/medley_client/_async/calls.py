"""Chat calls and tasks in one list."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from .._requests import Page, Request
from ..types import Call
from .cursor import AsyncCursor
from .http import AsyncHttp


class AsyncCalls:
    """The chat calls and the tasks of the account."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        kind: Literal["chat", "task"] | None = None,
        model: str | None = None,
        key: str | None = None,
        status: Literal["queued", "running", "succeeded", "failed"] | None = None,
        error: str | None = None,
        http_status: int | None = None,
        user: str | None = None,
        tag: str | None = None,
        created_after: str | datetime | None = None,
        created_before: str | datetime | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> AsyncCursor[Call]:
        """Lists chat calls and tasks, newest first, without what was said.

        `limit` is the length of a page, not of the list. `error` is an `error_type`, `key` the id of a key.
        `http_status` leaves the chat calls that were answered with it.
        """

        async def load(last: str | None) -> Page[Call]:
            query = {
                "limit": limit,
                "after": last,
                "kind": kind,
                "model": model,
                "key": key,
                "status": status,
                "error": error,
                "http_status": http_status,
                "user": user,
                "tag": tag,
                "created_after": created_after,
                "created_before": created_before,
                "metadata": metadata,
            }
            return await self._http.fetch_page(Request("GET", "/v1/calls", query), Call)

        return AsyncCursor(load, after)
