"""A file as it is at a revision of its git repository."""

import os
import subprocess
from pathlib import Path

from agent.execution.process import keyless
from cuda_lsp.terminal.exits import CommandError, Exit


def at_revision(path: str, revision: str) -> bytes:
    """The file's bytes at a git revision. Raises CommandError."""
    folder, file = Path(path).resolve().parent, Path(path).name
    if revision.startswith("-"):
        raise CommandError(Exit.USAGE, f"{revision} is no revision")
    try:
        shown = subprocess.run(
            ["git", "show", f"{revision}:./{file}"],
            cwd=folder,
            env=keyless(os.environ),
            capture_output=True,
            timeout=30,
            check=False,
        )
    except FileNotFoundError as error:
        raise CommandError(Exit.MACHINE, "comparing with a revision needs git, which is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(Exit.INPUT, "git did not answer within 30 seconds") from error
    if shown.returncode:
        said = shown.stderr.decode(errors="replace").strip().splitlines()
        raise CommandError(Exit.INPUT, f"{path} at {revision}: {said[-1] if said else 'git failed'}")
    return shown.stdout
