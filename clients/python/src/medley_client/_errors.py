"""Everything that this client raises by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .types import Task


@dataclass(frozen=True)
class FieldMistake:
    """One mistake of a request that has several."""

    field: str
    rule: str
    message: str


class MedleyError(Exception):
    """The base of all errors of this client."""

    task_id: str | None = None
    """The task that was created before the error, if there is one. It goes on; `tasks.wait` waits for it again."""


class ConnectionFailedError(MedleyError):
    """No complete answer came: the connection failed, or was cut."""


class RequestTimeoutError(ConnectionFailedError):
    """No complete answer came within `timeout_s`."""


class WebhookError(MedleyError):
    """The signature of a webhook is missing, wrong or too old. Answer 401."""


class TaskFailedError(MedleyError):
    """The task has ended as `failed`. It costs nothing. The message is that of the task's `error`."""

    def __init__(self, task: Task) -> None:
        error = task["error"]
        super().__init__(error["message"] if error else "The task failed.")
        self.task: Task = task
        self.task_id = task["id"]
        #: Such as `content_policy_violation`.
        self.type: str = error["type"] if error else "internal_error"

    def __reduce__(self) -> tuple[type[TaskFailedError], tuple[Task]]:
        return (type(self), (self.task,))


class WaitTimeoutError(MedleyError):
    """The time of `wait` is over. The task goes on."""

    def __init__(self, task: Task, wait_s: float) -> None:
        super().__init__(f"The task {task['id']} is still {task['status']} after {wait_s:g} s.")
        self.task: Task = task
        self.task_id = task["id"]
        self.wait_s = wait_s

    def __reduce__(self) -> tuple[type[WaitTimeoutError], tuple[Task, float]]:
        return (type(self), (self.task, self.wait_s))


@dataclass(frozen=True)
class ErrorAnswer:
    """The parts of an answer with a status from 400."""

    status: int
    type: str
    message: str
    code: str | None = None
    param: str | None = None
    details: list[FieldMistake] = field(default_factory=list)
    request_id: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


class ApiError(MedleyError):
    """An answer with a status from 400. Branch on the class, or on `status` and `type`; the message may change."""

    def __init__(self, answer: ErrorAnswer) -> None:
        super().__init__(answer.message)
        self._answer = answer
        self.status: int = answer.status
        self.type: str = answer.type
        #: More specific than the type, such as `conflict` or `model_not_found`.
        self.code: str | None = answer.code
        #: The field or parameter at fault.
        self.param: str | None = answer.param
        #: All mistakes, if there are several.
        self.details: list[FieldMistake] = answer.details
        #: Name it when you ask the operator.
        self.request_id: str | None = answer.request_id
        #: The headers of the answer; their names are in lower case.
        self.headers: dict[str, str] = answer.headers
        #: An earlier attempt of the same request was sent and its answer lost.
        self.follows_lost_answer: bool = False

    def __reduce__(self) -> tuple[type[ApiError], tuple[ErrorAnswer]]:
        return (type(self), (self._answer,))


class InvalidRequestError(ApiError):
    """400, 404 of a method, 409, 413, 415, 422: the request has to change."""


class AuthenticationError(ApiError):
    """401: the API key is missing, malformed or deleted."""


class InsufficientBalanceError(ApiError):
    """402: the available balance is lower than the hold."""


class PermissionDeniedError(ApiError):
    """403: the key has reached its monthly limit, or may not do this."""


class NotFoundError(ApiError):
    """404: no such model, task or file."""


class RateLimitError(ApiError):
    """429 `rate_limit`: too many requests for this key, still after the retries."""


class FailedGenerationsError(ApiError):
    """429 `rate_limit_error`: the account is paused after too many failed generations. Never repeated."""


class InternalError(ApiError):
    """500: a fault of the service."""


class UpstreamError(ApiError):
    """502 or 503: the provider of the model, or a part of the service, is not available."""


class UpstreamTimeoutError(ApiError):
    """504: the model did not answer in time."""


#: The class of each `error.type` of the service, and its status where an event of a stream has none.
ERROR_CLASSES: Final[dict[str, tuple[type[ApiError], int]]] = {
    "invalid_request": (InvalidRequestError, 400),
    "authentication_error": (AuthenticationError, 401),
    "insufficient_balance": (InsufficientBalanceError, 402),
    "permission_error": (PermissionDeniedError, 403),
    "not_found": (NotFoundError, 404),
    "rate_limit": (RateLimitError, 429),
    "rate_limit_error": (FailedGenerationsError, 429),
    "internal_error": (InternalError, 500),
    "upstream_error": (UpstreamError, 502),
    "timeout": (UpstreamTimeoutError, 504),
}


def error_of_answer(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Returns the error of an answer. `body` may be anything: a proxy may have written it."""
    return _error_of(_fields_of(_fields_of(_parse(body)).get("error")), status, headers)


def error_of_event(error: object, headers: Mapping[str, str]) -> ApiError:
    """Returns the error that a stream ends with. Its status is the one that its type has elsewhere."""
    fields = _fields_of(error)
    _, status = ERROR_CLASSES.get(str(fields.get("type")), (ApiError, 502))
    return _error_of(fields, status, headers)


def _error_of(error: Mapping[str, object], status: int, headers: Mapping[str, str]) -> ApiError:
    lower = {name.lower(): value for name, value in headers.items()}
    type_ = _text_of(error.get("type")) or "unknown"
    details = error.get("details")
    answer = ErrorAnswer(
        status=status,
        type=type_,
        message=_text_of(error.get("message")) or f"The service answered {status} without an error of its own.",
        code=_text_of(error.get("code")),
        param=_text_of(error.get("param")),
        details=[mistake for each in details for mistake in _mistake_of(each)] if isinstance(details, list) else [],
        request_id=_text_of(error.get("request_id")) or lower.get("x-request-id"),
        headers=lower,
    )
    cls, _ = ERROR_CLASSES.get(type_, (ApiError, status))
    return cls(answer)


def _parse(body: bytes) -> object:
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value


def _fields_of(value: object) -> dict[str, object]:
    return {str(name): each for name, each in value.items()} if isinstance(value, dict) else {}


def _text_of(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _mistake_of(value: object) -> list[FieldMistake]:
    fields = _fields_of(value)
    name, message = _text_of(fields.get("field")), _text_of(fields.get("message"))
    if name is None or message is None:
        return []
    return [FieldMistake(field=name, rule=_text_of(fields.get("rule")) or "", message=message)]
