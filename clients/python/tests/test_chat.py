from __future__ import annotations

import json
import os
import time

import pytest
from conftest import MakeClient
from servers import Account, Proxy, Reply

import medley_client as sdk
from medley_client import ChatRecord, Medley

function = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
tools = [{"type": "function", "function": function}]


def ask(text: str) -> list[dict[str, object]]:
    return [{"role": "user", "content": text}]


def record_of(medley: Medley, request_id: str | None) -> ChatRecord:
    """Waits for the record of a call, which is there a moment after its end."""
    until_s = time.monotonic() + 120
    while True:
        try:
            return medley.chat.get(str(request_id))
        except sdk.NotFoundError:
            assert time.monotonic() < until_s
            time.sleep(0.1)


def test_answers_with_its_text_usage_and_cost(medley: Medley) -> None:
    answer = medley.chat.create("sandbox/chat", ask("Hello [[tokens 20]]"), max_tokens=100)
    assert answer.finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage["completion_tokens"] == 20
    assert answer.body["model"] == "sandbox/chat"
    record = record_of(medley, answer.request_id)
    assert answer.cost == {"exact": record["cost"]["exact"], "currency": "USD"}
    assert answer.text
    medley.feedback.give(answer.request_id, True)
    assert [each["score"] for each in medley.feedback.list(reference_id=answer.request_id)] == [1]


def test_calls_tools_and_goes_on_with_its_message(medley: Medley) -> None:
    prompt = ask('How warm? [[tool weather {"city": "Oslo"}]]')
    answer = medley.chat.create("sandbox/chat", prompt, tools=tools)
    (call,) = answer.tool_calls
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("weather", {"city": "Oslo"})
    result = {"role": "tool", "tool_call_id": call["id"], "content": "Ten degrees."}
    assert "Ten degrees." in medley.chat.create("sandbox/chat", [*prompt, answer.message, result], tools=tools).text


def test_streams_its_text_as_it_comes(medley: Medley) -> None:
    with medley.chat.stream("sandbox/chat", ask("One two three [[tokens 30]]")) as stream:
        texts = list(stream.texts())
    assert len(texts) > 1
    assert "".join(texts) == stream.text
    assert (stream.finish_reason, stream.usage and stream.usage["completion_tokens"]) == ("stop", 30)
    assert record_of(medley, stream.request_id)["status"] == 200


@pytest.mark.parametrize("piece_bytes", [1, 65536])
@pytest.mark.parametrize(
    ("prompt", "parameters"),
    [
        ("Zażółć gęślą jaźń 🚲", {}),
        ('[[tool weather {"city": "Oslo"}]] [[tool weather {"city": "Rome"}]]', {"tools": tools}),
        ("Hello", {"response_format": {"type": "json_object"}}),
    ],
)
def test_a_stream_becomes_the_answer_that_is_not_streamed(
    medley: Medley, proxy: Proxy, prompt: str, parameters: dict[str, object], piece_bytes: int
) -> None:
    proxy.piece_bytes = piece_bytes
    whole = medley.chat.create("sandbox/chat", ask(prompt), **parameters)
    stream = medley.chat.stream("sandbox/chat", ask(prompt), **parameters)
    answer = stream.final()
    assert (answer.message, answer.tool_calls, answer.usage) == (whole.message, whole.tool_calls, whole.usage)
    assert (answer.text, answer.finish_reason, answer.cost) == (whole.text, whole.finish_reason, whole.cost)
    assert answer.body["object"] == "chat.completion"
    medley.feedback.give(answer.request_id, False)


def test_streams_its_parts(medley: Medley) -> None:
    parts = list(medley.chat.stream("sandbox/chat", ask("Hi"), stream_options={"include_usage": False}))
    assert {part["object"] for part in parts} == {"chat.completion.chunk"}
    assert not any(part.get("usage") for part in parts)


def test_a_stream_that_is_left_is_left_at_the_service_too(medley: Medley, account: Account) -> None:
    """Without the proxy, which would read on."""
    prompt = ask("[[tokens 16000]]")
    with Medley(base_url=os.environ["MEDLEY_TEST_URL"], api_key=account.key) as direct:
        with direct.chat.stream("sandbox/chat", prompt, max_tokens=16000) as stream:
            assert next(stream.texts())
        assert list(stream) == []
        with pytest.raises(sdk.MedleyError, match="left before its end"):
            stream.final()
        record = record_of(medley, stream.request_id)
        assert record["status"] == 499
        assert stream.cost() == record["cost"]


def test_a_stream_sends_nothing_before_it_is_read(medley: Medley, proxy: Proxy) -> None:
    with medley.chat.stream("sandbox/chat", ask("Hi")):
        pass
    assert proxy.seen == []


