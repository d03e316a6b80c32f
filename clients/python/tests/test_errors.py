from __future__ import annotations

import contextlib
import socket
import threading

import httpx
import pytest
from conftest import MakeClient
from servers import Proxy, Reply

import medley_client as sdk
from medley_client import Medley


def test_name_what_is_wrong_with_the_input(medley: Medley) -> None:
    with pytest.raises(sdk.InvalidRequestError) as caught:
        medley.generate("sandbox/image", {"prompt": 7})
    assert caught.value.status == 422
    assert "prompt" in str(caught.value.param)


def test_have_the_class_of_their_type(make_client: MakeClient) -> None:
    medley = make_client()
    with pytest.raises(sdk.NotFoundError):
        medley.models.get("no/model")
    with pytest.raises(sdk.AuthenticationError):
        make_client(api_key="mdl_wrong").balance()
    with pytest.raises(sdk.TaskFailedError):
        medley.generate("sandbox/down", {"prompt": "x"})


@pytest.mark.parametrize(
    ("type_", "status", "expected"),
    [
        ("invalid_request", 400, sdk.InvalidRequestError),
        ("authentication_error", 401, sdk.AuthenticationError),
        ("insufficient_balance", 402, sdk.InsufficientBalanceError),
        ("permission_error", 403, sdk.PermissionDeniedError),
        ("not_found", 404, sdk.NotFoundError),
        ("rate_limit", 429, sdk.RateLimitError),
        ("rate_limit_error", 429, sdk.FailedGenerationsError),
        ("internal_error", 500, sdk.InternalError),
        ("upstream_error", 502, sdk.UpstreamError),
        ("timeout", 504, sdk.UpstreamTimeoutError),
        ("new_type", 418, sdk.ApiError),
    ],
)
def test_of_each_type_have_a_class(
    make_client: MakeClient, proxy: Proxy, type_: str, status: int, expected: type[sdk.ApiError]
) -> None:
    body = f'{{"error": {{"type": "{type_}", "message": "m", "details": [{{"field": "a", "message": "b"}}, 7]}}}}'
    proxy.decide = lambda _seen, _nth: Reply(status, {}, body)
    with pytest.raises(sdk.ApiError) as caught:
        make_client(max_retries=0).balance()
    assert type(caught.value) is expected
    assert (caught.value.status, caught.value.details) == (status, [sdk.FieldMistake("a", "", "b")])


@pytest.mark.parametrize(
    "body", ["<html>", "[]", '{"error": "x"}', "[" * 100_000], ids=["html", "list", "text", "deep"]
)
def test_of_a_proxy_have_a_status_and_no_type(make_client: MakeClient, proxy: Proxy, body: str) -> None:
    proxy.decide = lambda _seen, _nth: Reply(502, {}, body)
    with pytest.raises(sdk.ApiError) as caught:
        make_client(max_retries=0).balance()
    assert (caught.value.status, caught.value.type) == (502, "unknown")


@pytest.mark.parametrize("body", ["<html>", "[]", "null", "[" * 100_000], ids=["html", "list", "null", "deep"])
def test_an_answer_that_is_no_object_is_not_the_services(make_client: MakeClient, proxy: Proxy, body: str) -> None:
    proxy.decide = lambda _seen, _nth: Reply(200, {}, body)
    with pytest.raises(sdk.MedleyError, match="base_url"):
        make_client().balance()
    with pytest.raises(sdk.MedleyError, match="base_url"):
        make_client().tasks.list().first()


def test_a_redirect_is_not_followed(make_client: MakeClient, proxy: Proxy) -> None:
    proxy.decide = lambda _seen, _nth: Reply(307, {"location": "/elsewhere"})
    with pytest.raises(sdk.ApiError) as caught:
        make_client().balance()
    assert (caught.value.status, len(proxy.seen)) == (307, 1)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_that_may_pass_are_repeated(make_client: MakeClient, proxy: Proxy, status: int) -> None:
    proxy.decide = lambda _seen, nth: Reply(status, {"retry-after": "0"}) if nth < 3 else "pass"
    assert make_client().balance()["currency"] == "USD"
    assert len(proxy.seen) == 3


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422, 500])
def test_that_stay_the_same_are_not_repeated(make_client: MakeClient, proxy: Proxy, status: int) -> None:
    proxy.decide = lambda _seen, _nth: Reply(status)
    with pytest.raises(sdk.ApiError):
        make_client().balance()
    assert len(proxy.seen) == 1


