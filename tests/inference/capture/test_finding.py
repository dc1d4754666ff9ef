"""What capture needs of a machine, and the words for what is missing; nothing is started before all of it is there."""

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path

import click
import pytest

from agent.execution import toolkit
from agent.inference.capture import building, cupti, driver
from agent.inference.capture.errors import CaptureError
from cuda_lsp.cli.capture import command
from cuda_lsp.terminal.exits import CommandError
from tests.cli.running import run


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without CUDA, with an empty ``nvidia`` folder for wheels."""
    for name in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(toolkit, "_TOOLKITS", (str(tmp_path / "toolkit"),))
    spec = importlib.machinery.ModuleSpec("nvidia", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "nvidia")]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    return tmp_path


def install(include: Path, library: Path, version: int, cuda: Path | None = None) -> Path:
    """CUPTI's header and library, and in ``cuda`` (or beside the first) the headers of CUDA that go with it."""
    beside = cuda or include
    for folder in (include, library, beside / "crt"):
        folder.mkdir(parents=True, exist_ok=True)
    (include / "cupti_callbacks.h").touch()
    (beside / "cuda.h").write_text(f"#ifndef X\n#define CUDA_VERSION {version}\n#endif\n")
    for header in ("cuda_runtime.h", "builtin_types.h", "crt/host_defines.h"):
        (beside / header).touch()
    (library / "libcupti.so.1").touch()
    return library / "libcupti.so.1"


@pytest.mark.parametrize(
    ("include", "library", "cuda"),
    [
        ("toolkit/extras/CUPTI/include", "toolkit/extras/CUPTI/lib64", "toolkit/include"),
        ("toolkit/targets/x86_64-linux/include", "toolkit/targets/x86_64-linux/lib", None),
        ("toolkit/include", "toolkit/lib", None),
        ("nvidia/cu13/include", "nvidia/cu13/lib", None),
        ("nvidia/cuda_cupti/include", "nvidia/cuda_cupti/lib", "nvidia/cuda_runtime/include"),
    ],
)
def test_cupti_is_found_where_toolkits_and_wheels_put_it(
    include: str, library: str, cuda: str | None, bare: Path
) -> None:
    there = install(bare / include, bare / library, 13000, bare / cuda if cuda else None)
    found = cupti.find_cupti((13, 1))
    assert (found.library, found.version) == (there, (13, 0)) and bare / include in found.includes


def test_cudas_own_headers_may_be_another_installations(bare: Path) -> None:
    """The wheel of CUPTI, of a later version than the toolkit."""
    install(bare / "nvidia/cu13/include", bare / "nvidia/cu13/lib", 13000, bare / "toolkit/include")
    (bare / "nvidia/cu13/include/cupti_version.h").write_text("#define CUPTI_API_VERSION 130200\n")
    found = cupti.find_cupti((13, 5))
    assert found.version == (13, 2) and found.includes == (bare / "nvidia/cu13/include", bare / "toolkit/include")
    (bare / "toolkit/include/crt/host_defines.h").unlink()
    with pytest.raises(CaptureError, match="with its headers"):
        cupti.find_cupti((13, 5))


@pytest.mark.parametrize(("there", "driver_version", "taken"), [
    ((12040, 13000), (13, 0), (13, 0)),
    ((13000, 13050), (13, 1), (13, 0)),
    ((12040, 13050), (13, 0), (12, 4)),
    ((13050, 13020), (13, 0), (13, 2)),
])  # fmt: skip
def test_the_one_that_fits_the_driver_is_taken(
    there: tuple[int, int], driver_version: tuple[int, int], taken: tuple[int, int], bare: Path
) -> None:
    for place, version in zip(("toolkit", "nvidia/cu13"), there, strict=True):
        install(bare / place / "include", bare / place / "lib", version)
    assert cupti.find_cupti(driver_version).version == taken


def test_a_library_without_headers_is_none(bare: Path) -> None:
    library = install(bare / "toolkit/include", bare / "toolkit/lib", 13000)
    (bare / "toolkit/include/cupti_callbacks.h").unlink()
    with pytest.raises(CaptureError, match=r"CUPTI.*was not found.*pip install 'nvidia-cuda-cupti==13\.\*'") as error:
        cupti.find_cupti((13, 0))
    assert library.exists() and error.value.machine
    with pytest.raises(CaptureError, match="pip install nvidia-cuda-cupti-cu12 nvidia-cuda-runtime-cu12"):
        cupti.find_cupti((12, 8))


def test_a_cupti_that_is_too_new_is_named(bare: Path) -> None:
    install(bare / "toolkit/include", bare / "toolkit/lib", 13000)
    with pytest.raises(CaptureError, match=r"of CUDA 13\.0, and the driver of CUDA 12\.4 takes none that new"):
        cupti.find_cupti((12, 4))


