"""The signature of webhooks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ._errors import MedleyError, WebhookError
from .types import EventEnvelope, Task, WebhookEventType

_SIGNATURES_MAX: Final = 16


@dataclass(frozen=True)
class WebhookEvent:
    """A webhook to the `webhook_url` of a task."""

    type: Literal["task.succeeded", "task.failed"]
    #: The same at each attempt of one delivery.
    delivery_id: str
    #: The final task. It may come twice: deduplicate by its `id`.
    task: Task


@dataclass(frozen=True)
class EndpointEvent:
    """A webhook to an endpoint of the account."""

    #: A newer service may have other types: ignore what you do not know.
    type: WebhookEventType
    #: The same at each attempt of one delivery.
    delivery_id: str
    #: Its `type` decides about its `data`. It may come twice: deduplicate by its `id`.
    event: EventEnvelope


def verify_webhook(
    body: bytes | bytearray | memoryview | str,
    headers: Mapping[str, str],
    secret: str | Iterable[str],
    *,
    tolerance_s: float = 300,
) -> WebhookEvent | EndpointEvent:
    """Returns the event of a webhook whose signature is right; raises WebhookError otherwise.

    `body` is what was received, before any parsing. `headers` are those of the request, in any case. `secret` is that
    of the account, for the `webhook_url` of tasks, or that of an endpoint; or several, of both kinds and while one is
    replaced. `tolerance_s` is the most seconds between the clock of the sender and this one. It reads the headers of
    Standard Webhooks, which sign the time too, so that an old request cannot be sent again.
    """
    received = _bytes_of(body)
    keys = [_key_of(each) for each in ([secret] if isinstance(secret, str) else secret)]
    if not keys:
        raise MedleyError("verify_webhook needs at least one secret.")
    lower = {name.lower(): value for name, value in headers.items()}
    delivery_id, timestamp, signatures = (
        lower.get(name, "") for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
    )
    if not (delivery_id and timestamp and signatures):
        raise WebhookError("The request has no signature.")
    if not re.fullmatch(r"[0-9]{1,12}", timestamp) or not abs(time.time() - int(timestamp)) <= tolerance_s:
        raise WebhookError(f"The time of the request is more than {tolerance_s:g} s away.")
    message = f"{delivery_id}.{timestamp}.".encode("utf-8", "surrogateescape") + received
    if not _has_signature(message, signatures, keys):
        raise WebhookError("The signature is wrong.")
    return _event_of(delivery_id, received)


def _has_signature(message: bytes, signatures: str, keys: Iterable[bytes]) -> bool:
    """Compares in constant time, and every signature with every key."""
    received = [
        signature
        for text in signatures.split(" ", _SIGNATURES_MAX)[:_SIGNATURES_MAX]
        if text.startswith("v1,") and (signature := _base64_of(text[3:])) is not None
    ]
    is_right = False
    for key in keys:
        expected = hmac.new(key, message, hashlib.sha256).digest()
        for signature in received:
            is_right |= hmac.compare_digest(expected, signature)
    return is_right


def _event_of(delivery_id: str, body: bytes) -> WebhookEvent | EndpointEvent:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WebhookError("The body is not JSON.") from error
    if _has_texts(value, "status"):
        task: Task = value
        is_failed = task["status"] == "failed"
        return WebhookEvent(type="task.failed" if is_failed else "task.succeeded", delivery_id=delivery_id, task=task)
    if _has_texts(value, "id", "type") and isinstance(value.get("data"), dict):
        event: EventEnvelope = value
        return EndpointEvent(type=event["type"], delivery_id=delivery_id, event=event)
    raise WebhookError("The body is neither a task nor an event.")


def _has_texts(value: object, *names: str) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name), str) for name in names)


def _bytes_of(body: bytes | bytearray | memoryview | str) -> bytes:
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    raise MedleyError("verify_webhook needs the body as it was received: bytes or text, not a parsed object.")


def _key_of(secret: object) -> bytes:
    key = _base64_of(secret[6:]) if isinstance(secret, str) and secret.startswith("whsec_") else None
    if not key:
        raise MedleyError("A webhook secret is whsec_ and base64 after it.")
    return key


def _base64_of(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
