"""The commands over a real connection, with three kinds of client: start, watch, cancel, review, accept, reject."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.server.connected import CAPABILITIES, REAL, ROOT, Connected, connect, descendants
from tests.server.test_accept import PROMISED, RELAUNCHED
from tests.server.test_jobs import gone, soon
from tests.server.texts import SCALE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="reads /proc")

CLIENTS = list(CAPABILITIES)


def connected(folder: Path, scenario: Callable[[Connected], Awaitable[None]], **how: Any) -> None:
    """Run a scenario with SCALE open, or the text of ``how``."""
    text = how.pop("text", SCALE)
    file = folder / "work" / "scale.cu"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, newline="")

    async def run() -> None:
        async with connect(file, text, folder / "state", **how) as client:
            await scenario(client)

    asyncio.run(run())


async def _in_state(ask: Callable[[], Awaitable[Any]], state: str) -> Any:
    found = await ask()
    return found if found["state"] == state else None


def words(*script: str, **more: Any) -> dict[str, Any]:
    return {"only": list(script), **more}


@pytest.mark.parametrize("capabilities", CLIENTS)
def test_optimize_watch_review_accept(tmp_path: Path, capabilities: str) -> None:
    async def scenario(client: Connected) -> None:
        kernel = await client.kernel("scale")
        job = await client.command("optimize", kernel, words("stage:one", "sleep:2", "launch"))
        assert job == "job-1" and not client.messages and not client.asked, "the answer does not wait for the work"
        assert await client.shows("optimize: running (cancel)")
        await client.until(lambda: bool(client.messages or client.asked))
        said = client.asked[0].message if client.asked else client.messages[0]
        assert "scale: faster scale: right (emulated" in said and "est. 1.50x on H200, not measured" in said
        if capabilities != "minimal":
            await client.until(lambda: client.kinds(f"cuda-lsp/{job}")[-1:] == ["end"])
            kinds = client.kinds(f"cuda-lsp/{job}")
            assert kinds[0] == "begin" and "report" in kinds and kinds.count("end") == 1
        else:
            assert client.progress == []
        assert await client.shows("right, est. 1.50x on H200, not measured: Review")
        review = await client.command("review", kernel)
        assert (review["original"], review["proposed"]) == (SCALE, RELAUNCHED)
        assert review["verdict"] in said and "not checked: nothing" in review["evidence"]
        assert await client.command("accept", review["id"]) is True
        assert client.editor.text == RELAUNCHED
        (edit,) = client.editor.asked
        assert (edit.edit.document_changes is None) == (capabilities == "minimal")
        assert await client.command("accept", review["id"]) is False
        assert "this proposal is accepted" in client.messages[-1]

    connected(tmp_path, scenario, capabilities=capabilities)


@pytest.mark.parametrize("capabilities", CLIENTS)
def test_edits_elsewhere_and_inside_and_a_rejection(tmp_path: Path, capabilities: str) -> None:
    async def scenario(client: Connected) -> None:
        for kernel in ("scale", "shift"):
            await client.command("optimize", await client.kernel(kernel), words("rewrite"))
        await client.until(lambda: len(client.messages) + len(client.asked) == 2)
        client.editor.type(0, 0, "// é \U0001f600 first\n")
        first = await client.command("review", await client.kernel("scale"))
        assert await client.command("accept", first["id"]) is True
        assert client.editor.text == "// é \U0001f600 first\n" + PROMISED
        second = await client.command("review", await client.kernel("shift"))
        client.editor.replace("x[i] + 1.0f", "x[i] + 3.0f")
        before = client.editor.text
        assert await client.command("accept", second["id"]) is False
        assert "outdated" in client.messages[-1] and client.editor.text == before
        assert await client.shows("outdated: Review")
        assert await client.command("reject", second["id"], "not worth it") is True
        assert client.editor.text == before and "outdated: Review" not in await client.titles()

    connected(tmp_path, scenario, capabilities=capabilities)


def test_cancel_in_the_progress_display_kills_the_work(tmp_path: Path) -> None:
    """The worker and what it started; both would sleep for ten minutes."""

    async def scenario(client: Connected) -> None:
        child = tmp_path / "child"
        job = await client.command("optimize", await client.kernel("scale"), words(f"child:{child}", "sleep:600"))
        await client.until(lambda: child.exists() and child.read_text() != "")
        token = f"cuda-lsp/{job}"
        await client.until(lambda: client.kinds(token)[:1] == ["begin"])
        sleeper = int(child.read_text())
        (worker,) = [pid for pid in client.workers() if sleeper in descendants(pid)]
        client.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
        await client.until(lambda: client.kinds(token)[-1] == "end" and gone(worker) and gone(sleeper))
        assert client.progress[0][1]["cancellable"] and client.progress[-1][1]["message"] == "cancelled"
        assert await client.titles() and client.messages == [], "a user who cancels needs no message"

    connected(tmp_path, scenario)


def test_cancel_by_command_and_by_the_lens(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        kernel = await client.kernel("scale")
        job = await client.command("optimize", kernel, words("sleep:60"))
        assert await client.command("optimize", kernel, words("rewrite")) is None
        assert "a job is already running on scale" in client.messages[-1]
        assert await client.command("cancel", job) is True
        assert await client.command("cancel", job) is False
        await client.command("optimize", kernel, words("sleep:60"))
        assert await client.command("cancel", kernel) is True
        assert await client.command("cancel", kernel) is False

    connected(tmp_path, scenario)


def test_the_token_of_the_command_where_the_client_creates_none(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        await client.command("optimize", await client.kernel("scale"), words("stage:one", "sleep:0.1"), token="mine")
        await client.until(lambda: client.kinds("mine")[-1:] == ["end"])
        assert client.kinds("mine")[0] == "begin"

    connected(tmp_path, scenario, capabilities="minimal")


def test_a_message_offers_to_accept_and_to_review(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        client.answer = "Review"
        await client.command("optimize", await client.kernel("scale"), words("rewrite"))
        await client.until(lambda: bool(client.reviews))
        assert [item.title for item in client.asked[0].actions or ()] == ["Review", "Accept", "Later"]
        assert client.reviews[0].proposed == PROMISED and client.shown == []
        client.answer = "Accept"
        await client.command("optimize", await client.kernel("scale"), words("rewrite"))
        await client.until(lambda: client.editor.text == PROMISED)

    connected(tmp_path, scenario)


def test_what_is_to_be_applied_by_hand_is_not_offered_for_acceptance(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        await client.command("optimize", await client.kernel("scale"), words("by-hand"))
        await client.until(lambda: bool(client.asked))
        assert [item.title for item in client.asked[0].actions or ()] == ["Review", "Later"]
        assert "to be applied by hand: no launch is in this file" in client.asked[0].message
        review = await client.command("review", await client.kernel("scale"))
        assert (review["state"], review["note"]) == ("ready", "no launch is in this file")
        client.editor.replace("twice(x[i])", "twice(x[0])")
        kernel = await client.kernel("scale")
        found = await client.eventually(lambda: _in_state(lambda: client.command("review", kernel), "outdated"))
        assert "was edited since this was proved" in found["note"]

    connected(tmp_path, scenario)


def test_a_client_without_a_plugin_gets_the_diff_as_a_file(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        await client.command("optimize", await client.kernel("scale"), words("rewrite"))
        await client.until(lambda: bool(client.asked))
        review = await client.command("review", await client.kernel("scale"))
        await client.until(lambda: bool(client.shown))
        (uri,) = client.shown
        text = Path(unquote(uri.removeprefix("file://"))).read_text()
        assert review["diff"].startswith("--- a/") and review["diff"] in text and "verdict    right (emulated" in text
        assert "+    int i = " not in text and "+// helper 0" in text

    connected(tmp_path, scenario, capabilities="neovim")


def test_proposals_are_there_after_a_restart(tmp_path: Path) -> None:
    async def before(client: Connected) -> None:
        await client.command("optimize", await client.kernel("scale"), words("rewrite"))
        await client.until(lambda: bool(client.asked))

    async def after(client: Connected) -> None:
        review = await client.command("review", await client.kernel("scale"))
        assert await client.command("accept", review["id"]) is True
        assert client.editor.text == PROMISED

    connected(tmp_path, before)
    connected(tmp_path, after)


def test_a_worker_that_dies_is_said_and_the_server_lives(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        await client.command("optimize", await client.kernel("scale"), words("die"))
        await client.until(lambda: bool(client.messages))
        assert "scale: the worker died twice on this job" in client.messages[0]
        assert any("started again" in str(value.get("message")) for _, value in client.progress)
        await client.command("optimize", await client.kernel("scale"), words("rewrite"))
        await client.until(lambda: bool(client.asked))

    connected(tmp_path, scenario)


@pytest.mark.parametrize("killed", [False, True])
def test_no_process_is_left_when_the_server_ends(tmp_path: Path, killed: bool) -> None:
    left: list[int] = []

    async def scenario(client: Connected) -> None:
        await client.command("optimize", await client.kernel("scale"), words("stage:there", "sleep:60"))
        await client.command("optimize", await client.kernel("shift"), words("stage:there", "sleep:60"))
        await client.until(lambda: sum(v.get("message") == "there" for _, v in client.progress) >= 1)
        left.extend(client.workers())
        if killed:
            os.kill(client.pid, signal.SIGKILL)

    with contextlib.suppress(Exception):
        connected(tmp_path, scenario)
    assert left and soon(lambda: all(map(gone, left)))


def test_a_document_closed_renamed_or_deleted_under_a_job(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        await client.command("optimize", await client.kernel("scale"), words("sleep:0.5", "rewrite"))
        old, new = client.editor.uri, client.editor.uri.replace("scale.cu", "other.cu")
        client.editor.close()
        renamed = types.RenameFilesParams([types.FileRename(old, new)])
        client.client.workspace_did_rename_files(renamed)
        client.editor.uri, client.editor.version = new, 1
        client.editor.open()
        assert await client.shows("optimize: running (cancel)")
        await client.until(lambda: bool(client.asked))
        assert any(title.endswith("Review") for title in await client.titles())
        await client.command("optimize", await client.kernel("shift"), words("sleep:60"))
        client.editor.close()
        client.client.workspace_did_delete_files(types.DeleteFilesParams([types.FileDelete(new)]))
        client.editor.open()
        assert not any(title.endswith(("Review", "(cancel)")) for title in await client.titles())

    connected(tmp_path, scenario)


def test_an_unsaved_document_is_optimized_and_its_job_ends_with_it(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        await client.command("optimize", await client.kernel("scale"), words("rewrite"))
        await client.until(lambda: bool(client.asked))
        review = await client.command("review", await client.kernel("scale"))
        assert await client.command("accept", review["id"]) is True and client.editor.text == PROMISED
        job = await client.command("optimize", await client.kernel("shift"), words("sleep:60"))
        client.editor.close()
        await client.until(lambda: client.kinds(f"cuda-lsp/{job}")[-1:] == ["end"])

    connected(tmp_path, scenario, uri="untitled:Untitled-1")


def test_bad_arguments_are_errors_and_old_ones_are_said(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        kernel = await client.kernel("scale")
        bad: list[tuple[str, tuple[Any, ...]]] = [
            ("optimize", ()),
            ("optimize", (kernel, {}, 1)),
            ("optimize", ("scale",)),
            ("optimize", (kernel, {"scope": "everything"})),
            ("optimize", (kernel, {"unknown": 1})),
            ("optimize", (kernel, {"device": "abacus"})),
            ("optimize", (kernel, {"seconds": -1})),
            ("optimize", (kernel, {"rounds": 1000})),
            ("optimize", (kernel, 3)),
            ("optimize", (kernel, {"only": "index-exchange"})),
            ("optimize", (kernel, {"only": [3]})),
            ("optimize", (kernel, {"lossy": "false"})),
            ("optimize", (kernel, {"seconds": "5"})),
            ("optimize", (kernel, {"seconds": True})),
            ("optimize", (kernel, {"rounds": 1.5})),
            ("optimize", (kernel, {"target": None})),
            ("optimize", (kernel, {"rejected": [["a", "b"]]})),
            ("optimize", (kernel, {"model": {"name": "a", "endpoint": "b"}})),
            ("verify", ({**kernel, "ordinal": None},)),
            ("accept", ()),
            ("accept", (3,)),
            ("reject", ("x", 3)),
            ("cancel", ()),
            ("tryIdea", ()),
        ]
        for name, arguments in bad:
            with pytest.raises(JsonRpcException) as refused:
                await client.command(name, *arguments)
            assert "tuple" not in str(refused.value) and "Scope" not in str(refused.value), (
                "words of ours, not Python's"
            )
        assert client.messages == []
        client.editor.replace("twice(x[i])", "twice(x[0])")
        assert await client.command("optimize", kernel, words("rewrite")) is None
        assert "scale was edited since this was offered" in client.messages[-1]
        assert await client.command("review", "nope") is None and await client.command("accept", "nope") is False

    connected(tmp_path, scenario)


TRANSPOSE = (ROOT / "fixtures" / "transpose.cu").read_text()


def test_a_change_is_verified_before_and_after_it_goes_wrong(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        async def said(command: str, options: Any) -> str:
            client.messages.clear()
            client.asked.clear()
            assert await client.command(command, await client.kernel("transpose"), options)
            await client.until(lambda: bool(client.messages or client.asked), 120)
            return (client.messages or [asked.message for asked in client.asked])[0]

        assert "exchange threadIdx.x and threadIdx.y" in await said("suggestIdeas", None)
        assert "there is no change to verify" in await said("verify", "saved")
        assert "measured" in (said_of_time := await said("benchmark", None)) and "Estimated on H200" in said_of_time
        assert "transpose: in f32[rows*cols] in" in await said("describeWorkload", None)
        assert "//   buffer   in: f32[rows * cols] in\n" in client.editor.text
        assert "right (emulated" in await said("optimize", "relaunch")
        review = await client.command("review", await client.kernel("transpose"))
        assert await client.command("accept", review["id"]) is True
        assert client.editor.text == review["proposed"]
        assert "transpose against the saved file: right (emulated" in await said("verify", "saved")
        client.editor.replace("row * cols + col]", "row * cols + row]")
        assert "wrong" in await said("verify", "saved")

    connected(tmp_path, scenario, server=REAL, text=TRANSPOSE)


@pytest.mark.parametrize("how", ["cancelled", "worker killed", "server killed"])
def test_the_compilers_of_a_real_worker_go_with_it(tmp_path: Path, how: str) -> None:
    left: list[int] = []

    async def scenario(client: Connected) -> None:
        short = {"rounds": 1, "candidates": 2}
        job = await client.command("optimize", await client.kernel("transpose"), short)
        await client.until(lambda: any("right" in str(value.get("message")) for _, value in client.progress), 300)
        (worker,) = [pid for pid in client.workers() if b"cuda_lsp.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        left.extend([worker, *descendants(worker)])
        assert len(left) >= 2, "the worker has a compiler"
        if how == "cancelled":
            for compiler in left[1:]:
                os.kill(compiler, signal.SIGSTOP)  # it cannot end by itself: what ends it is the cancel
            assert await client.command("cancel", job) is True
        else:
            os.kill(worker if how == "worker killed" else client.pid, signal.SIGKILL)
        assert soon(lambda: all(map(gone, left)), 30.0)
        if how == "worker killed":
            await client.until(lambda: any("started again" in str(v.get("message")) for _, v in client.progress))
            await client.until(lambda: bool(client.asked), 300)
            assert "right (emulated" in client.asked[0].message

    with contextlib.suppress(Exception) if how == "server killed" else contextlib.nullcontext():
        connected(tmp_path, scenario, server=REAL, text=TRANSPOSE)
    assert left and all(map(gone, left))
