"""`python -m medley_client types`: writes the inputs of the models of a service as types."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from ._errors import MedleyError
from ._inputs import module_of
from ._sync.client import Medley
from .types import Model


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m medley_client", description="The client of Medley.")
    commands = parser.add_subparsers(dest="command", required=True)
    types = commands.add_parser(
        "types",
        help="write the inputs of models as a module with types",
        description="Writes the inputs of the models of the service of MEDLEY_URL as a module with types.",
    )
    types.add_argument("models", nargs="*", metavar="MODEL", help="ids of models; all of them unless set")
    types.add_argument("--output", metavar="FILE", help="the module; it is printed unless set")
    options = parser.parse_args(words)
    try:
        with Medley() as medley:
            text = module_of(_models_of(medley, options.models))
        _write(text, options.output)
    except (MedleyError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


def _models_of(medley: Medley, ids: Sequence[str]) -> list[Model]:
    return [medley.models.get(id_) for id_ in ids] or list(medley.models.list(limit=1000))


def _write(text: str, path: str | None) -> None:
    """Writes a file that is there only when it is complete."""
    if path is None:
        encoding = sys.stdout.encoding
        print(text.encode(encoding, "replace").decode(encoding), end="")
        return
    unfinished = f"{path}.part"
    try:
        with open(unfinished, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        os.replace(unfinished, path)
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)


if __name__ == "__main__":
    sys.exit(main())