def test_a_stream_that_ends_with_an_error_or_is_cut_raises(medley: Medley) -> None:
    stream = medley.chat.stream("sandbox/chat", ask("Hello [[fail]]"))
    for read in (lambda: list(stream), stream.final):
        with pytest.raises(sdk.UpstreamError) as caught:
            read()
        assert (caught.value.status, caught.value.request_id) == (502, stream.request_id)
    with pytest.raises(sdk.MedleyError):
        list(medley.chat.stream("sandbox/chat", ask("Hello [[cut]]")))


@pytest.mark.parametrize(
    ("body", "expected", "text"),
    [
        ('data: {"choices": [{"delta": {"content": "a"}}]}\n\n', sdk.ConnectionFailedError, "a"),
        ("data: <html>\n\n", sdk.MedleyError, ""),
        ("data: []\n\n", sdk.MedleyError, ""),
        ('data: {"error": "x"}\n\n', sdk.ApiError, ""),
        ('data: {"choices": [], "error": {"type": "rate_limit"}}\n\n', sdk.RateLimitError, ""),
        (': keep-alive\r\n\r\ndata: {"choices": [null, 7, {"delta": null}]}\n\n', sdk.ConnectionFailedError, ""),
        (
            'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}\n\n',
            sdk.ConnectionFailedError,
            "a",
        ),
        ("", sdk.ConnectionFailedError, ""),
    ],
)
def test_a_stream_that_is_none_raises(
    medley: Medley, proxy: Proxy, body: str, expected: type[Exception], text: str
) -> None:
    proxy.decide = lambda _seen, _nth: Reply(200, {"content-type": "text/event-stream"}, body)
    stream = medley.chat.stream("sandbox/chat", ask("Hi"))
    with pytest.raises(expected):
        list(stream)
    assert stream.text == text
    assert len(proxy.seen) == 1


@pytest.mark.parametrize("body", ["[]", "{}", '{"choices": [{}]}', '{"choices": 7}'])
def test_an_answer_that_is_none_raises(medley: Medley, proxy: Proxy, body: str) -> None:
    proxy.decide = lambda _seen, _nth: Reply(200, {}, body)
    with pytest.raises(sdk.MedleyError, match="Is base_url the address"):
        medley.chat.create("sandbox/chat", ask("Hi"))


def test_a_stream_that_says_nothing_raises(make_client: MakeClient, proxy: Proxy) -> None:
    proxy.decide = lambda _seen, _nth: "silent"
    with pytest.raises(sdk.RequestTimeoutError):
        list(make_client(timeout_s=0.2).chat.stream("sandbox/chat", ask("Hi")))
    assert len(proxy.seen) == 1


def test_is_not_repeated_after_an_error_of_a_proxy(medley: Medley, proxy: Proxy) -> None:
    """Behind it the call may go on and cost money."""
    proxy.decide = lambda _seen, _nth: Reply(504, {"retry-after": "0"}, "<h1>Gateway Time-out</h1>")
    for call in (
        lambda: medley.chat.create("sandbox/chat", ask("Hi")),
        lambda: list(medley.chat.stream("sandbox/chat", ask("Hi"))),
    ):
        proxy.seen.clear()
        with pytest.raises(sdk.ApiError) as caught:
            call()
        assert (caught.value.status, len(proxy.seen)) == (504, 1)


def test_is_repeated_after_an_error_and_not_after_a_lost_answer(make_client: MakeClient, proxy: Proxy) -> None:
    medley = make_client()
    proxy.decide = lambda _seen, nth: Reply(502, {"retry-after": "0"}) if nth == 1 else "pass"
    assert medley.chat.create("sandbox/chat", ask("Hi")).text
    proxy.seen.clear()
    proxy.decide = lambda _seen, _nth: "cut"
    for call in (
        lambda: medley.chat.create("sandbox/chat", ask("Hi")),
        lambda: list(medley.chat.stream("m", ask("Hi"))),
    ):
        proxy.seen.clear()
        with pytest.raises(sdk.ConnectionFailedError):
            call()
        assert len(proxy.seen) == 1


def test_errors_have_their_class(medley: Medley) -> None:
    with pytest.raises(sdk.NotFoundError) as caught:
        medley.chat.create("no/model", ask("Hi"))
    assert caught.value.status == 404
    with pytest.raises(sdk.InvalidRequestError):
        list(medley.chat.stream("sandbox/chat", ask("Hi"), temperature="hot"))
    with pytest.raises(sdk.NotFoundError):
        medley.chat.get("req_none")
