# Written from _async by test/python-client/written.unit.test.ts: change the file there, and run it with --update.
"""Sends requests, again where that is safe and may help."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import httpx

from .._errors import ApiError, ConnectionFailedError, MedleyError, RequestTimeoutError, error_of_answer
from .._requests import Page, Request, Settings, parse_object, parse_page, pause_before
from .._version import __version__
from .platform import sleep

T = TypeVar("T")

_USER_AGENT = f"medley-client-python/{__version__}"


class Answer:
    """An answer with a good status, whose body is still to come."""

    def __init__(self, response: httpx.Response, timeout_s: float, end_s: float) -> None:
        self._response = response
        self._timeout_s = timeout_s
        self._end_s = end_s
        self.headers: dict[str, str] = {name.lower(): value for name, value in response.headers.items()}

    def chunks(self, *, is_endless: bool = False) -> Iterator[bytes]:
        """Yields the body as it comes. An endless one may take any time, but is silent for `timeout_s` at most."""
        try:
            for chunk in self._response.iter_bytes():
                if not is_endless and time.monotonic() > self._end_s:
                    raise _late(self._timeout_s)
                yield chunk
        except httpx.HTTPError as error:
            raise _error_of_transport(error, self._timeout_s) from error

    def read(self) -> bytes:
        body = bytearray()
        for chunk in self.chunks():
            body += chunk
        return bytes(body)

    def close(self) -> None:
        self._response.close()


class Http:
    """The connections of a client, with its settings."""

    def __init__(self, settings: Settings, client: httpx.Client) -> None:
        self.settings = settings
        self.client = client

    def send(
        self,
        request: Request,
        read: Callable[[Answer], T],
        make_body: Callable[[], Iterable[bytes]] | None = None,
    ) -> T:
        """Returns what `read` makes of a good answer. Raises ApiError or ConnectionFailedError."""

        def attempt() -> T:
            answer = self._open(request, make_body)
            try:
                return read(answer)
            finally:
                answer.close()

        return self._repeat(request, attempt)

    def open(self, request: Request) -> Answer:
        """Returns a good answer, which the caller reads and closes."""

        def attempt() -> Answer:
            return self._open(request, None)

        return self._repeat(request, attempt)

    def fetch(self, request: Request, kind: type[T]) -> T:
        """Returns the JSON of a good answer."""
        return parse_object(self.send(request, Answer.read), kind)

    def fetch_page(self, request: Request, kind: type[T]) -> Page[T]:
        return parse_page(self.send(request, Answer.read), kind)

    def _repeat(self, request: Request, attempt: Callable[[], T]) -> T:
        retries_max = self.settings.retries_of(request)
        retries = 0
        is_lost = False
        while True:
            try:
                return attempt()
            except (ApiError, ConnectionFailedError) as error:
                if isinstance(error, ApiError):
                    error.follows_lost_answer = is_lost
                else:
                    is_lost = True
                pause_s = pause_before(request, error, retries)
                if pause_s is None or retries >= retries_max:
                    raise
            sleep(pause_s)
            retries += 1

    def _open(
        self, request: Request, make_body: Callable[[], Iterable[bytes]] | None
    ) -> Answer:
        if self.client.is_closed:
            raise MedleyError("The client is closed.")
        body = request.content if make_body is None else make_body()
        timeout_s = self.settings.timeout_of(request)
        end_s = time.monotonic() + timeout_s
        headers = {"user-agent": _USER_AGENT, **request.headers}
        if request.is_own:
            headers["authorization"] = f"Bearer {self.settings.api_key}"
        try:
            response = self.client.send(
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
        answer = Answer(response, timeout_s, end_s)
        if response.is_success:
            return answer
        try:
            raise error_of_answer(response.status_code, answer.headers, answer.read())
        finally:
            answer.close()


def _error_of_transport(error: Exception, timeout_s: float) -> ConnectionFailedError:
    if isinstance(error, httpx.TimeoutException):
        return _late(timeout_s)
    return ConnectionFailedError(f"The connection to the service failed: {error or type(error).__name__}")


def _late(timeout_s: float) -> RequestTimeoutError:
    return RequestTimeoutError(f"No complete answer came within {timeout_s:g} s.")
