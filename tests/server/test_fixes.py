"""Mechanical fixes are proved before they are written: with a real server and its real worker."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from cuda_lsp.worker.asked import Change, Options, Task, Written
from cuda_lsp.worker.tasks import fix, run
from tests.server.connected import REAL, Connected, connect
from tests.server.test_worker import RACE

RELAX = """\
__global__ void relax(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 0.1;
}
__global__ void keep(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 0.3;
}
int main() {
    int n = 4096;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    relax<<<(n + 255) / 256, 256>>>(x, y, n);
    keep<<<(n + 255) / 256, 256>>>(x, y, n);
    cudaThreadSynchronize();
}
"""
FIXED = RELAX.replace("0.1;", "0.1f;").replace("0.3;", "0.3f;")


def judged(text: str, kernel: str, old: str, new: str, path: Path) -> tuple[str, str]:
    """How the worker ends on ``new`` in the place of the first ``old``."""
    start = text.index(old)
    change = Change("Do it", (Written(start, start + len(old), new),))
    options = Options(seconds=60, change=change)
    ended = run(Task("fix", str(path / "a.cu"), text.encode(), kernel, options), lambda message: None)
    return ended.reason, ended.message


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_what_the_gates_say_of_a_fix(tmp_path: Path) -> None:
    reason, message = judged(RELAX, "relax", "0.1;", "0.1f;", tmp_path)
    assert reason == "right" and message.startswith("relax against the text as it is: right (emulated: ")
    assert judged(RELAX, "relax", "0.1;", "0.2f;", tmp_path)[0] == "wrong"
    reason, message = judged(RELAX, "relax", "0.1;", "0.1f x;", tmp_path)
    assert reason == "wrong" and "cannot be parsed" in message


def test_a_fix_of_what_is_broken_is_run_alone(tmp_path: Path) -> None:
    loop = "if (threadIdx.x < stride) s[threadIdx.x] += s[threadIdx.x + stride];"
    text = RACE.replace("0.0f;\n", "0.0f; __syncthreads();\n")
    reason, message = judged(text, "total", loop, f"{loop} __syncthreads();", tmp_path)
    assert reason == "mended" and "the text as it is is itself broken" in message and "shared-memory race" in message
    assert judged(text, "total", loop, f"{loop} __syncwarp();", tmp_path)[0] == "broken original"
    old = RELAX.replace("x[i] * 0.1;", "__shfl(x[i], 0);")
    reason, message = judged(old, "relax", "__shfl(", "__shfl_sync(0xffffffffu, ", tmp_path)
    assert reason == "mended" and message.startswith("the text as it is does not compile: ")
    assert judged(old, "relax", "__shfl(", "__shfl_up(", tmp_path)[0] == "unproved"


def test_where_nothing_says_what_it_runs_on_it_is_probed_or_not_proved(tmp_path: Path) -> None:
    alone = RELAX[: RELAX.index("__global__ void keep")]
    assert judged(alone, "relax", "0.1;", "0.1f;", tmp_path)[0] == "right"
    text = "struct T; __global__ void f(T* x, float* y, float (*g)(float)) { y[0] = g(y[0]) * 0.3; }\n"
    reason, message = judged(text, "f", "0.3;", "0.3f;", tmp_path)
    assert reason == "unproved" and message
    twice = f"#if 1\n{alone}#else\n{alone}#endif\n"
    start = twice.rindex("0.1;")
    change = Change("Do it", (Written(start, start + 4, "0.1f;"),))
    task = Task("fix", str(tmp_path / "a.cu"), twice.encode(), "relax", Options(seconds=60, change=change))
    assert fix.run(task, lambda message: None).reason == "unproved", "the other of two is compiled"


def session(folder: Path, scenario: Callable[[Connected], Awaitable[None]], text: str = RELAX, **how: Any) -> None:
    file = folder / "relax.cu"
    file.write_text(text)

    async def run() -> None:
        async with connect(file, text, folder / "state", server=REAL, **how) as client:
            await scenario(client)

    asyncio.run(run())


def test_a_quick_fix_is_written_once_it_is_proved_wherever_its_kernel_is_by_then(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        (mend,) = await client.eventually(lambda: mends(client, "0.1"))
        assert mend.title == "Verify and apply: Write 0.1f"
        assert await client.take(mend) == "job-1"
        client.editor.replace("0.3;", "0.3 ;")
        await client.until(lambda: bool(client.messages))
        assert client.messages[0].startswith("cuda-lsp: relax: Write 0.1f: written. relax against ")
        assert client.editor.text == RELAX.replace("0.1;", "0.1f;").replace("0.3;", "0.3 ;")
        assert any(
            value["title"] == "Verifying a fix of relax" for _, value in client.progress if value["kind"] == "begin"
        )
        client.messages.clear()
        assert await client.take(mend) is None
        assert "was edited since" in client.messages[0]

    session(tmp_path, scenario)


def test_all_safe_fixes_of_a_file_and_what_stands_in_host_code_apart(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        kinds = client.server.code_action_provider.code_action_kinds  # type: ignore[union-attr]
        assert "source.fixAll.cuda-lsp" in kinds
        assert all("all safe fixes" not in one.title for one in await client.actions("0.1"))
        (entry,) = await client.actions("main", ["source.fixAll"])
        assert entry.title == "Verify and apply all safe fixes"
        assert await client.take(entry) == ["job-1", "job-2"]
        await client.until(lambda: len(client.messages) == 2, 120)
        assert client.editor.text == FIXED, client.messages
        client.messages.clear()
        assert await client.take(entry) == []
        await client.until(lambda: "nothing to fix" in client.messages[0])
        (host,) = await client.eventually(lambda: mends(client, "cudaThreadSynchronize"))
        assert host.title == "Write cudaDeviceSynchronize (code of the host: not run)" and host.command is None
        await client.take(host)
        assert client.editor.text == FIXED.replace("cudaThread", "cudaDevice")

    session(tmp_path, scenario)


@pytest.mark.parametrize("answer", ["Write it unproved", "Leave it"])
def test_what_cannot_be_proved_is_the_users_to_decide(tmp_path: Path, answer: str) -> None:
    body = "    z[threadIdx.x] = y[threadIdx.x] * 0.1;\n"
    text = f"struct T;\n__global__ void f(T* x, const float* y, float* z) {{\n{body}}}\n"

    async def scenario(client: Connected) -> None:
        client.answer = answer
        (mend,) = await client.eventually(lambda: mends(client, "0.1"))
        await client.take(mend)
        await client.until(lambda: bool(client.asked))
        assert "not written, as it could not be proved" in client.asked[0].message
        if answer == "Leave it":
            assert client.editor.text == text
        else:
            await client.until(lambda: bool(client.messages))
            assert client.editor.text == text.replace("0.1;", "0.1f;")
            assert client.messages == ["cuda-lsp: f: Write 0.1f: written, not proved"]

    session(tmp_path, scenario, text)


def test_what_was_tried_on_another_text_is_not_written(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        (mend,) = await client.eventually(lambda: mends(client, "0.1"))
        await client.take(mend)
        client.editor.replace("n = 4096", "n = 8192")
        await client.until(lambda: bool(client.messages))
        assert "the file was edited or closed meanwhile; not written" in client.messages[0]
        assert "0.1;" in client.editor.text

    session(tmp_path, scenario)


async def mends(client: Connected, piece: str) -> list[types.CodeAction]:
    return [one for one in await client.actions(piece, ["quickfix"]) if not one.title.startswith("Silence")]
