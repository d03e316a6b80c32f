"""A service and an API key."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Literal

import httpx

from .._outputs import Downloadable
from .._requests import (
    JSON_HEADERS,
    Page,
    Request,
    checked_retries,
    checked_timeout,
    json_of,
    settings_of,
)
from ..types import Balance, Estimate, Key, Refusals, Task, Transaction, Usage
from .calls import AsyncCalls
from .chat import AsyncChat
from .cursor import AsyncCursor
from .download import download_bytes, download_file, download_stream
from .feedback import AsyncFeedbackCalls
from .files import AsyncFiles
from .http import AsyncHttp
from .models import AsyncModels
from .platform import Listener
from .tasks import AsyncTasks
from .webhook_endpoints import AsyncWebhookEndpoints


class AsyncMedley:
    """A service and an API key. Close it, or use it in a `with`, to close its connections."""

    tasks: AsyncTasks
    files: AsyncFiles
    models: AsyncModels
    calls: AsyncCalls
    feedback: AsyncFeedbackCalls
    chat: AsyncChat
    webhook_endpoints: AsyncWebhookEndpoints

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        max_retries: int = 3,
        timeout_s: float | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        """Prepares a client. Nothing is sent.

        `base_url` is the address of the service, without `/v1`, `api_key` its key; the environment has those that are
        None, as MEDLEY_URL and MEDLEY_API_KEY. `max_retries`: further attempts of a request after the first.
        `timeout_s`: seconds for one attempt, 60 unless set, 600 for files; what the service is asked to wait comes on
        top. `http_client` makes the requests, for a proxy or certificates of your own; its caller closes it.
        """
        settings = settings_of(base_url, api_key, max_retries, timeout_s)
        self._is_owner = http_client is None
        # How many calls there are at once is the caller's to decide.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        self._use(AsyncHttp(settings, http_client or httpx.AsyncClient(limits=limits)))

    def _use(self, http: AsyncHttp) -> None:
        self._http = http
        self.tasks = AsyncTasks(http)
        self.files = AsyncFiles(http)
        self.models = AsyncModels(http)
        self.calls = AsyncCalls(http)
        self.feedback = AsyncFeedbackCalls(http)
        self.chat = AsyncChat(http)
        self.webhook_endpoints = AsyncWebhookEndpoints(http)

    def with_options(self, *, max_retries: int | None = None, timeout_s: float | None = None) -> AsyncMedley:
        """Returns a client with other settings and the same connections."""
        other = object.__new__(type(self))
        other._is_owner = False
        settings = self._http.settings
        if max_retries is not None:
            settings = replace(settings, max_retries=checked_retries(max_retries))
        if timeout_s is not None:
            settings = replace(settings, timeout_s=checked_timeout(timeout_s))
        other._use(AsyncHttp(settings, self._http.client))
        return other

    async def __aenter__(self) -> AsyncMedley:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        if self._is_owner:
            await self._http.client.aclose()

    async def generate(
        self,
        model: str,
        input: Mapping[str, object],
        *,
        wait: float | None = None,
        on_progress: Listener[Task] | None = None,
        cancel_on_leave: bool = False,
        webhook_url: str | None = None,
        metadata: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> Task:
        """Creates a task, waits for its end, and returns it: the files are in `output`.

        `wait`: the most seconds to wait; as long as the task takes unless set. `on_progress` gets the task each time
        that it was read, the final one too. `cancel_on_leave` cancels the task, if its provider can stop it unbilled,
        when Ctrl-C, a cancellation or an exception of `on_progress` ends the wait; otherwise the task goes on.
        `webhook_url` receives the final task. `metadata`: at most 16 pairs, echoed in the task. `idempotency_key`: the
        same key and request are the same task for 24 hours; without it, each call has a new one.
        Raises TaskFailedError if the task fails, ApiError if it is not accepted, WaitTimeoutError after `wait` seconds.
        """
        return await self.tasks.generate(
            model,
            input,
            wait=wait,
            on_progress=on_progress,
            cancel_on_leave=cancel_on_leave,
            webhook_url=webhook_url,
            metadata=metadata,
            idempotency_key=idempotency_key,
        )

    async def estimate(self, model: str, input: Mapping[str, object]) -> Estimate:
        """Returns what a task would cost. Nothing is held."""
        content = json_of({"model": model, "input": input})
        return await self._http.fetch(Request("POST", "/v1/estimate", headers=JSON_HEADERS, content=content), Estimate)

    async def balance(self) -> Balance:
        return await self._http.fetch(Request("GET", "/v1/balance"), Balance)

    def transactions(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        type: Literal["topup", "hold", "release", "charge", "adjustment"] | None = None,
    ) -> AsyncCursor[Transaction]:
        """Lists movements of money, newest first."""

        async def load(last: str | None) -> Page[Transaction]:
            query = {"limit": limit, "after": last, "type": type}
            return await self._http.fetch_page(Request("GET", "/v1/balance/transactions", query), Transaction)

        return AsyncCursor(load, after)

    async def usage(
        self,
        *,
        from_: str | datetime | None = None,
        to: str | datetime | None = None,
        group_by: str | None = None,
    ) -> Usage:
        """Returns charges, by one or several of day, hour, model, key and modality, with commas between them."""
        return await self._http.fetch(
            Request("GET", "/v1/usage", {"from": from_, "to": to, "group_by": group_by}), Usage
        )

    async def refusals(
        self,
        *,
        from_: str | datetime | None = None,
        to: str | datetime | None = None,
        group_by: str | None = None,
        reason: str | None = None,
        key: str | None = None,
    ) -> Refusals:
        """Returns how many requests were refused before any work, by default those of the last 24 hours by reason."""
        query = {"from": from_, "to": to, "group_by": group_by, "reason": reason, "key": key}
        return await self._http.fetch(Request("GET", "/v1/usage/refusals", query), Refusals)

    async def key(self) -> Key:
        """Returns the limits and the use of this API key."""
        return await self._http.fetch(Request("GET", "/v1/key"), Key)

    async def download(self, output: Downloadable) -> bytes:
        """Returns the bytes of an output."""
        return await download_bytes(self._http, output)

    async def download_to(self, output: Downloadable, path: str | os.PathLike[str]) -> None:
        """Writes an output to a file, which is there only when it is complete."""
        await download_file(self._http, output, path)

    def download_stream(self, output: Downloadable) -> AsyncGenerator[bytes, None]:
        """Yields the bytes of an output while they come."""
        return download_stream(self._http, output)
