"""What a child cannot do any more once it has given up its rights, and what it still can."""

import os
import platform
import struct
import sys
import textwrap
from pathlib import Path

import pytest

from agent.execution.children.messages import Compile
from agent.execution.children.rights import KEEP, LANDLOCK, SECCOMP, landlock, seccomp
from agent.execution.children.rights.system_calls import calls
from agent.execution.compiler import pool
from agent.execution.process import Child
from tests.execution.test_process import ask

linux = pytest.mark.skipif(
    sys.platform != "linux" or calls() is None, reason="seccomp and Landlock, on processors whose calls are known"
)

MODULE = '''
import ctypes, os, signal, socket, subprocess, sys, threading
from agent.execution.children import rights
from agent.execution.children.messages import AskCompiler, Compiled
from agent.execution.children.serve import serve

FOLDER, OTHER = {folder!r}, {other!r}

def tried(action):
    """What it says, or the error by name."""
    try:
        return str(action())
    except BaseException as error:
        return type(error).__name__

def handle(channel):
    channel.receive(AskCompiler)
    waiting = threading.Event()
    early = []
    before = threading.Thread(target=lambda: (waiting.wait(), early.append(tried(socket.socket))))
    before.start()
    fewer = rights.give_up({host_bytes}, {landlocked})
{body}
    waiting.set()
    before.join()
    channel.send(Compiled("|".join(fewer.by), "\\n".join([*answers, *early]), b"", b"", ()))

if __name__ == "__main__":
    serve(handle)
'''


def told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *actions: str, landlocked: bool = True, host_bytes: int | None = None
) -> tuple[list[str], list[str]]:
    """What holds, and what became of each action and, at last, of a socket in a thread that was there before."""
    other = folder / "other"
    other.write_text("there")
    (folder / "below").mkdir(exist_ok=True)
    (folder / "below" / "text").write_text("read")
    body = "answers = [\n" + "".join(f"    tried(lambda: {action}),\n" for action in actions) + "]"
    text = MODULE.format(
        folder=str(folder / "below"), other=str(other), host_bytes=host_bytes, landlocked=landlocked,
        body=textwrap.indent(body, "    "),
    )  # fmt: skip
    (folder / "rightless.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    child = Child("rightless")
    try:
        found = child.converse(ask, 60)
    finally:
        child.close()
    return found.error.split("|"), found.log.split("\n")


REFUSED = {
    "network": "socket.create_connection(('127.0.0.1', 9))",
    "the machine's own sockets": "socket.socket(socket.AF_UNIX)",
    "another program": "subprocess.run(['true'])",
    "another process": "os.fork()",
    "the end of the parent": "os.kill(os.getppid(), 15)",
    "a new file": "open(FOLDER + '/new', 'w')",
    "a file cut short": "os.truncate(OTHER, 0)",
    "a file emptied": "open(OTHER, 'w')",
    "a longer file": "open(OTHER, 'a')",
    "a file that goes": "os.unlink(OTHER)",
    "another name": "os.rename(OTHER, OTHER + '2')",
    "a folder": "os.mkdir(FOLDER + '/new')",
    "a link": "os.symlink(OTHER, FOLDER + '/link')",
    "its rights": "os.chmod(OTHER, 0o777)",
}


@linux
@pytest.mark.parametrize("landlocked", [True, False])
def test_what_is_given_up_fails_and_leaves_no_trace(
    landlocked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, found = told(tmp_path, monkeypatch, *REFUSED.values(), landlocked=landlocked)
    if SECCOMP not in held:
        pytest.skip("no seccomp in this kernel")
    refused = dict(zip((*REFUSED, "a thread that was there before"), found, strict=True))
    assert set(refused.values()) <= {"PermissionError", "OSError"}, refused
    assert (tmp_path / "other").read_text() == "there"
    assert sorted(path.name for path in (tmp_path / "below").iterdir()) == ["text"]


@linux
def test_a_file_cannot_be_written_to_even_where_it_may_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Devices and shared memory are opened for writing by the driver's libraries, so opening itself stays allowed."""
    _, found = told(tmp_path, monkeypatch, "open(OTHER, 'r+b', 0).write(b'gone')", landlocked=False)
    assert found[0] == "OSError" and (tmp_path / "other").read_text() == "there"


@linux
def test_what_work_needs_still_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = "[(t := threading.Thread(target=lambda: None)).start(), t.join(), 'joined'][-1]"
    _, found = told(
        tmp_path, monkeypatch, "open(FOLDER + '/text').read()", thread, "len(bytes(100 << 20))",
        "os.getpid() > 0 and signal.raise_signal(0)", landlocked=False,
    )  # fmt: skip
    assert found[:4] == ["read", "joined", str(100 << 20), "None"]


@linux
def test_memory_of_the_host_is_limited_beyond_what_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [f"len(bytearray({size} << 20))" for size in (64, 2048)]
    _, found = told(tmp_path, monkeypatch, *sizes, host_bytes=1 << 30)
    assert found[:2] == [str(64 << 20), "MemoryError"]


def test_a_user_may_keep_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEEP, "1")
    outside = "rights.reading_only([FOLDER], lambda: open(OTHER).read())"
    held, found = told(tmp_path, monkeypatch, "open(FOLDER + '/new', 'w').close()", outside)
    assert held == [""] and found[:2] == ["None", "there"] and (tmp_path / "below" / "new").exists()


@linux
def test_only_the_folders_that_are_named_are_read_and_only_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = "rights.reading_only([FOLDER], lambda: open(FOLDER + '/text').read())"
    outside = "rights.reading_only([FOLDER], lambda: open(OTHER).read())"
    linked = "rights.reading_only([FOLDER], lambda: open(FOLDER + '/../other').read())"
    held, found = told(tmp_path, monkeypatch, inside, outside, linked, "open(OTHER).read()")
    if LANDLOCK not in held:
        pytest.skip("no Landlock in this kernel")
    assert found[:4] == ["read", "PermissionError", "PermissionError", "there"]


@linux
def test_the_compiler_reads_the_folders_it_was_given_and_no_other(tmp_path: Path) -> None:
    """Past the look at includes, which comes before it: as if that had been fooled."""
    if LANDLOCK not in pool.identity().held_by:
        pytest.skip("no Landlock in this kernel")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "good.h").write_text("#define LENGTH 3\n")
    (tmp_path / "private.h").write_text("#error a line of somebody's own\n")
    text = '#include "good.h"\n#include "{}"\n__global__ void k(int* x) {{ x[0] = LENGTH; }}\n'
    options = ("--gpu-architecture=compute_90", f"--include-path={tmp_path / 'own'}")

    def compiled(name: str) -> tuple[bool, str]:
        found = pool.compile_program(Compile(text.format(name), "k.cu", options, (), (), 60.0))
        return bool(found.ptx), found.log

    assert compiled("good.h") == (True, "")
    for name in (str(tmp_path / "private.h"), "../private.h"):
        done, log = compiled(name)
        assert not done and "somebody" not in log and "private.h" in log


