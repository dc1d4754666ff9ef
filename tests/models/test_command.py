"""``cuda-lsp optimize --model``: consent first, keys nowhere, caps and history as asked for."""

import contextlib
import json
import os
import pty
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.ideas.registry import entries
from tests.cli.running import COMMAND, run, run_json
from tests.models.endpoint import answer, serving, silent
from tests.models.searching import GOOD, IDEAS, KERNEL, SECRET, by_question, in_turn, written

ALONE = [word for entry in entries() for word in ("--without", entry.name)]
QUICK = ["--rounds", "1", *ALONE]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    for name in ("CUDA_LSP_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    file = tmp_path / "project" / "scale.cu"
    file.parent.mkdir()
    file.write_text(KERNEL)
    return file


def good() -> object:
    return by_question(answer(IDEAS), in_turn(written(GOOD)))


def configure(kernel: Path, url: str, more: str = "") -> None:
    (kernel.parent / ".cuda-lsp.toml").write_text(f'[model]\nname = "tiny"\nendpoint = "{url}"\n{more}')


def test_a_model_finds_what_the_catalogue_left_out(kernel: Path) -> None:
    with serving(good()) as endpoint:  # type: ignore[arg-type]
        done = run("optimize", str(kernel), "--model", "tiny", "--endpoint", endpoint.url, "--yes", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "walk along rows" in done.stdout and "+    int col = blockIdx.x" in done.stdout
    assert f"tiny at {endpoint.url}: 2 requests, 200 tokens sent, 100 received" in done.stdout


def test_nothing_is_sent_without_consent(kernel: Path) -> None:
    with serving(good()) as endpoint:  # type: ignore[arg-type]
        done = run("optimize", str(kernel), "--model", "tiny", "--endpoint", endpoint.url, *QUICK)
    assert done.returncode == 2 and endpoint.requests == []
    for words in (f"tiny at {endpoint.url}", "server on this machine", "device code of scale: 6 lines of scale.cu",
                  "Not sent: host code", "No key is sent", "200,000 tokens", "--yes"):  # fmt: skip
        assert words in done.stderr, words


def test_a_model_that_only_the_project_names_is_left_out_without_consent(kernel: Path) -> None:
    with serving(good()) as endpoint:  # type: ignore[arg-type]
        configure(kernel, endpoint.url)
        done = run("optimize", str(kernel), *QUICK)
    assert done.returncode == 1 and endpoint.requests == []
    assert "is not asked: agree with --yes" in done.stderr


def test_settings_name_the_model_its_price_and_its_caps(kernel: Path) -> None:
    """Whatever becomes of its rewrite, which on a machine that is busy enough may not be estimated in time."""
    with serving(good()) as endpoint:  # type: ignore[arg-type]
        configure(kernel, endpoint.url, "price-in = 1000.0\nprice-out = 2000.0\nmax-cost = 50\n")
        code, told = run_json("optimize", str(kernel), "--yes", *QUICK)
        asked = len(endpoint.requests)
        run("optimize", str(kernel), "--no-model", "--fresh", *QUICK)
    assert code in (0, 1) and asked >= 2
    (used,) = [event for event in told["events"] if event["type"] == "ModelUsed"]
    assert (used["sent"], used["received"]) == (100 * used["requests"], 50 * used["requests"])
    assert used["dollars"] == pytest.approx((used["sent"] * 1000 + used["received"] * 2000) / 1e6)
    assert len(endpoint.requests) == asked


def test_a_cap_on_money_without_a_price_says_that_it_cannot_be_kept(kernel: Path) -> None:
    with serving(answer("no")) as endpoint:
        done = run("optimize", str(kernel), "--model", "tiny", "--endpoint", endpoint.url, "--yes",
                   "--max-cost", "1", "--max-tokens", "9000", *QUICK)  # fmt: skip
    assert "cap of $1 cannot be kept (9000 tokens)" in done.stderr


def test_the_key_is_in_no_output_trace_recording_or_child(kernel: Path, state: Path, tmp_path: Path) -> None:
    """Searched for in everything that the command writes, with the client's own log at its most talkative, and in the
    environment of every process that it starts."""
    children: set[str] = set()

    def watching(handler):  # type: ignore[no-untyped-def]
        children.update(_child_environments(process.pid))
        good_turn(handler)

    good_turn = good()
    record = tmp_path / "answers.jsonl"
    environment = {
        **os.environ,
        "CUDA_LSP_API_KEY": SECRET,
        "OPENAI_API_KEY": "sk-other-secret-9876",
        "OPENAI_LOG": "debug",
    }
    with serving(watching) as endpoint:
        process = subprocess.Popen(
            [*COMMAND, "optimize", str(kernel), "--model", "tiny", "--endpoint", endpoint.url, "--yes", "--json",
             "--record", str(record), *QUICK],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert endpoint.headers[0]["authorization"] == f"Bearer {SECRET}"
    written_down = [path for folder in (state, tmp_path) for path in folder.rglob("*") if path.is_file()]
    assert record in written_down and any(path.suffix == ".jsonl" and path != record for path in written_down)
    everything = [out, err, *(path.read_text(errors="replace") for path in written_down), *children]
    assert children
    for text in everything:
        assert SECRET not in text and "sk-other-secret" not in text


def _child_environments(pid: int) -> list[str]:
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in path.read_text().split():
            with contextlib.suppress(OSError):  # it may be gone by now
                found.append(Path(f"/proc/{child}/environ").read_bytes().decode(errors="replace"))
    return found


def test_the_users_programs_are_started_without_the_key(kernel: Path, tmp_path: Path) -> None:
    """git for a revision, the tools that doctor asks for their version: each writes down what it was given."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("git", "ncu", "nvcc", "clang-format"):
        (tools / name).write_text(f"#!/bin/sh\nenv > '{tmp_path}/{name}.env'\necho version 1\n")
        (tools / name).chmod(0o755)
    keys = {"CUDA_LSP_API_KEY": SECRET, "OPENAI_API_KEY": SECRET, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    run("verify", str(kernel), "--against", "HEAD", env=keys)
    run("doctor", env=keys)
    given = {path.name: path.read_text() for path in tmp_path.glob("*.env")}
    assert {"git.env", "ncu.env", "clang-format.env"} <= set(given)
    for text in given.values():
        assert "PATH=" in text and SECRET not in text


def test_a_recording_replays_offline(kernel: Path, tmp_path: Path) -> None:
    record = tmp_path / "answers.jsonl"
    with serving(good()) as endpoint:  # type: ignore[arg-type]
        arguments = ("optimize", str(kernel), "--model", "tiny", "--endpoint", endpoint.url, "--yes")
        first = run(*arguments, "--record", str(record), "--diff", *QUICK)
    again = run("optimize", str(kernel), "--replay", str(record), "--diff", "--fresh", *QUICK)
    assert first.returncode == again.returncode == 0, again.stderr
    assert first.stdout == again.stdout != ""


def test_own_ideas_and_rejections(kernel: Path) -> None:
    with serving(by_question(answer('{"ideas": []}'), in_turn(written(GOOD)))) as endpoint:
        done = run("optimize", str(kernel), "--model", "tiny", "--endpoint", endpoint.url, "--yes", *QUICK,
                   "--own-idea", "let a warp walk along a row", "--reject", "use half: precision matters")  # fmt: skip
        told = endpoint.said(0)
    assert done.returncode == 0, done.stderr
    assert "let a warp walk along a row" in done.stdout and "use half: precision matters" in told


def test_an_own_idea_without_a_model_says_what_is_missing(kernel: Path) -> None:
    done = run("optimize", str(kernel), "--own-idea", "let a warp walk along a row", *QUICK)
    assert done.returncode == 1 and "needs a language model" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "tiny"), "--endpoint"),
        (("--endpoint", "http://127.0.0.1:1/v1"), "--model"),
        (("--model", "tiny", "--endpoint", "127.0.0.1:8080"), "no endpoint"),
        (("--model", "tiny", "--endpoint", "https://me:hunter2@x/v1"), "no user name"),
        (("--replay", "/missing.jsonl"), "no recording"),
    ],
)
def test_options_that_make_no_sense(kernel: Path, arguments: tuple[str, ...], words: str) -> None:
    done = run("optimize", str(kernel), *arguments, "--yes", *QUICK)
    assert done.returncode in (2, 3) and words in done.stderr and "hunter2" not in done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('api-key = "sk-1"', "does not belong into a file"),
        ("price-in = 1", "together"),
        ('max-tokens = "many"', "whole number"),
        ('nmae = "x"', "did you mean `model.name`"),
    ],
)
def test_settings_that_make_no_sense(kernel: Path, line: str, words: str) -> None:
    (kernel.parent / ".cuda-lsp.toml").write_text(f"[model]\n{line}\n")
    done = run("optimize", str(kernel), *QUICK)
    assert done.returncode == 3 and words in done.stderr


def test_ctrl_c_ends_a_question_at_once(kernel: Path) -> None:
    with serving(silent(60)) as endpoint:
        process = subprocess.Popen(
            [*COMMAND, "optimize", str(kernel), "--model", "tiny", "--endpoint", endpoint.url, "--yes", *QUICK],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while not endpoint.requests and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(2)
        out, err = process.communicate(timeout=150)
        assert endpoint.dropped.wait(50)
    assert process.returncode == 130, out + err
    assert "Traceback" not in err


# On a terminal


def on_terminal(said: str, *arguments: str, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """The command with a terminal as standard input and error, and ``said`` typed into it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdin=theirs, stderr=theirs, stdout=subprocess.DEVNULL,
        env={**os.environ, "TERM": "dumb", **(environment or {})},
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, said.encode())
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    return process.wait(200), shown.decode(errors="replace").replace("\r\n", "\n")


def test_a_terminal_is_asked_and_always_is_remembered(kernel: Path, state: Path) -> None:
    with serving(good()) as endpoint:  # type: ignore[arg-type]
        arguments = ("optimize", str(kernel), "--model", "tiny", "--endpoint", endpoint.url, *QUICK)
        code, shown = on_terminal("n\n", *arguments)
        assert code == 1 and endpoint.requests == [] and "the catalogue alone" in shown
        code, shown = on_terminal("s\na\n", *arguments)
        assert code == 0 and "int row = blockIdx.x" in shown and "host_only" not in shown
        asked = len(endpoint.requests)
        assert asked == 2
        assert json.loads((state / "cuda-lsp" / "consent.json").read_text())["endpoints"] == [endpoint.url]
        assert run(*arguments, "--fresh").returncode == 0 and len(endpoint.requests) == 2 * asked
        other = run(*arguments[:5], "http://127.0.0.1:9/v1", *QUICK)
    assert other.returncode == 2 and "Nothing was sent" in other.stderr


def test_what_is_sent_elsewhere_is_said_so(kernel: Path) -> None:
    def refused(url: str, **keys: str) -> str:
        done = run("optimize", str(kernel), "--model", "big", "--endpoint", url, *QUICK, env=keys)
        assert done.returncode == 2
        return done.stderr

    assert "api.example.com, outside this machine" in refused("https://api.example.com/v1")
    assert "NOT encrypted" in refused("http://10.0.0.5:8000/v1")
    told = refused("https://api.openai.com/v1", OPENAI_API_KEY=SECRET)
    assert "Your key from OPENAI_API_KEY goes to this endpoint alone" in told and SECRET not in told
    assert "No key is sent" in refused("https://api.example.com/v1", OPENAI_API_KEY=SECRET)


def test_doctor_tells_of_the_model_and_asks_nobody(kernel: Path) -> None:
    def line(**keys: str) -> str:
        done = run("doctor", cwd=kernel.parent, env=keys)
        return next(text for text in done.stdout.splitlines() if "language model" in text)

    assert "no " in line() and "none is set" in line()
    with serving(answer("")) as endpoint:
        configure(kernel, endpoint.url)
        told = line(CUDA_LSP_API_KEY=SECRET)
    assert told.startswith("yes") and "key from CUDA_LSP_API_KEY" in told and "this machine" in told
    assert SECRET not in told and endpoint.requests == []
