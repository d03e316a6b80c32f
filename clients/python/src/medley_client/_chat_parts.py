"""The parts of a streamed answer of chat, put together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, TypeGuard

from ._chat import ChatBody
from ._errors import MedleyError, error_of_event

#: Members that a later part repeats and does not go on with.
_REPEATED_NAMES: Final = ("id", "type", "role", "name", "finish_reason")

_Fields = dict[str, object]


class ChatParts:
    """What a stream has brought so far."""

    def __init__(self) -> None:
        self._body: _Fields = {}
        self._choices: dict[int, _Fields] = {}
        self._texts: list[str] = []

    @property
    def text(self) -> str:
        """The text of the first choice."""
        return "".join(self._texts)

    def take(self, data: str, headers: Mapping[str, str]) -> ChatBody:
        """Returns an event as a part of the answer. Raises ApiError if it is the error that ends the stream."""
        try:
            event: object = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise MedleyError("The stream has an event that is not JSON.") from error
        if not isinstance(event, dict):
            raise MedleyError("The stream has an event that is not an object.")
        if event.get("error"):
            raise error_of_event(event["error"], headers)
        choices = [_choice_of(choice) for choice in _list_of(event.get("choices")) if isinstance(choice, dict)]
        for choice in choices:
            self._add(choice)
        self._body |= {name: value for name, value in event.items() if value is not None and name != "choices"}
        part: object = {**event, "choices": choices}
        if not _is_body(part):
            raise MedleyError("The stream has an event that is no part of an answer.")
        return part

    def body(self) -> ChatBody:
        """Returns what has come, as a whole answer has it."""
        choices = [_without_indexes(choice) for _, choice in sorted(self._choices.items())]
        body: object = {**self._body, "object": "chat.completion", "choices": choices}
        if not _is_body(body):
            raise MedleyError("The stream is no answer.")
        return body

    def _add(self, choice: _Fields) -> None:
        index, delta = choice["index"], _fields_of(choice["delta"])
        text = delta.get("content")
        if index == 0 and isinstance(text, str) and text:
            self._texts.append(text)
        number = index if isinstance(index, int) else 0
        message = {"role": "assistant", "content": None, "refusal": None}
        start: _Fields = {"index": number, "message": message, "finish_reason": None}
        whole = self._choices.setdefault(number, start)
        _join(_fields_of(whole["message"]), delta)
        _join(whole, {name: value for name, value in choice.items() if name not in ("index", "delta")})


def texts_of(part: ChatBody) -> list[str]:
    """Returns the text that a part adds to the first choice, as a list of one or none."""
    first = [choice.get("delta", {}).get("content") for choice in part.get("choices", []) if choice.get("index") == 0]
    return [text for text in first if isinstance(text, str) and text]


def _is_body(value: object) -> TypeGuard[ChatBody]:
    """Tells whether it has choices that can be read. All other members are as they came."""
    return isinstance(value, dict) and isinstance(value.get("choices"), list)


def _choice_of(value: Mapping[str, object]) -> _Fields:
    index = value.get("index")
    is_number = isinstance(index, int) and not isinstance(index, bool)
    return {**value, "index": index if is_number else 0, "delta": _fields_of(value.get("delta"))}


def _fields_of(value: object) -> _Fields:
    return value if isinstance(value, dict) else {}


def _list_of(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _join(target: _Fields, following: Mapping[str, object]) -> _Fields:
    """Adds to `target`: texts and lists go on, all else is replaced."""
    for name, value in following.items():
        before = target.get(name)
        if value is None:
            continue
        if isinstance(value, list):
            target[name] = _join_lists(_list_of(before), value)
        elif isinstance(value, dict):
            target[name] = _join(_fields_of(before), value)
        elif isinstance(value, str) and isinstance(before, str) and name not in _REPEATED_NAMES:
            target[name] = before + value
        elif value != "" or name not in target:
            target[name] = value
    return target


def _join_lists(target: list[object], following: list[object]) -> list[object]:
    """Adds items: those with an `index` are parts of the item that has it, others are whole."""
    for item in following:
        index = _fields_of(item).get("index")
        before = (
            next((one for one in target if _fields_of(one).get("index") == index), None) if index is not None else None
        )
        if isinstance(before, dict):
            _join(before, _fields_of(item))
        else:
            target.append(_join({}, item) if isinstance(item, dict) else item)
    return target


def _without_indexes(choice: _Fields) -> _Fields:
    """A whole answer does not number its calls of tools."""
    message = _fields_of(choice["message"])
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return choice
    whole = [{name: value for name, value in _fields_of(call).items() if name != "index"} for call in calls]
    return {**choice, "message": {**message, "tool_calls": whole}}
