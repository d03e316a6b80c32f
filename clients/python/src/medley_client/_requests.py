"""Requests, and when they are repeated. No code here reads or writes a connection."""

from __future__ import annotations

import email.utils
import json
import os
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from typing import Final, Generic, Literal, TypeVar
from urllib.parse import quote, urlencode

from ._errors import ERROR_CLASSES, ApiError, ConnectionFailedError, MedleyError

T = TypeVar("T")

QueryValue = str | int | datetime | Mapping[str, str] | Sequence[str] | None

#: Seconds of one attempt, of a request, and of a file or a whole answer of chat, unless the client was set otherwise.
TIMEOUT_S: Final = 60.0
TRANSFER_TIMEOUT_S: Final = 600.0

_RETRIED_STATUSES: Final = (429, 502, 503, 504)
#: A pause of the service that is longer is the caller's to decide about.
_RETRY_AFTER_S_MAX: Final = 120.0
_BACKOFF_FIRST_S: Final = 0.5
_BACKOFF_MOST_S: Final = 8.0


class Repeats(Enum):
    """When another attempt of a request is safe."""

    #: After a lost answer, too: it changes nothing, or has an idempotency key.
    ALWAYS = "always"
    #: After an error of the service itself, which has charged nothing. Behind that of a proxy it may be at work still.
    AFTER_ERROR = "after_error"
    #: After a 429 alone, which comes before anything is done.
    AFTER_REFUSAL = "after_refusal"
    #: The body cannot be made again.
    NEVER = "never"


@dataclass(frozen=True)
class Request:
    """One request, for as many attempts as it takes."""

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    #: Below the base URL, or a whole address, to which the key is not sent.
    path: str
    query: Mapping[str, QueryValue] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    repeats: Repeats = Repeats.ALWAYS
    #: Seconds that the service may wait before it answers, beside the timeout.
    wait_s: float = 0
    is_transfer: bool = False
    #: Another number of retries, where the client's is lower.
    retries_min: int = 0

    @property
    def is_own(self) -> bool:
        return self.path.startswith("/")


@dataclass(frozen=True)
class Settings:
    base_url: str
    api_key: str = field(repr=False)
    max_retries: int
    timeout_s: float | None

    def timeout_of(self, request: Request) -> float:
        usual_s = TRANSFER_TIMEOUT_S if request.is_transfer else TIMEOUT_S
        return (usual_s if self.timeout_s is None else self.timeout_s) + request.wait_s

    def retries_of(self, request: Request) -> int:
        if request.repeats is Repeats.NEVER:
            return 0
        # Whoever wants no retries gets none.
        return max(self.max_retries, request.retries_min) if self.max_retries > 0 else 0

    def url_of(self, request: Request) -> str:
        if not request.is_own:
            return request.path
        text = urlencode([pair for name, value in request.query.items() for pair in _pairs_of(name, value)])
        return f"{self.base_url}{request.path}{'?' if text else ''}{text}"


def settings_of(base_url: str | None, api_key: str | None, max_retries: int, timeout_s: float | None) -> Settings:
    """Checks the settings of a client. The environment has those that are None."""
    return Settings(
        base_url=_address_of(base_url if base_url is not None else os.environ.get("MEDLEY_URL")),
        api_key=_key_of(api_key if api_key is not None else os.environ.get("MEDLEY_API_KEY")),
        max_retries=checked_retries(max_retries),
        timeout_s=checked_timeout(timeout_s),
    )


def checked_retries(max_retries: int) -> int:
    if max_retries < 0:
        raise MedleyError("max_retries must be 0 or more.")
    return max_retries


def checked_timeout(timeout_s: float | None) -> float | None:
    if timeout_s is not None and not 0 < timeout_s < 2**31:
        raise MedleyError("timeout_s must be more than 0.")
    return timeout_s


def _address_of(text: str | None) -> str:
    """`/v1` at its end belongs to other SDKs."""
    if not text:
        raise MedleyError("Set base_url, or MEDLEY_URL, to the address of the service.")
    address = re.sub(r"/v1$", "", text.rstrip("/"))
    if not re.fullmatch(r"https?://[^/?#@\s]+(/[^?#\s]*)?", address):
        raise MedleyError("base_url must begin with http:// or https:// and have no credentials, query or fragment.")
    return address


