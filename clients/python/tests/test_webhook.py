from __future__ import annotations

import base64
import hashlib
import hmac
import time
from email.message import Message
from typing import Any

import pytest
from servers import Account, Receiver

import medley_client as sdk
from medley_client import Medley, verify_webhook

other = f"whsec_{base64.b64encode(bytes([7]) * 32).decode()}"


def signed(body: bytes, secret: str = other, *, more: str = "") -> dict[str, str]:
    timestamp = str(int(time.time()))
    key = base64.b64decode(secret[6:])
    signature = base64.b64encode(hmac.new(key, b"id." + timestamp.encode() + b"." + body, hashlib.sha256).digest())
    return {
        "webhook-id": "id",
        "webhook-timestamp": timestamp,
        "webhook-signature": f"{more}v1,{signature.decode()}",
    }


def test_of_the_service_is_verified_and_no_other(medley: Medley, account: Account, receiver: Receiver) -> None:
    task = medley.generate("sandbox/image", {"prompt": "x"}, webhook_url=receiver.url)
    request = receiver.first()
    secret = account.webhook_secret
    headers = {name.lower(): value for name, value in request.headers.items()}
    event = verify_webhook(request.body, request.headers, secret)
    assert isinstance(event, sdk.WebhookEvent)
    assert (event.type, event.delivery_id, event.task) == ("task.succeeded", headers["webhook-id"], task)
    of_wsgi = {name.title(): value for name, value in headers.items()}
    assert verify_webhook(request.body.decode(), of_wsgi, [other, secret]) == event
    later = str(int(headers["webhook-timestamp"]) + 1)
    for body, changed, key in [
        (request.body, headers, other),
        (request.body + b" ", headers, secret),
        (request.body, {**headers, "webhook-id": "x"}, secret),
        (request.body, {**headers, "webhook-signature": ""}, secret),
        (request.body, {**headers, "webhook-timestamp": "x"}, secret),
        (request.body, {**headers, "webhook-timestamp": "١"}, secret),
        (request.body, {**headers, "webhook-timestamp": later}, secret),
        (request.body, {**headers, "webhook-signature": headers["webhook-signature"][:-4]}, secret),
    ]:
        with pytest.raises(sdk.WebhookError):
            verify_webhook(body, changed, key)
    for tolerance_s in (-1, float("nan")):
        with pytest.raises(sdk.WebhookError):
            verify_webhook(request.body, headers, secret, tolerance_s=tolerance_s)


def test_of_a_failed_task_says_so(medley: Medley, account: Account, receiver: Receiver) -> None:
    with pytest.raises(sdk.TaskFailedError):
        medley.generate("sandbox/image", {"prompt": "x [[fail]]"}, webhook_url=receiver.url)
    request = receiver.first()
    assert verify_webhook(request.body, request.headers, account.webhook_secret).type == "task.failed"


def test_has_several_signatures_while_a_secret_is_replaced() -> None:
    body = b'{"status": "succeeded"}'
    wrong = base64.b64encode(bytes(32)).decode()
    for more in (f"v1,{wrong} ", f"v2,{wrong} ", "v1, ", "v1,%%% ", "v1,é "):
        assert verify_webhook(body, signed(body, more=more), other).delivery_id == "id"
    with pytest.raises(sdk.WebhookError):
        verify_webhook(body, signed(body, more=f"v1,{wrong} " * 16), other)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"7", b"{}", b"\xff", b"[" * 100_000, b'{"status": 1}', b'{"id": "x", "type": "y", "data": 1}']
)
def test_that_is_signed_and_is_neither_a_task_nor_an_event_is_refused(body: bytes) -> None:
    with pytest.raises(sdk.WebhookError):
        verify_webhook(body, signed(body), other)


def test_headers_of_an_email_message_are_read_too() -> None:
    body = b'{"status": "failed"}'
    message = Message()
    for name, value in signed(body).items():
        message[name.upper()] = value
    assert verify_webhook(body, dict(message.items()), other).type == "task.failed"


@pytest.mark.parametrize("secret", ["wrong", "whsec_", "whsec_%%%", "", [], b"whsec_AAAA"])
def test_needs_a_secret_of_the_right_form(secret: Any) -> None:
    with pytest.raises(sdk.MedleyError, match="secret") as caught:
        verify_webhook(b"{}", signed(b"{}"), secret)
    assert not isinstance(caught.value, sdk.WebhookError)


def test_needs_the_body_as_it_was_received() -> None:
    with pytest.raises(sdk.MedleyError, match="received"):
        verify_webhook({"id": "x"}, {}, other)  # type: ignore[arg-type]
