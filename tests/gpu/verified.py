"""The end of the way that begins with a captured launch: rewrites judged on the contents that it left."""

import json
import subprocess
from pathlib import Path

from tests.cli.running import COMMAND


def judged_on_what_was_captured(
    file: Path, kernel: str, device: str, seconds: int, environment: dict[str, str]
) -> tuple[str, str]:
    """What ``verify`` says of a rewrite of ``y[i] = a * x[i] + y[i]`` that is right, and of one that is wrong at
    element 999 alone. Both must have been judged on captured contents."""
    text = file.read_text()
    assert "a * x[i] + y[i]" in text
    states = []
    for change in ("y[i] + a * x[i]", "a * x[i] + (i == 999 ? 0 : y[i])"):
        changed = file.with_name("changed.cu")
        changed.write_text(text.replace("a * x[i] + y[i]", change))
        asked = [*COMMAND, "verify", str(file), str(changed), "--kernel", kernel, "--device", device, "--json"]
        done = subprocess.run(
            [*asked, "--seconds", str(seconds)], env=environment, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr + done.stdout, done.stderr
        told = json.loads(done.stdout)
        assert "verdict" in told, told
        found = told["verdict"]["correctness"]
        states.append(found["state"])
        if found["state"] == "right":  # a wrong one ends with the first case that shows it
            assert done.returncode == 0 and found["families"] == ["captured"], told
        else:
            assert done.returncode == 1 and "y[999]" in found["reason"] and "captured" in found["reason"], told
    return states[0], states[1]
