"""Addresses that get the events of the account."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from .._requests import JSON_HEADERS, Page, Repeats, Request, json_of, json_time, segment
from ..types import (
    NewWebhookEndpoint,
    SubscribedEvent,
    WebhookEndpoint,
    WebhookEventType,
    WebhookFilters,
    WebhookReplay,
    WebhookTest,
)
from .cursor import AsyncCursor
from .http import AsyncAnswer, AsyncHttp


class AsyncWebhookEndpoints:
    """To change endpoints takes a key without scopes."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http

    async def create(
        self,
        url: str,
        events: Sequence[SubscribedEvent],
        *,
        description: str | None = None,
        filters: WebhookFilters | None = None,
        enabled: bool | None = None,
    ) -> NewWebhookEndpoint:
        """Registers an endpoint. Its `secret` is shown only here. It is not sent again after a lost answer."""
        content = _fields(url, events, description, filters, enabled)
        request = Request(
            "POST",
            "/v1/webhook_endpoints",
            headers=JSON_HEADERS,
            content=content,
            repeats=Repeats.AFTER_REFUSAL,
        )
        return await self._http.fetch(request, NewWebhookEndpoint)

    def list(self, *, limit: int | None = None, after: str | None = None) -> AsyncCursor[WebhookEndpoint]:
        """Lists the endpoints of the account, oldest first."""

        async def load(last: str | None) -> Page[WebhookEndpoint]:
            query = {"limit": limit, "after": last}
            return await self._http.fetch_page(Request("GET", "/v1/webhook_endpoints", query), WebhookEndpoint)

        return AsyncCursor(load, after)

    async def get(self, endpoint_id: str) -> WebhookEndpoint:
        return await self._http.fetch(Request("GET", f"/v1/webhook_endpoints/{segment(endpoint_id)}"), WebhookEndpoint)

    async def update(
        self,
        endpoint_id: str,
        *,
        url: str | None = None,
        events: Sequence[SubscribedEvent] | None = None,
        description: str | None = None,
        filters: WebhookFilters | None = None,
        enabled: bool | None = None,
    ) -> WebhookEndpoint:
        """Changes the fields that are set; `filters` are replaced as a whole."""
        content = _fields(url, events, description, filters, enabled)
        request = Request(
            "PATCH", f"/v1/webhook_endpoints/{segment(endpoint_id)}", headers=JSON_HEADERS, content=content
        )
        return await self._http.fetch(request, WebhookEndpoint)

    async def delete(self, endpoint_id: str) -> None:
        """Deletes an endpoint; one that is gone already is no mistake."""
        await self._http.send(Request("DELETE", f"/v1/webhook_endpoints/{segment(endpoint_id)}"), AsyncAnswer.read)

    async def rotate_secret(self, endpoint_id: str) -> NewWebhookEndpoint:
        """Returns the endpoint with a new secret, which is shown only here. The previous one signs too for 24 hours."""
        request = Request(
            "POST", f"/v1/webhook_endpoints/{segment(endpoint_id)}/rotate_secret", repeats=Repeats.AFTER_REFUSAL
        )
        return await self._http.fetch(request, NewWebhookEndpoint)

    async def test(self, endpoint_id: str, event: WebhookEventType) -> WebhookTest:
        """Sends an example of an event now, and returns how the receiver answered."""
        request = Request(
            "POST",
            f"/v1/webhook_endpoints/{segment(endpoint_id)}/test",
            headers=JSON_HEADERS,
            content=json_of({"event": event}),
            repeats=Repeats.AFTER_REFUSAL,
        )
        return await self._http.fetch(request, WebhookTest)

    async def replay(
        self,
        endpoint_id: str,
        from_: str | datetime,
        to: str | datetime | None = None,
        *,
        which: Literal["failed", "all"] = "failed",
        dry_run: bool = False,
    ) -> WebhookReplay:
        """Sends the events of a span again: those that did not arrive, or `all`.

        At most 1,000 in one call: while `next_from` is not None, call again with it as `from_`. `dry_run` only counts.
        """
        span = {"from": json_time(from_)} if to is None else {"from": json_time(from_), "to": json_time(to)}
        request = Request(
            "POST",
            f"/v1/webhook_endpoints/{segment(endpoint_id)}/replay",
            headers=JSON_HEADERS,
            content=json_of({**span, "which": which, "dry_run": dry_run}),
            repeats=Repeats.ALWAYS if dry_run else Repeats.AFTER_REFUSAL,
        )
        return await self._http.fetch(request, WebhookReplay)


def _fields(
    url: str | None,
    events: Sequence[SubscribedEvent] | None,
    description: str | None,
    filters: WebhookFilters | None,
    enabled: bool | None,
) -> bytes:
    """Returns the body of a request that has what is set."""
    fields = {
        "url": url,
        "events": None if events is None else [*events],
        "description": description,
        "filters": filters,
        "enabled": enabled,
    }
    return json_of({name: value for name, value in fields.items() if value is not None})
