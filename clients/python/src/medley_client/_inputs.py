"""Types of the inputs of models, from their schemas.

Everything in a schema is text of somebody else: here it becomes a literal, a checked name or one line of a comment.
"""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .types import Model

_DEPTH_MAX = 16

_HEAD = '''"""Inputs of models. Written by `python -m medley_client types`: write it again when models change."""

from typing import Literal, TypedDict
'''

#: Models of other kinds are not for `generate`.
_GENERATED = ("image", "video", "audio")

_PLAIN_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def module_of(models: Iterable[Model]) -> str:
    """Returns a module with a class for the input of each model that takes one by `generate`."""
    writer = _Writer()
    for model in models:
        if model["modality"] in _GENERATED:
            note = f"Input of {model['id']}: {model['description']}"
            writer.write_class(writer.name_of(f"{model['id']} input"), model["input_schema"], note, 0)
    return "\n\n".join([_HEAD, *writer.parts])


@dataclass
class _Writer:
    parts: list[str] = field(default_factory=list)
    _names: set[str] = field(default_factory=lambda: {"Literal", "TypedDict"})

    def name_of(self, text: str) -> str:
        """Returns a name for a class that no other has."""
        words = re.findall(r"[A-Za-z0-9]+", text)
        name = "".join(word[:1].upper() + word[1:] for word in words)
        if not name or name[0].isdigit() or keyword.iskeyword(name):
            name = f"Model{name}"
        numbered = name
        count = 1
        while numbered in self._names:
            count += 1
            numbered = f"{name}{count}"
        self._names.add(numbered)
        return numbered

    def write_class(self, name: str, schema: Mapping[str, object], note: str, depth: int) -> None:
        """Writes a class, and one for the fields that must be there: NotRequired came with Python 3.11."""
        properties = _mapping_of(schema.get("properties"))
        required = schema.get("required")
        always = [key for key in properties if isinstance(required, list) and key in required]
        sometimes = [key for key in properties if key not in always]
        bases = []
        for kind, keys in (("Required", always), ("Optional", sometimes)):
            if keys:
                base = self.name_of(f"{name}{kind}")
                types = {key: self._type_of(_mapping_of(properties[key]), f"{name} {key}", depth + 1) for key in keys}
                self.parts.append(_fields(base, types, properties, is_total=kind == "Required"))
                bases.append(base)
        self.parts.append(f"class {name}({', '.join(bases) or 'TypedDict'}):\n{_comment(note, '    ')}    pass\n")

    def _type_of(self, schema: Mapping[str, object], name: str, depth: int) -> str:
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(values, list) and values:
            return _literals(values)
        options = schema.get("anyOf") or schema.get("oneOf")
        if depth > _DEPTH_MAX:
            return "object"
        if isinstance(options, list) and options:
            return _union(self._type_of(_mapping_of(each), name, depth + 1) for each in options)
        types = schema.get("type")
        names = types if isinstance(types, list) else [types]
        return _union(self._named_type(each, schema, name, depth) for each in names)

    def _named_type(self, type_: object, schema: Mapping[str, object], name: str, depth: int) -> str:
        if type_ == "array":
            return f"list[{self._type_of(_mapping_of(schema.get('items')), name, depth + 1)}]"
        if type_ != "object":
            return _PLAIN_TYPES.get(str(type_), "object")
        if not _mapping_of(schema.get("properties")):
            return "dict[str, object]"
        inner = self.name_of(name)
        self.write_class(inner, schema, "", depth + 1)
        return inner


def _fields(name: str, types: Mapping[str, str], properties: Mapping[str, object], *, is_total: bool) -> str:
    total = "" if is_total else ", total=False"
    if all(key.isidentifier() and key.isascii() and not _is_reserved(key) for key in types):
        lines = [f"{_notes_of(properties[key], '    ')}    {key}: {type_}\n" for key, type_ in types.items()]
        return f"class {name}(TypedDict{total}):\n{''.join(lines)}"
    lines = [f"{_notes_of(properties[key], '        ')}        {key!a}: {type_},\n" for key, type_ in types.items()]
    return f"{name} = TypedDict(\n    {name!a},\n    {{\n{''.join(lines)}    }}{total},\n)\n"


def _is_reserved(key: str) -> bool:
    """A name with two underscores before it is another one outside of its class."""
    return keyword.iskeyword(key) or key.startswith("__")


def _literals(values: Sequence[object]) -> str:
    if all(value is None or isinstance(value, str | int) for value in values):
        return f"Literal[{', '.join(dict.fromkeys(ascii(value) for value in values))}]"
    return _union(_PLAIN_TYPES["number"] if isinstance(value, int | float) else "object" for value in values)


def _union(types: Iterable[str]) -> str:
    unique = list(dict.fromkeys(types))
    return "object" if "object" in unique else " | ".join(unique)


def _notes_of(schema: object, indent: str) -> str:
    fields = _mapping_of(schema)
    texts = [str(fields[key]) for key in ("title", "description") if isinstance(fields.get(key), str)]
    limits = [text.format(fields[key]) for key, text in _LIMITS.items() if isinstance(fields.get(key), int | float)]
    sentences = [f"{text.rstrip('. ')}." for text in [*texts, *limits] if text]
    return _comment(" ".join(sentences), indent)


_LIMITS = {
    "minimum": "At least {}",
    "maximum": "At most {}",
    "maxLength": "At most {} characters",
    "maxItems": "At most {} items",
}


def _comment(text: str, indent: str) -> str:
    """Returns a text as lines of a comment. No character of it ends a line."""
    one_line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return "".join(f"{indent}# {line}\n" for line in textwrap.wrap(one_line, 100))


def _mapping_of(value: object) -> dict[str, object]:
    return {str(name): each for name, each in value.items()} if isinstance(value, dict) else {}
