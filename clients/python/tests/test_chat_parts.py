from __future__ import annotations

import json

import pytest

from medley_client._chat_parts import ChatParts, texts_of

JsonObject = dict[str, object]


def message_of(*deltas: JsonObject) -> object:
    parts = ChatParts()
    for delta in deltas:
        parts.take(json.dumps({"choices": [{"index": 0, "delta": delta}]}), {})
    return parts.body()["choices"][0]["message"]


def call(index: int, **more: object) -> JsonObject:
    return {"tool_calls": [{"index": index, **more}]}


def test_calls_of_tools_come_together_by_their_index() -> None:
    message = message_of(
        call(0, id="call_1", type="function", function={"name": "weather", "arguments": ""}),
        call(1, id="call_2", type="function", function={"name": "clock", "arguments": "{}"}),
        call(0, id="", type="function", function={"name": "weather", "arguments": '{"city":'}),
        call(0, function={"arguments": '"Oslo"}'}),
    )
    assert message == {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}},
            {"id": "call_2", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
        ],
    }


def test_members_without_a_type_are_joined_as_texts_lists_and_objects() -> None:
    message = message_of(
        {"reasoning": "I ", "details": [{"index": 0, "text": "I "}], "notes": [{"a": 1}], "extra": {"a": 1}},
        {"reasoning": "think", "details": [{"index": 0, "text": "think"}], "notes": [{"a": 1}], "extra": {"b": 2}},
    )
    assert message == {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "reasoning": "I think",
        "details": [{"index": 0, "text": "I think"}],
        "notes": [{"a": 1}, {"a": 1}],
        "extra": {"a": 1, "b": 2},
    }


def test_several_answers_are_in_their_order_and_the_text_is_that_of_the_first() -> None:
    parts = ChatParts()
    choices = [{"index": 1, "delta": {"content": "Two"}}, {"index": 0, "delta": {"content": "One"}}]
    part = parts.take(json.dumps({"id": "a", "choices": choices}), {})
    parts.take(json.dumps({"choices": [{"index": 1, "delta": {}, "finish_reason": "length"}], "usage": None}), {})
    first, second = parts.body()["choices"]
    assert (texts_of(part), parts.text, parts.body()["id"]) == (["One"], "One", "a")
    assert (first["message"]["content"], first["finish_reason"]) == ("One", None)
    assert (second["message"]["content"], second["finish_reason"]) == ("Two", "length")


@pytest.mark.parametrize(
    "choices", [[None, 7, "x", []], [{"finish_reason": "stop"}], [{"delta": 7}], [{"delta": {"content": 7}}], "x"]
)
def test_choices_that_are_none_do_no_harm(choices: object) -> None:
    parts = ChatParts()
    assert texts_of(parts.take(json.dumps({"choices": choices}), {})) == []
    parts.take(json.dumps({"choices": [{"delta": {"content": "x"}}]}), {})
    assert parts.text == "x"
