"""Writing a rewrite into the user's file: all of it or nothing, and never over somebody's newer text."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.source.document import Document
from agent.source.line_ends import restored, with_newlines
from cuda_lsp.terminal.exits import CommandError, Exit


def apply_document(old: Document, new: Document) -> None:
    """Replace the file's text by ``new``'s if it still holds ``old``'s. Goes through a file beside it and a rename, so
    that a full disk or a crash leaves the original whole. A symbolic link stays a link."""
    path = Path(old.path).resolve()
    try:
        raw = path.read_bytes()
        if with_newlines(raw) != old.text:
            raise CommandError(Exit.INPUT, f"{old.path} changed meanwhile: nothing was written. Run the command again")
        # Root may write anything; a file without a write bit is still meant to be left alone.
        if not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK):
            raise CommandError(
                Exit.INPUT, f"{old.path} is read-only: nothing was written. --diff prints the change instead"
            )
        _replace(path, restored(raw, new.text))
    except OSError as error:
        raise CommandError(Exit.INPUT, f"{old.path} cannot be written ({error.strerror}): it is as it was") from error


def _replace(path: Path, text: bytes) -> None:
    mode = path.stat().st_mode
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.chmod(mode)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@contextmanager
def new_file(path: str) -> Iterator[Callable[[str], None]]:
    """Gives what writes a text there, all of it or nothing. That nothing can be written there shows before anything
    else is done. Raises CommandError."""
    try:
        handle, name = tempfile.mkstemp(dir=Path(path).parent, prefix=f".{Path(path).name}.", suffix=".tmp")
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    beside = Path(name)

    def write(text: str) -> None:
        try:
            beside.write_text(text, encoding="utf-8", newline="\n")
            beside.chmod(0o666 & ~_umask())
            beside.replace(path)
        except OSError as error:
            raise _unwritable(path, error) from None

    try:
        os.close(handle)
        yield write
    finally:
        beside.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _unwritable(path: str, error: OSError | ValueError) -> CommandError:
    return CommandError(Exit.INPUT, f"{path} cannot be written: {getattr(error, 'strerror', None) or error}")
