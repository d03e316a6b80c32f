from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import medley_client
from medley_client import Medley, Model
from medley_client.__main__ import main
from medley_client._inputs import module_of


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, medley: Medley) -> None:
    monkeypatch.setenv("MEDLEY_URL", medley._http.settings.base_url)
    monkeypatch.setenv("MEDLEY_API_KEY", medley._http.settings.api_key)


def names_of(text: str) -> dict[str, Any]:
    """Runs a module, and returns what it has."""
    names: dict[str, Any] = {"__name__": "models"}
    exec(compile(text, "models.py", "exec", dont_inherit=True), names)
    return names


def model_of(medley: Medley, schema: dict[str, object], id_: str = "acme/x", description: str = "") -> Model:
    model = medley.models.get("sandbox/image")
    model["id"], model["input_schema"], model["description"] = id_, schema, description
    return model


def strict(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program)
    words = ["-m", "mypy", "--strict", "--python-version", "3.10", "--cache-dir", str(folder / "cache"), "program.py"]
    env = {**os.environ, "MYPYPATH": str(Path(medley_client.__file__).parents[1])}
    return subprocess.run([sys.executable, *words], cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_of_all_models_of_the_service_are_right_for_mypy_and_python(
    medley: Medley, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["types", "--output", str(tmp_path / "models.py")]) == 0
    assert main(["types"]) == 0
    text = (tmp_path / "models.py").read_text()
    assert capsys.readouterr().out == text
    assert [each.name for each in tmp_path.iterdir()] == ["models.py"]
    names = names_of(text)
    for model in medley.models.list():
        if model["modality"] in ("image", "video", "audio"):
            cls = names["".join(word.capitalize() for word in model["id"].split("/")) + "Input"]
            assert cls.__required_keys__ == set(model["input_schema"].get("required", []))  # type: ignore[call-overload]
            assert set(get_type_hints(cls)) == set(model["input_schema"]["properties"])  # type: ignore[call-overload]
    program = """
from medley_client import Medley
from models import SandboxImageInput
input: SandboxImageInput = {"prompt": "A lighthouse"}
def main(medley: Medley) -> None:
    medley.generate("sandbox/image", input)
"""
    good = strict(tmp_path, program)
    assert good.returncode == 0, good.stdout
    for wrong in ('{"prompt": 7}', '{"promt": "x"}', "{}"):
        assert strict(tmp_path, program.replace('{"prompt": "A lighthouse"}', wrong)).returncode == 1


def test_of_one_model_have_its_fields_and_their_limits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["types", "sandbox/video"]) == 0
    printed = capsys.readouterr().out
    assert "class SandboxVideoInput(" in printed
    assert (
        "    # Duration. In seconds; fractions are allowed. At least 1. At most 10.\n    duration: float\n" in printed
    )
    assert "SandboxImage" not in printed


def test_of_schemas_of_all_kinds_are_types(medley: Medley) -> None:
    properties: dict[str, object] = {
        "from": {"type": "string"},
        "a-b": {"enum": ["x", 'y"', 3, None, True]},
        "ratio": {"enum": [0.5, 1]},
        "const": {"const": "x"},
        "both": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
        "types": {"type": ["number", "null"]},
        "free": {"type": "object"},
        "points": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}}}},
        "anything": {},
        "odd": 7,
        "__dunder": {"type": "boolean"},
    }
    schema: dict[str, object] = {"type": "object", "required": ["from", "gone"], "properties": properties}
    names = names_of(module_of([model_of(medley, schema), model_of(medley, schema), model_of(medley, {}, "1/2")]))
    hints = {name: str(hint).replace("typing.", "") for name, hint in get_type_hints(names["AcmeXInput"]).items()}
    assert hints["from"] == "<class 'str'>"
    assert hints["a-b"] == "Literal['x', 'y\"', 3, None, True]"
    assert hints["both"] == "str | list[int]"
    assert hints["types"] == "float | None"
    assert set(hints) == set(properties)
    assert names["AcmeXInput"].__required_keys__ == {"from"}
    assert {"AcmeXInput2", "Model12Input"} <= set(names)


def test_of_a_hostile_schema_run_nothing(medley: Medley) -> None:
    """Whatever a service says becomes no code: not by its lines, its quotes, its names or its depth."""
    bad = "x\n    raise SystemExit\r\x0b\x0c\x1c\x85\u2028\u2029\"\"\"'''\\\ud800\0"
    deep: dict[str, object] = {"type": "string"}
    for _ in range(200):
        deep = {"type": "array", "items": deep}
    schema: dict[str, object] = {
        "description": bad,
        "required": [bad],
        "properties": {
            bad: {"title": bad, "description": bad, "enum": [bad]},
            "a": {"type": bad, "description": bad, "minimum": bad},
            "b": {"type": "object", "properties": {bad: {"const": bad}}},
            "deep": deep,
        },
    }
    text = module_of([model_of(medley, schema, bad, bad)])
    names = names_of(text)
    (cls,) = [each for name, each in names.items() if name.endswith("Input")]
    assert cls.__required_keys__ == {bad}


def test_need_a_service_and_a_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["types", "no/model"]) == 1
    assert "no/model" in capsys.readouterr().err
    assert main(["types", "--output", str(tmp_path / "none" / "models.py")]) == 1
    assert "none" in capsys.readouterr().err
    monkeypatch.delenv("MEDLEY_API_KEY")
    assert main(["types"]) == 1
    assert "MEDLEY_API_KEY" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([])