# --- the filter as a text --------------------------------------------------------------------------------------------

ALLOW, REFUSE, UNKNOWN = 0x7FFF0000, 0x00050001, 0x00050026


def run(program: bytes, number: int, processor: int, arguments: tuple[int, ...] = ()) -> int:
    """The filter on one call, by the rules of the Berkeley packet filter."""
    lines = [struct.unpack_from("<HBBI", program, place) for place in range(0, len(program), 8)]
    data = struct.pack("<IIQ6Q", number, processor, 0, *arguments, *[0] * (6 - len(arguments)))
    held, place = 0, 0
    while True:
        code, then, otherwise, k = lines[place]
        place += 1
        if code == 0x20:
            (held,) = struct.unpack_from("<I", data, k)
        elif code == 0x06:
            return int(k)
        else:
            holds = {0x15: held == k, 0x35: held >= k, 0x45: bool(held & k)}[code]
            place += then if holds else otherwise


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_each_call_ends_where_it_should(machine: str) -> None:
    known = calls(machine)
    assert known is not None
    program = seccomp.program(known, own=77)
    other = calls("aarch64" if machine == "x86_64" else "x86_64")
    assert other is not None

    def of(number: int, *arguments: int) -> int:
        return run(program, number, known.audit, arguments)

    assert {of(number) for number in known.never} == {REFUSE}
    assert of(known.number["clone3"]) == of(known.number["openat2"]) == UNKNOWN
    made, plain = os.O_CREAT | os.O_WRONLY, os.O_RDWR | os.O_CLOEXEC
    assert of(known.number["openat"], 0, 0, made) == REFUSE and of(known.number["openat"], 0, 0, plain) == ALLOW
    assert of(known.number["clone"], 0x3D0F00) == ALLOW and of(known.number["clone"], 17) == REFUSE
    assert of(known.number["tgkill"], 77) == ALLOW and of(known.number["tgkill"], 1) == REFUSE
    assert [of(known.number["prlimit64"], pid) for pid in (0, 77, 1)] == [ALLOW, ALLOW, REFUSE]
    read, ioctl = {"x86_64": (0, 16), "aarch64": (63, 29)}[machine]
    assert of(read) == of(ioctl) == ALLOW
    assert run(program, read, other.audit) == REFUSE
    if machine == "x86_64":
        assert of(0x40000000 + read) == REFUSE, "the same by its other number"


def test_a_processor_that_is_not_known_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert calls() is None and "not known" in seccomp.install()


def test_no_landlock_is_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*arguments: object) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(landlock, "_call", absent)
    assert landlock.version() == 0