def _key_of(text: str | None) -> str:
    """The key itself is in no message: it would be in a log."""
    key = (text or "").strip()
    if not key:
        raise MedleyError("Set api_key, or MEDLEY_API_KEY, to an API key.")
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        raise MedleyError("api_key has characters that no API key has.")
    return key


def _pairs_of(name: str, value: QueryValue) -> list[tuple[str, str]]:
    if value is None:
        return []
    if isinstance(value, str | int):
        return [(name, str(value))]
    if isinstance(value, datetime):
        return [(name, json_time(value))]
    if isinstance(value, Mapping):
        return [(f"{name}[{key}]", text) for key, text in value.items()]
    return [(name, ",".join(value))]


def json_time(value: str | datetime) -> str:
    """A datetime without a zone has that of this machine, as everywhere in Python."""
    if isinstance(value, str):
        return value
    return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def pause_before(request: Request, error: MedleyError, retries: int) -> float | None:
    """Returns the seconds to wait before the next attempt; None if there must be none."""
    usual_s: float = min(_BACKOFF_MOST_S, _BACKOFF_FIRST_S * 2**retries) * (0.75 + random.random() / 4)
    if isinstance(error, ConnectionFailedError):
        return usual_s if request.repeats is Repeats.ALWAYS else None
    if not isinstance(error, ApiError) or error.headers.get("x-should-retry") == "false":
        return None
    after_s = _retry_after(error.headers.get("retry-after"))
    # The same Idempotency-Key is at work: an earlier attempt has not been answered yet.
    is_in_flight = error.status == 409 and after_s is not None
    is_own = request.repeats is Repeats.AFTER_ERROR and error.type in ERROR_CLASSES
    is_passing = error.status in _RETRIED_STATUSES and (request.repeats is Repeats.ALWAYS or is_own)
    if not (is_in_flight or error.status == 429 or is_passing):
        return None
    if after_s is not None and after_s > _RETRY_AFTER_S_MAX:
        return None
    return usual_s if after_s is None else after_s


def _retry_after(value: str | None) -> float | None:
    """Returns the seconds of the header, which has a number or a date."""
    if value is None:
        return None
    if re.fullmatch(r"[0-9]{1,12}", value):
        return float(value)
    try:
        date = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, date.timestamp() - time.time())


def json_of(value: Mapping[str, object]) -> bytes:
    """Returns the JSON of a request. Raises MedleyError if it has none."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise MedleyError(f"The request cannot be written as JSON: {error}") from error


JSON_HEADERS: Final[Mapping[str, str]] = {"content-type": "application/json"}


def parse_object(body: bytes, kind: type[T]) -> T:
    """Returns the JSON of an answer, which `types.py` describes: a test compares them with the service."""
    try:
        value: T = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _not_the_service() from error
    if not isinstance(value, dict):
        raise _not_the_service()
    return value


def _not_the_service() -> MedleyError:
    return MedleyError("The answer is not JSON. Is base_url the address of a Medley service?")


@dataclass(frozen=True)
class Page(Generic[T]):
    """A part of a list."""

    data: list[T]
    has_more: bool
    first_id: str | None
    last_id: str | None


def parse_page(body: bytes, kind: type[T]) -> Page[T]:
    try:
        value = json.loads(body)
        return Page(value["data"], value["has_more"], value["first_id"], value["last_id"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _not_the_service() from error


def segment(id_: str) -> str:
    """Returns the id as one segment of a path."""
    if not isinstance(id_, str) or id_ in ("", ".", ".."):
        raise MedleyError(f"{id_!r} is not an id.")
    return quote(id_, safe="", errors="replace")


class Deadline:
    """The end of a wait; there may be none."""

    def __init__(self, wait_s: float | None) -> None:
        if wait_s is not None and not wait_s >= 0:
            raise MedleyError("wait must be a number of seconds from 0.")
        self.wait_s: float = float("inf") if wait_s is None else wait_s
        self._end_s = time.monotonic() + self.wait_s

    @property
    def left_s(self) -> float:
        return max(0.0, self._end_s - time.monotonic())
