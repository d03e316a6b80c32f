"""Sends requests, again where that is safe and may help."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import TypeVar

import httpx

from .._errors import ApiError, ConnectionFailedError, MedleyError, RequestTimeoutError, error_of_answer
from .._requests import Page, Request, Settings, parse_object, parse_page, pause_before
from .._version import __version__
from .platform import sleep

T = TypeVar("T")

_USER_AGENT = f"medley-client-python/{__version__}"


class AsyncAnswer:
    """An answer with a good status, whose body is still to come."""

    def __init__(self, response: httpx.Response, timeout_s: float, end_s: float) -> None:
        self._response = response
        self._timeout_s = timeout_s
        self._end_s = end_s
        self.headers: dict[str, str] = {name.lower(): value for name, value in response.headers.items()}

    async def chunks(self, *, is_endless: bool = False) -> AsyncIterator[bytes]:
        """Yields the body as it comes. An endless one may take any time, but is silent for `timeout_s` at most."""
        try:
            async for chunk in self._response.aiter_bytes():
                if not is_endless and time.monotonic() > self._end_s:
                    raise _late(self._timeout_s)
                yield chunk
        except httpx.HTTPError as error:
            raise _error_of_transport(error, self._timeout_s) from error

    async def read(self) -> bytes:
        body = bytearray()
        async for chunk in self.chunks():
            body += chunk
        return bytes(body)

    async def aclose(self) -> None:
        await self._response.aclose()


class AsyncHttp:
    """The connections of a client, with its settings."""

    def __init__(self, settings: Settings, client: httpx.AsyncClient) -> None:
        self.settings = settings
        self.client = client

    async def send(
        self,
        request: Request,
        read: Callable[[AsyncAnswer], Awaitable[T]],
        make_body: Callable[[], Awaitable[AsyncIterable[bytes]]] | None = None,
    ) -> T:
        """Returns what `read` makes of a good answer. Raises ApiError or ConnectionFailedError."""

        async def attempt() -> T:
            answer = await self._open(request, make_body)
            try:
                return await read(answer)
            finally:
                await answer.aclose()

        return await self._repeat(request, attempt)

    async def open(self, request: Request) -> AsyncAnswer:
        """Returns a good answer, which the caller reads and closes."""

        async def attempt() -> AsyncAnswer:
            return await self._open(request, None)

        return await self._repeat(request, attempt)

    async def fetch(self, request: Request, kind: type[T]) -> T:
        """Returns the JSON of a good answer."""
        return parse_object(await self.send(request, AsyncAnswer.read), kind)

    async def fetch_page(self, request: Request, kind: type[T]) -> Page[T]:
        return parse_page(await self.send(request, AsyncAnswer.read), kind)

    async def _repeat(self, request: Request, attempt: Callable[[], Awaitable[T]]) -> T:
        retries_max = self.settings.retries_of(request)
        retries = 0
        is_lost = False
        while True:
            try:
                return await attempt()
            except (ApiError, ConnectionFailedError) as error:
                if isinstance(error, ApiError):
                    error.follows_lost_answer = is_lost
                else:
                    is_lost = True
                pause_s = pause_before(request, error, retries)
                if pause_s is None or retries >= retries_max:
                    raise
            await sleep(pause_s)
            retries += 1

    async def _open(
        self, request: Request, make_body: Callable[[], Awaitable[AsyncIterable[bytes]]] | None
    ) -> AsyncAnswer:
        if self.client.is_closed:
            raise MedleyError("The client is closed.")
        body = request.content if make_body is None else await make_body()
        timeout_s = self.settings.timeout_of(request)
        end_s = time.monotonic() + timeout_s
        headers = {"user-agent": _USER_AGENT, **request.headers}
        if request.is_own:
            headers["authorization"] = f"Bearer {self.settings.api_key}"
        try:
            response = await self.client.send(
                self.client.build_request(
                    request.method,
                    self.settings.url_of(request),
                    headers=headers,
                    content=body,
                    timeout=httpx.Timeout(timeout_s, pool=None),
                ),
                stream=True,
                # A redirect would turn a POST into a GET. Results may be elsewhere, in a bucket.
                follow_redirects=not request.is_own,
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _error_of_transport(error, timeout_s) from error
        answer = AsyncAnswer(response, timeout_s, end_s)
        if response.is_success:
            return answer
        try:
            raise error_of_answer(response.status_code, answer.headers, await answer.read())
        finally:
            await answer.aclose()


def _error_of_transport(error: Exception, timeout_s: float) -> ConnectionFailedError:
    if isinstance(error, httpx.TimeoutException):
        return _late(timeout_s)
    return ConnectionFailedError(f"The connection to the service failed: {error or type(error).__name__}")


def _late(timeout_s: float) -> RequestTimeoutError:
    return RequestTimeoutError(f"No complete answer came within {timeout_s:g} s.")
