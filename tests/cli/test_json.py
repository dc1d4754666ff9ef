"""``--json`` holds against the published schema, and the published schema is the one that the values give."""

import json
from pathlib import Path

import jsonschema
import pytest

from cuda_lsp.terminal.schema import schema
from tests.cli.running import TRANSPOSED, run_json

PUBLISHED = Path(__file__).resolve().parents[2] / "docs" / "schema.json"


def test_the_published_schema_is_up_to_date() -> None:
    """Mend with: python -m cuda_lsp.terminal.schema > docs/schema.json"""
    assert json.loads(PUBLISHED.read_text()) == schema()


@pytest.mark.parametrize("command", ["optimize", "verify", "kernels", "doctor", "error"])
def test_every_output_holds_against_it(command: str, tmp_path: Path) -> None:
    file = tmp_path / "scale.cu"
    file.write_text(TRANSPOSED)
    arguments = {
        "optimize": ("optimize", str(file), "--rounds", "1"),
        "verify": ("verify", str(file), str(file)),
        "kernels": ("kernels", str(file)),
        "doctor": ("doctor",),
        "error": ("kernels", str(tmp_path / "none.cu")),
    }[command]
    code, answer = run_json(*arguments)
    jsonschema.validate(answer, json.loads(PUBLISHED.read_text()))
    assert answer["command"] == arguments[0]
    assert ("error" in answer) == (command == "error")
    if command == "optimize":
        assert code == 0
        assert answer["outcome"]["proposals"][0]["verdict"]["correctness"]["state"] == "right"
