from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from servers import Proxy

import medley_client as sdk
from medley_client import Medley

with open(os.environ["MEDLEY_TEST_OPENAPI"]) as file:
    openapi: dict[str, Any] = json.load(file)


def test_are_read_over_25_pages_each_task_once_newest_first(medley: Medley, proxy: Proxy) -> None:
    ids = [medley.tasks.create("sandbox/image", {"prompt": str(n)})["id"] for n in range(25)]
    proxy.seen.clear()
    assert [task["id"] for task in medley.tasks.list(limit=1)] == ids[::-1]
    assert len(proxy.seen) == 25
    for id_ in ids:
        medley.tasks.wait(id_)
    assert len(medley.transactions(limit=10, type="charge").take(100)) == 25
    proxy.seen.clear()
    assert len(medley.tasks.list(limit=7).take(3)) == 3
    assert [len(page.data) for page in medley.tasks.list(limit=20).pages()] == [20, 5]
    assert medley.tasks.list().take(0) == []


def test_every_call_and_parameter_is_one_of_openapi_json(medley: Medley, proxy: Proxy) -> None:
    task = medley.generate("sandbox/image", {"prompt": "x"}, metadata={"a": "b"})
    hour_ago = datetime.now(timezone.utc) - timedelta(hours=1)
    listed = medley.tasks.list(status="succeeded", metadata={"a": "b"}, created_after=datetime(1970, 1, 2))
    assert [each["id"] for each in listed.first().data] == [task["id"]]
    assert medley.models.get("sandbox/image")["modality"] == "image"
    assert [model["modality"] for model in medley.models.list(modality="video", limit=1).take(1)] == ["video"]
    assert medley.estimate("sandbox/image", {"prompt": "x"})["estimated_cost"]["exact"] == "0.010000"
    assert medley.usage(group_by="model", from_=hour_ago)["total"]["exact"] == "0.010000"
    assert (medley.balance()["available"]["exact"], medley.key()["spent"]["exact"]) == ("99.990000", "0.010000")
    assert "/files/" in medley.tasks.links(task["id"])[0]["url"]
    called = medley.calls.list(kind="task", metadata={"a": "b"}, created_after=hour_ago, status="succeeded").take(2)
    assert [(each["id"], each["path"]) for each in called] == [(task["id"], f"/v1/tasks/{task['id']}")]
    assert medley.calls.list(http_status=429, error="upstream_error").take(1) == []
    given = medley.feedback.give(task["id"], True, user="ann", tags=["a"])
    assert [each["score"] for each in medley.feedback.list(reference_id=task["id"], user="ann").take(2)] == [1]
    medley.feedback.delete(given["id"])
    with pytest.raises(sdk.NotFoundError):
        medley.feedback.delete(given["id"])
    with pytest.raises(sdk.InvalidRequestError) as caught:
        medley.tasks.cancel(task["id"])
    assert caught.value.status == 409
    medley.tasks.delete_output(task["id"])
    with pytest.raises(sdk.NotFoundError):
        medley.download(task["output"][0]["url"])
    for seen in proxy.seen:
        url = urlsplit(seen.path)
        if url.path.startswith("/v1/"):
            path = re.sub(r"models/.+", "models/{id}", re.sub(r"(?:task|feedback)_\w+", "{id}", url.path))
            names = {each["name"] for each in openapi["paths"][path][seen.method.lower()].get("parameters", [])}
            assert {re.sub(r"\[.*", "", name) for name in parse_qs(url.query)} <= names


@pytest.mark.parametrize(
    ("method", "path"),
    [
        (sdk.Tasks.list, "/v1/tasks"),
        (sdk.Calls.list, "/v1/calls"),
        (sdk.Models.list, "/v1/models"),
        (sdk.Files.list, "/v1/files"),
        (sdk.Medley.transactions, "/v1/balance/transactions"),
        (sdk.Medley.usage, "/v1/usage"),
        (sdk.WebhookEndpoints.list, "/v1/webhook_endpoints"),
    ],
)
def test_take_every_parameter_of_openapi_json(method: Callable[..., object], path: str) -> None:
    parameters = {each["name"] for each in openapi["paths"][path]["get"]["parameters"]}
    own = {name.rstrip("_") for name in inspect.signature(method).parameters if name != "self"}
    backwards = {"before", "before_id"}  # a cursor goes forwards
    other_names = {"after_id"} if "after" in parameters else set()
    assert own == parameters - backwards - other_names
