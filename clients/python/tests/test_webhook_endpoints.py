from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest
from servers import Proxy, Receiver
from test_webhook import other

import medley_client as sdk
from medley_client import AsyncMedley, Medley, verify_webhook

url = "https://example.com/medley"


def test_are_created_listed_page_by_page_changed_and_deleted(medley: Medley, proxy: Proxy) -> None:
    endpoints = medley.webhook_endpoints
    first = endpoints.create(url, ["task.*", "balance.low"], filters={"metadata": {"team": "web"}})
    second = endpoints.create(url, ["*"], enabled=False)
    assert first["secret"].startswith("whsec_")
    assert (first["filters"]["metadata"], second["disabled_reason"]) == ({"team": "web"}, "manual")
    listed = list(endpoints.list(limit=1))
    assert [each["id"] for each in listed] == [first["id"], second["id"]]
    assert listed[0] == {name: value for name, value in first.items() if name != "secret"}
    changed = endpoints.update(first["id"], description="Shop", events=["invoice.created"])
    assert changed == endpoints.get(first["id"])
    assert changed == {**listed[0], "description": "Shop", "events": ["invoice.created"]}
    assert endpoints.update(first["id"], description="", filters={})["filters"]["metadata"] == {}
    proxy.seen.clear()
    proxy.decide = lambda _seen, nth: "cut" if nth == 1 else "pass"
    endpoints.delete(second["id"])
    assert len(proxy.seen) == 2
    with pytest.raises(sdk.NotFoundError):
        endpoints.get(second["id"])


def test_are_created_once_and_no_secret_is_rotated_twice_when_the_answer_is_lost(medley: Medley, proxy: Proxy) -> None:
    endpoints = medley.webhook_endpoints
    id_ = endpoints.create(url, ["*"])["id"]
    proxy.seen.clear()
    proxy.decide = lambda _seen, _nth: "cut"
    acts: list[Callable[[], object]] = [
        lambda: endpoints.create(url, ["*"]),
        lambda: endpoints.rotate_secret(id_),
        lambda: endpoints.test(id_, "task.failed"),
        lambda: endpoints.replay(id_, "2026-01-31T12:00:00Z"),
    ]
    for act in acts:
        with pytest.raises(sdk.ConnectionFailedError):
            act()
    assert len(proxy.seen) == 4


def test_get_events_that_are_verified_by_their_secret_and_by_the_one_before(medley: Medley, receiver: Receiver) -> None:
    endpoints = medley.webhook_endpoints
    endpoint = endpoints.create(receiver.url, ["task.*"])
    task = medley.generate("sandbox/image", {"prompt": "x"})
    request = receiver.nth(1)
    received = verify_webhook(request.body, request.headers, endpoint["secret"])
    assert isinstance(received, sdk.EndpointEvent)
    assert received.event["type"] == received.type == "task.succeeded"
    assert received.event["data"] == task
    rotated = endpoints.rotate_secret(endpoint["id"])
    assert rotated["previous_secret_until"] is not None
    assert endpoints.test(endpoint["id"], "balance.low")["status"] == 204
    request = receiver.nth(2)
    for secret in (endpoint["secret"], rotated["secret"], [other, endpoint["secret"]]):
        low = verify_webhook(request.body, request.headers, secret)
        assert isinstance(low, sdk.EndpointEvent)
        assert low.event["type"] == "balance.low"
        assert low.event["data"]["threshold"]["amount"] == "5.00"
    hour_ago = datetime.now(timezone.utc) - timedelta(hours=1)
    counted = endpoints.replay(endpoint["id"], hour_ago, which="all", dry_run=True)
    assert (counted["events"], counted["dry_run"]) == (1, True)
    assert endpoints.replay(endpoint["id"], hour_ago, datetime.now(), which="all")["next_from"] is None
    request = receiver.nth(3)
    assert verify_webhook(request.body, request.headers, rotated["secret"]) == received


def test_are_there_for_asyncio_too(make_async: Callable[[], AsyncMedley]) -> None:
    async def work() -> None:
        async with make_async() as medley:
            made = await medley.webhook_endpoints.create(url, ["model.retiring"])
            assert [each["id"] async for each in medley.webhook_endpoints.list()] == [made["id"]]
            await medley.webhook_endpoints.delete(made["id"])

    asyncio.run(work())