@pytest.mark.parametrize(("headers", "count"), [({"retry-after": "0"}, 2), ({}, 1)], ids=["in flight", "conflict"])
def test_a_409_is_repeated_if_it_says_when(
    make_client: MakeClient, proxy: Proxy, headers: dict[str, str], count: int
) -> None:
    proxy.decide = lambda _seen, nth: Reply(409, headers) if nth == 1 else "pass"
    with contextlib.suppress(sdk.InvalidRequestError, sdk.RateLimitError):
        make_client().balance()
    assert len(proxy.seen) == count


def test_a_lost_connection_ends_after_max_retries(make_client: MakeClient, proxy: Proxy) -> None:
    proxy.decide = lambda _seen, _nth: "cut"
    with pytest.raises(sdk.ConnectionFailedError):
        make_client(max_retries=1).balance()
    assert len(proxy.seen) == 2
    proxy.seen.clear()
    with pytest.raises(sdk.ConnectionFailedError):
        make_client().with_options(max_retries=0).balance()
    assert len(proxy.seen) == 1


@pytest.mark.parametrize("drip", [b"", b"x"], ids=["silent", "slow"])
def test_a_request_ends_after_timeout_s(drip: bytes) -> None:
    """A server that says nothing, and one that never comes to the end of its answer."""
    server = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()

    def serve() -> None:
        connection, _ = server.accept()
        if drip:
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
        with connection, contextlib.suppress(ConnectionError):
            for _ in range(200):
                if stopped.wait(0.05):
                    break
                connection.sendall(drip)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with Medley(base_url=url, api_key="k", max_retries=0) as medley, pytest.raises(sdk.RequestTimeoutError):
            medley.with_options(timeout_s=0.3).balance()
    finally:
        stopped.set()
        thread.join()
        server.close()


def test_no_setting_that_is_wrong_is_accepted_and_no_message_has_the_key(
    monkeypatch: pytest.MonkeyPatch, make_client: MakeClient
) -> None:
    monkeypatch.delenv("MEDLEY_URL", raising=False)
    monkeypatch.delenv("MEDLEY_API_KEY", raising=False)
    for address in ("ftp://x", "http://a:b@x", "http://x?y", "http://x#y", "http://", "http://x y"):
        with pytest.raises(sdk.MedleyError, match="base_url"):
            Medley(base_url=address, api_key="k")
    with pytest.raises(sdk.MedleyError, match="^(?!.*geheim).*api_key"):
        Medley(base_url="http://x", api_key="mdl_geheim\nx")
    with pytest.raises(sdk.MedleyError, match="max_retries"):
        Medley(base_url="http://x", api_key="k", max_retries=-1)
    with pytest.raises(sdk.MedleyError, match="timeout_s"):
        make_client().with_options(timeout_s=0)
    with pytest.raises(sdk.MedleyError, match="MEDLEY_URL"):
        Medley(api_key="k")
    with pytest.raises(sdk.MedleyError, match="MEDLEY_API_KEY"):
        Medley(base_url="http://x")
    assert "geheim" not in repr(make_client(api_key="mdl_geheim")._http.settings)


def test_settings_come_from_the_environment_and_v1_belongs_to_other_sdks(
    monkeypatch: pytest.MonkeyPatch, proxy: Proxy, medley: Medley
) -> None:
    monkeypatch.setenv("MEDLEY_URL", f"{proxy.url}/v1/")
    monkeypatch.setenv("MEDLEY_API_KEY", medley._http.settings.api_key)
    with Medley() as other:
        assert other.balance()["currency"] == "USD"


def test_a_client_of_httpx_is_used_and_left_open(proxy: Proxy, medley: Medley) -> None:
    with httpx.Client(headers={"x-client-request-id": "mine"}) as http_client:
        with Medley(base_url=proxy.url, api_key=medley._http.settings.api_key, http_client=http_client) as other:
            other.balance()
        assert proxy.seen[-1].headers["x-client-request-id"] == "mine"
        assert not http_client.is_closed


def test_a_closed_client_says_so(make_client: MakeClient) -> None:
    medley = make_client()
    medley.close()
    with pytest.raises(sdk.MedleyError, match="closed"):
        medley.balance()


@pytest.mark.parametrize("id_", ["", ".", ".."])
def test_an_id_that_leads_elsewhere_is_refused(medley: Medley, proxy: Proxy, id_: str) -> None:
    with pytest.raises(sdk.MedleyError, match="not an id"):
        medley.tasks.get(id_)
    assert proxy.seen == []
