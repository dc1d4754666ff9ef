"""A whole session with three kinds of client, over standard input and output, with the real server and real workers."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.server.connected import CAPABILITIES, REAL, Connected, connect
from tests.server.editor import LAX, STRICT
from tests.server.test_jobs import gone, soon
from tests.server.texts import SCALE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="reads /proc")

TEXT = """\
// größe 🚀
#include <cuda_runtime.h>

__global__ void add(const float* a, float* c, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && col < n) c[row * n + col] = a[row * n + col] + 1.0f;
}

int main() {
    int n = 4096;
    float *a, *c;
    cudaMalloc(&a, n * n * sizeof(float));
    cudaMalloc(&c, n * n * sizeof(float));
    add<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, c, n);
}
"""
BODY = "c[row * n + col] = a[row * n + col] + 1.0f;"
SMALL = {"only": ["index-exchange"], "rounds": 1, "candidates": 2, "scope": "plan"}


def session(folder: Path, capabilities: str, scenario: Callable[[Connected], Awaitable[None]], **how: Any) -> Path:
    file = folder / "work" / "add.cu"
    file.parent.mkdir(exist_ok=True)
    file.write_text(TEXT, newline="")

    async def run() -> None:
        async with connect(file, TEXT, folder / "state", capabilities, REAL, **how) as client:
            await scenario(client)

    asyncio.run(run())
    return file


async def said(client: Connected, command: str, *more: Any) -> str:
    """What the user is told when a job ends."""
    client.messages.clear()
    client.asked.clear()
    job = await client.command(command, await client.kernel("add"), *more)
    assert job, client.messages
    await client.until(lambda: bool(client.messages or client.asked), 120)
    return (client.messages or [asked.message for asked in client.asked])[0]


@pytest.mark.parametrize("manner", [STRICT, LAX])
@pytest.mark.parametrize("capabilities", list(CAPABILITIES))
def test_a_session(tmp_path: Path, capabilities: str, manner: str) -> None:
    async def scenario(client: Connected) -> None:
        await see_hints_change(client)
        await watch_and_cancel(client)
        assert "right (emulated" in await said(client, "optimize", SMALL)
        await edit_elsewhere_and_inside(client)
        await accept_and_take_back(client)
        await reject(client)

    file = session(tmp_path, capabilities, scenario, manner=manner)
    assert file.read_bytes() == TEXT.encode(), "nobody wrote the file"


async def see_hints_change(client: Connected) -> None:
    async def codes() -> list[Any]:
        return [one.code for one in await client.diagnostics()]

    assert await client.eventually(codes) == ["M3"]
    counted = client.server.inlay_hint_provider is not None
    if counted:
        (hint,) = await client.eventually(client.inlay_hints)
        assert "sectors per request" in hint.label
    client.editor.replace(BODY, BODY.replace("row * n + col", "col * n + row"))

    async def quiet() -> bool:
        return await codes() == [] and (not counted or await client.inlay_hints() == [])

    await client.eventually(quiet)
    client.editor.replace(BODY.replace("row * n + col", "col * n + row"), BODY)
    assert await client.eventually(codes) == ["M3"]


async def watch_and_cancel(client: Connected) -> None:
    job = await client.command("optimize", await client.kernel("add"))
    await client.until(lambda: len(workers(client)) > 0, 30)
    assert await client.shows("optimize: running (cancel)")
    if token := (f"cuda-lsp/{job}" if client.progress else ""):
        await client.until(lambda: "report" in client.kinds(token), 60)
    running = workers(client)
    assert await client.command("cancel", job) is True
    assert soon(lambda: all(map(gone, running)))
    if token:
        await client.until(lambda: client.kinds(token)[-1] == "end")
        stages = [value.get("message") for known, value in client.progress if known == token]
        assert client.kinds(token)[0] == "begin" and len(set(stages)) >= 3 and stages[-1] == "cancelled"
    assert client.messages == [] and client.editor.text == TEXT


def workers(client: Connected) -> list[int]:
    """The processes that work on jobs: workers, and what they started."""
    return [pid for pid in client.workers() if not gone(pid) and _is_a_worker(pid)]


def _is_a_worker(pid: int) -> bool:
    try:
        return b"cuda_lsp.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


async def edit_elsewhere_and_inside(client: Connected) -> None:
    """Re-anchored in one case, outdated in the other, and then nothing is written."""
    before = await client.command("review", await client.kernel("add"))
    assert before["original"] == client.editor.text and before["state"] == "ready"
    assert before["diff"].startswith("--- a/add.cu\n+++ b/add.cu\n"), "as it is called in the workspace"
    client.editor.type(0, 0, "// é 🚀 above\n")
    moved = await client.command("review", before["id"])
    assert moved["proposed"] == "// é 🚀 above\n" + before["proposed"]
    client.editor.replace(BODY, BODY.replace("1.0f", "2.0f"))
    text = client.editor.text
    assert await client.command("accept", before["id"]) is False
    assert "outdated" in client.messages[-1] and client.editor.text == text
    assert await client.shows("outdated: Review")
    client.editor.replace(BODY.replace("1.0f", "2.0f"), BODY)


async def accept_and_take_back(client: Connected) -> None:
    original = client.editor.text
    review = await client.command("review", await client.kernel("add"))
    assert await client.command("accept", review["id"]) is True
    assert client.editor.text == review["proposed"] != original
    assert await client.command("accept", review["id"]) is False
    assert "this proposal is accepted" in client.messages[-1]
    client.editor.type(0, len(client.editor.text), original)
    assert await client.command("review", review["id"]) == review, "an undo makes it ready again"


async def reject(client: Connected) -> None:
    before = client.editor.text
    review = await client.command("review", await client.kernel("add"))
    assert await client.command("reject", review["id"], "hard to read") is True
    assert client.editor.text == before
    again = await said(client, "optimize", SMALL)
    assert "as you rejected it" in again and "hard to read" in again
    assert client.editor.text == before
    client.editor.replace("// é 🚀 above\n", "")


@pytest.mark.parametrize("capabilities", list(CAPABILITIES))
def test_each_entry_of_the_menu(tmp_path: Path, capabilities: str) -> None:
    """Each is taken as the editor takes it, and ends with words or with an edit."""

    async def scenario(client: Connected) -> None:
        await client.eventually(lambda: ready(client))
        titles = [title_of(entry) for entry in await client.actions("c[row")]
        literal = capabilities != "minimal"
        assert sum("Optimize add" in title for title in titles) == 3
        for title in titles:
            mine = title.startswith("Optimize add") and "several" not in title
            if mine or "of my own" in title or title.startswith("Show"):
                continue
            entry = next(one for one in await client.actions("c[row") if title_of(one).startswith(title))
            if "Review" in title:
                review = await client.take(entry)  # of what the search a moment ago has found
                assert (review["kernel"], review["state"]) == ("add", "ready")
                continue
            client.messages.clear()
            client.asked.clear()
            before = client.editor.text
            await client.take(entry)
            await client.until(lambda: bool(client.messages or client.asked or client.editor.text != before), 120)  # noqa: B023
            if "Write the workload" in title:
                await client.until(lambda: "// cuda-lsp: workload" in client.editor.text)
                client.editor.type(0, len(client.editor.text), before)
            elif "Verify and apply" in title:
                await client.until(lambda: bool(client.messages))
                assert client.messages[0].startswith("cuda-lsp: applied to add: ") and client.asked == []
                client.editor.type(0, len(client.editor.text), before)
            elif "Silence" in title:
                assert "// cuda-lsp: ignore[M3]" in client.editor.text
                client.editor.type(0, len(client.editor.text), before)
            else:
                assert client.editor.text == before
                assert "add" in (client.messages or [one.message for one in client.asked])[0]
        assert any("Verify and apply index-exchange" in title for title in titles) is literal
        assert any("Review" in title for title in titles) is literal, "others are told by the lens"

    session(tmp_path, capabilities, scenario)


async def ready(client: Connected) -> bool:
    return bool(await client.diagnostics()) and any("registers" in title for title in await client.titles())


def title_of(entry: types.CodeAction | types.Command) -> str:
    return entry.title


def test_a_client_that_cannot_show_progress_is_sent_none(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        assert "right (emulated" in await said(client, "verify", {"against": "saved"}) or client.messages
        assert client.progress == [] and client.asked == []

    session(tmp_path, "minimal", scenario)
    assert os.listdir(tmp_path / "work") == ["add.cu"]  # noqa: PTH208


SCAN = Path(__file__).parents[2] / "fixtures" / "scan.cu"
TILES = {"only": ["scan-in-tiles"], "rounds": 1, "candidates": 1, "scope": "plan"}


@pytest.mark.parametrize(("capabilities", "manner"), [("vscode", STRICT), ("minimal", LAX)])
def test_a_loop_of_launches_becomes_three_others_with_memory_between_them(
    tmp_path: Path, capabilities: str, manner: str
) -> None:
    """The search, the gates and the host code are the real ones. Accepted after an edit elsewhere; after one in the
    function that launches, nothing is written."""
    text = SCAN.read_text()
    file = tmp_path / "scan.cu"
    file.write_text(text)

    async def run() -> None:
        async with connect(file, text, tmp_path / "state", capabilities, REAL, manner=manner) as client:
            await client.command("optimize", await client.kernel("scan_step"), TILES)
            await client.until(lambda: bool(client.messages or client.asked), 240)
            client.editor.replace('wrong ? "WRONG"', 'wrong ? "wrong"')
            inside = client.editor.text
            review = await client.command("review", await client.kernel("scan_step"))
            assert (review["state"], review["proposed"]) == ("outdated", None)
            assert await client.command("accept", review["id"]) is False and client.editor.text == inside
            client.editor.replace('wrong ? "wrong"', 'wrong ? "WRONG"')
            client.editor.type(0, 0, "// größe 🚀\n")
            review = await client.command("review", await client.kernel("scan_step"))
            assert await client.command("accept", review["id"]) is True
            assert client.editor.text == review["proposed"]
            launched(client.editor.text)
            client.editor.type(0, len(client.editor.text), "// größe 🚀\n" + text)
            assert (await client.command("review", review["id"]))["state"] == "ready", "it was undone"

    asyncio.run(run())
    assert file.read_text() == text


def launched(text: str) -> None:
    """That the host code has the three launches, in their order, and frees what it allocates."""
    main = text[text.index("int main(") :]
    calls = [main.index(f"{name}<<<") for name in ("scan_step_tiles", "scan_step_totals", "scan_step")]
    assert calls == sorted(calls)
    allocated, freed = ({one.split(")")[0] for one in main.split(word)[1:]} for word in ("cudaMalloc(&", "cudaFree("))
    assert {name.split(",")[0] for name in allocated} == freed and len(freed) == 4


def test_two_servers_on_one_file_lose_nothing_of_each_other(tmp_path: Path) -> None:
    """Two editors have the file open. Each sees what the other decided when it looks at the file anew."""
    file = tmp_path / "work" / "scale.cu"
    file.parent.mkdir()
    file.write_text(SCALE)
    script = {"only": ["rewrite"]}

    async def run() -> None:
        async with (
            connect(file, SCALE, tmp_path / "state") as one,
            connect(file, SCALE, tmp_path / "state", "neovim") as other,
        ):
            await one.command("optimize", await one.kernel("scale"), script)
            await one.until(lambda: bool(one.asked))
            await other.command("optimize", await other.kernel("shift"), script)
            await other.until(lambda: bool(other.asked))
            mine = await one.command("review", await one.kernel("scale"))
            assert await one.command("accept", mine["id"]) is True
            theirs = await other.command("review", await other.kernel("shift"))
            assert await other.command("reject", theirs["id"], "no") is True
            assert other.editor.text == SCALE, "an editor's text is its own"
        async with connect(file, SCALE, tmp_path / "state") as later:
            again = await later.command("review", mine["id"])
            assert (again["state"], again["kernel"]) == ("ready", "scale"), "the file does not hold what was accepted"
            assert (await later.command("review", theirs["id"]))["state"] == "rejected"

    asyncio.run(run())