def script(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_compiler_is_asked_for(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CaptureError, match=r"no C\+\+ compiler was found.*install g\+\+"):
        building.find_compiler()
    own = script(bare / "bin", "my-cxx", "exit 1")
    assert script(bare / "bin", "g++", "exit 1") == Path(building.find_compiler())
    monkeypatch.setenv("CXX", "my-cxx")
    assert Path(building.find_compiler()) == own


def test_a_compiler_that_cannot_says_why(bare: Path) -> None:
    install(bare / "toolkit/include", bare / "toolkit/lib", 13000)
    script(bare / "bin", "g++", "echo 'injection.cpp:1:1: error: too old for this' >&2\nexit 1")
    with pytest.raises(
        CaptureError, match=r"could not build the recorder: injection\.cpp:1:1: error: too old for this"
    ):
        building.recorder(cupti.find_cupti((13, 0)))
    assert list(building.folder().iterdir()) == []


MAKES = (
    'while [ "$1" != -o ]; do [ $# = 0 ] && exit 0; shift; done; echo made >> "$2"; echo . >> "$(dirname "$0")/count"'
)


def test_the_recorder_is_built_once_for_what_it_is_made_of(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a compiler that writes what it was asked for and counts."""
    install(bare / "toolkit/include", bare / "toolkit/lib", 13000)
    monkeypatch.setenv("PATH", f"{bare / 'bin'}:/usr/bin:/bin")
    script(bare / "bin", "g++", MAKES)
    found = cupti.find_cupti((13, 0))
    place = building.recorder(found)
    assert building.recorder(found) == place and place.read_text() == "made\n"
    assert (bare / "bin" / "count").read_text() == ".\n"
    assert place.stat().st_mode & 0o777 == 0o500 and place.parent.stat().st_mode & 0o777 == 0o700
    place.chmod(0o522)  # somebody else might have written it
    assert building.recorder(found) == place and place.stat().st_mode & 0o777 == 0o500
    assert (bare / "bin" / "count").read_text() == ".\n.\n"
    script(bare / "bin", "g++", MAKES.replace("exit 0", "{ echo version 2; exit 0; }", 1))
    assert building.recorder(found) != place


def test_a_folder_that_cannot_be_written_is_named(bare: Path) -> None:
    install(bare / "toolkit/include", bare / "toolkit/lib", 13000)
    script(bare / "bin", "g++", "exit 0")
    (bare / "cache").write_text("a file where the folder should be")
    with pytest.raises(CaptureError, match=r"the recorder cannot be kept at .*/cache/cuda-lsp/recorder"):
        building.recorder(cupti.find_cupti((13, 0)))


def test_without_a_driver_it_is_said_where_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CaptureError, match=r"no NVIDIA driver on this machine.*on a card alone"):
        driver.find_driver("libnothing-of-that-name.so")
    with pytest.raises(CaptureError, match="no NVIDIA driver"):
        driver.find_driver("libc.so.6")  # a library, but none of the driver's
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(CaptureError, match="on Linux only"):
        driver.find_driver()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("cuInit(int f) { return 100; }", r"cannot be used: no card is here \(100\)"),
        ("cuInit(int f) { return 0; }", "shows no card here; is CUDA_VISIBLE_DEVICES set"),
    ],
)
def test_a_driver_without_a_card(body: str, message: str, compiler: str, tmp_path: Path) -> None:
    source, library = tmp_path / "driver.cpp", tmp_path / "libdriver.so"
    source.write_text(
        f'extern "C" {{ int {body}\nint cuDriverGetVersion(int* v) {{ *v = 13000; return 0; }}\n'
        "int cuDeviceGetCount(int* n) { *n = 0; return 0; }\n"
        'int cuGetErrorString(int, const char** text) { *text = "no card is here"; return 0; } }\n'
    )
    subprocess.run([compiler, "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    with pytest.raises(CaptureError, match=message):
        driver.find_driver(str(library))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "name a program after `--`"),
        (("--from", "folder", "--", "./app"), 2, "name no program beside it"),
        (("--from", "."), 3, "holds no recording: `cuda-lsp capture --out . -- ./app` makes one"),
        (("--write", "--", "./app"), 2, "--write needs --file"),
        (("--max-buffer", "lots", "--", "./app"), 2, "`lots` is no size; write 512M or 1G"),
        (("--file", "nowhere.cu", "--", "./app"), 3, "nowhere.cu"),
        (("--kernel", "a b", "--", "./app"), 3, "`a b` is no kernel's name"),
        (("--from", "nowhere"), 3, "nowhere cannot be read: No such file"),
    ],
)
def test_wrong_command_lines(
    arguments: tuple[str, ...], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((CommandError, click.BadParameter), match=message) as error:
        command.main(list(arguments), standalone_mode=False)
    assert code == (error.value.code if isinstance(error.value, CommandError) else error.value.exit_code)


def test_nothing_is_started_where_nothing_can_be_captured(tmp_path: Path) -> None:
    """Here is no driver, or a real one, and then this is skipped: the stand-in is on nobody's path."""
    try:
        driver.find_driver()
    except CaptureError:
        done = run("capture", "--", "touch", "started", cwd=tmp_path)
        assert done.returncode == 4 and "no NVIDIA driver" in done.stderr and "Traceback" not in done.stderr
        assert not (tmp_path / "started").exists()
    else:
        pytest.skip("there is a card here")
