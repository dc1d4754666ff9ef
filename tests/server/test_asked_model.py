"""Suggest ideas and Optimize ask the project's language model too: consent, caps, progress, cancel, faults, keys."""

import asyncio
import json
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.models.endpoint import Turn, answer, error, serving, silent
from tests.models.searching import by_question, in_turn
from tests.server.connected import REAL, Connected, connect, descendants

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="reads /proc")

TEXT = """\
// cuda-lsp: workload
//   size    n = 65536
//   buffer  a: f32[32 * n] in
//   buffer  c: f32[32 * n] out
//   launch  add<<<(32 * n + 255) / 256, 256>>>(a, c, n)

__global__ void add(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = (i ^ (i >> 5 << 5)) * n + (i >> 5);
    if (i < 32 * n) c[j] = a[j] + 1.0f;
}
int main() { const char* host_only = "not for the model"; return host_only == nullptr; }
"""
"""The catalogue does not see through its index."""
GOOD = """\
__global__ void add(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 32 * n) c[i] = a[i] + 1.0f;
}"""
IDEA = {"title": "walk straight on", "why": "a warp reads neighbours", "risk": "none", "scope": "drop-in"}
WHOSE = "walk straight on (idea from scripted)"
NONE = "no idea of the catalogue applies to add"
SECRET = "sk-very-secret-0123456789"
SEND, ALWAYS, NEVER = "Send", "Always in this project", "Never in this project"
SHORT = {"rounds": 1, "candidates": 3}
TRACED = (
    "import sys; from cuda_lsp.terminal.main import main; "
    "sys.argv[1:] = ['serve', '--trace', {!r}, '--trace-source', '--log', {!r}]; main()"
)


def helpful(code: str = GOOD) -> Turn:
    """A model with one idea, and code for it."""
    written = json.dumps({"code": code, "plan": [], "rationale": "neighbours"})
    return by_question(answer(json.dumps({"ideas": [IDEA]})), in_turn(written))


def session(
    folder: Path, scenario: Callable[[Connected], Awaitable[None]], turn: Turn, caps: str = "", **how: Any
) -> list[str]:
    """A scenario with a model that the project names; what the model was told, question by question."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    (work / "add.cu").write_text(TEXT)
    with serving(turn) as endpoint:
        settings = f'[model]\nname = "scripted"\nendpoint = "{endpoint.url}"\n{caps}'
        (work / ".cuda-lsp.toml").write_text(settings)

        async def run() -> None:
            told = {"server": REAL, "CUDA_LSP_API_KEY": SECRET, **how}
            async with connect(work / "add.cu", TEXT, folder / "state", **told) as client:
                await scenario(client)

        asyncio.run(run())
        assert all(one["authorization"] == f"Bearer {SECRET}" for one in endpoint.headers)
        return [endpoint.said(number) for number in range(len(endpoint.requests))]


async def ended(client: Connected, command: str, *options: Any) -> str:
    """The message at the end of a job, whatever was asked before it."""
    before = len(client.messages), len(client.asked)

    def results() -> list[str]:
        told = client.messages[before[0] :] + [asked.message for asked in client.asked[before[1] :]]
        return list(filter(_result, told))

    job = await client.command(command, await client.kernel("add"), *options)
    assert isinstance(job, str), client.messages
    await client.until(lambda: client.kinds(f"cuda-lsp/{job}")[-1:] == ["end"], 120)
    await client.until(lambda: bool(results()))
    return results()[0]


def said(client: Connected) -> list[str]:
    return [*client.messages, *(asked.message for asked in client.asked)]


def _result(text: str) -> bool:
    return any(word in text for word in ("for add: ", "no idea of the catalogue", "right (emulated", "came to nothing"))


def questions(client: Connected) -> list[types.ShowMessageRequestParams]:
    return [asked for asked in client.asked if "It would be sent" in asked.message]


def stages(client: Connected) -> list[str]:
    return [value.get("message", "") for _, value in client.progress]


def test_once_agreed_suggest_and_optimize_ask_the_model_and_say_whose_idea_it_is(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        client.answer = ALWAYS
        ideas = await ended(client, "suggestIdeas")
        assert f"1 idea for add: {WHOSE}" in ideas
        (question,) = questions(client)
        assert "the device code of add: " in question.message
        assert "Your key from CUDA_LSP_API_KEY goes to this endpoint alone" in question.message
        assert [item.title for item in question.actions or ()] == [SEND, ALWAYS, NEVER]
        assert "in this project scripted may be asked" in client.messages[0]
        assert "waiting for your answer: may scripted be asked?" in stages(client)
        assert "asking scripted for ideas" in stages(client)
        client.asked.clear()
        client.answer = ""
        result = await ended(client, "optimize", SHORT)
        assert questions(client) == [], "it was allowed for good"
        assert f"add: {WHOSE}: right (emulated" in result
        assert "asking scripted for code" in stages(client)
        review = await client.command("review", await client.kernel("add"))
        assert review["title"] == WHOSE and GOOD in review["proposed"]
        assert client.editor.text == TEXT
        # what was turned down is told to the model, by the title that it gave
        assert await client.command("reject", review["id"], "too plain") is True
        await ended(client, "suggestIdeas")

    told = session(tmp_path, scenario, helpful())
    assert "walk straight on: too plain" in told[-1]
    assert not any("host_only" in one or "int main" in one for one in told)


def test_the_idea_of_a_model_is_tried_in_its_own_words(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        client.answer = ALWAYS
        await ended(client, "suggestIdeas")
        client.answer = "Try model-walk-straight-on"
        await client.command("suggestIdeas", await client.kernel("add"))
        await client.until(lambda: any("right (emulated" in one for one in said(client)), 120)
        assert any("(idea from scripted): right (emulated" in one for one in said(client)), said(client)
        assert "Optimizing add" in [value.get("title") for _, value in client.progress], "it is not the user's idea"

    told = session(tmp_path, scenario, helpful())
    assert any("walk straight on: a warp reads neighbours" in one for one in told)


def test_who_declines_gets_the_catalogue_and_hears_of_it_once(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        client.answer = NEVER
        assert WHOSE not in await ended(client, "suggestIdeas")
        await ended(client, "suggestIdeas")
        await ended(client, "optimize", SHORT)
        assert len(questions(client)) == 1
        assert [one for one in client.messages if "scripted" in one] == [
            "cuda-lsp: in this project scripted is not asked, ideas come from the catalogue alone; "
            "the command to ask again (cuda-lsp.forgetConsent) takes that back"
        ]
        # an idea of one's own can go nowhere else: there the question is put again
        client.answer = "Try nothing"
        await client.command("tryIdea", await client.kernel("add"), "write it once")
        await client.until(lambda: len(questions(client)) == 2)
        await client.until(lambda: "nothing was sent" in client.messages[-1])

    assert session(tmp_path, scenario, helpful()) == []


def test_an_answer_outlives_the_server_and_can_be_taken_back(tmp_path: Path) -> None:
    async def first(client: Connected) -> None:
        client.answer = NEVER
        await ended(client, "suggestIdeas")

    async def second(client: Connected) -> None:
        assert WHOSE not in await ended(client, "suggestIdeas")
        assert questions(client) == []
        assert await client.command("forgetConsent") is True
        await client.until(lambda: any("your answers are forgotten" in one for one in client.messages))
        client.answer = SEND
        assert WHOSE in await ended(client, "suggestIdeas")
        client.answer = ""
        assert WHOSE not in await ended(client, "suggestIdeas")
        assert len(questions(client)) == 2, "an answer for once is for once"
        await ended(client, "suggestIdeas")
        assert len(questions(client)) == 2, "a question that was closed is not put again"
        assert len([one for one in client.messages if "not asked before the editor starts anew" in one]) == 1

    # the endpoint is another in each session, its project the same: what is allowed is an endpoint in a project
    with serving(helpful()) as endpoint:
        work = tmp_path / "work"
        work.mkdir()
        (work / "add.cu").write_text(TEXT)
        (work / ".cuda-lsp.toml").write_text(f'[model]\nname = "scripted"\nendpoint = "{endpoint.url}"\n')

        async def run(scenario: Callable[[Connected], Awaitable[None]]) -> None:
            async with connect(work / "add.cu", TEXT, tmp_path / "state", server=REAL) as client:
                await scenario(client)

        asyncio.run(run(first))
        assert endpoint.requests == []
        asyncio.run(run(second))
        assert len(endpoint.requests) == 1 and SECRET not in str(endpoint.headers), "no key was given"


def test_a_client_that_cannot_ask_gets_the_catalogue_and_is_told_where_to_agree(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        for _ in range(2):
            assert await client.command("suggestIdeas", await client.kernel("add"))
            await client.until(lambda: NONE in client.messages[-1] if client.messages else False)
            client.messages.append("next")
        told = [one for one in client.messages if "scripted" in one]
        assert len(told) == 1 and "this editor cannot ask whether you agree" in told[0]

    assert session(tmp_path, scenario, helpful(), capabilities="minimal") == []


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (error(401, f"wrong key {SECRET}"), "401"),
        (answer("I am a teapot"), "no JSON object"),
    ],
)
def test_what_goes_wrong_with_the_model_is_one_message_and_the_catalogue_goes_on(
    tmp_path: Path, fault: Turn, why: str
) -> None:
    async def scenario(client: Connected) -> None:
        client.answer = SEND
        for command in ("suggestIdeas", "optimize"):
            client.messages.clear()
            client.asked.clear()
            result = await ended(client, command, SHORT if command == "optimize" else None)
            assert "scripted could not help: " in result and why in result
            assert "no idea of the catalogue applies" in result
            assert len(said(client)) == 2, "the question, and one message"
        assert SECRET not in str(client.messages) + str(client.asked) + str(client.progress)

    session(tmp_path, scenario, fault)


def test_nobody_who_answers_is_one_message_too(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        settings = tmp_path / "work" / ".cuda-lsp.toml"
        settings.write_text('[model]\nname = "scripted"\nendpoint = "http://127.0.0.1:9/v1"\n')
        client.answer = SEND
        assert "scripted could not help: " in await ended(client, "optimize", SHORT)
        settings.write_text('[model]\nname = "scripted"\nendpoint = "nonsense"\n')
        client.messages.clear()
        assert "no idea of the catalogue applies" in await ended(client, "optimize", SHORT)
        assert ["no language model is asked" in one for one in client.messages] == [True, False]

    assert session(tmp_path, scenario, helpful()) == []


def test_the_caps_of_the_project_hold(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        client.answer = SEND
        result = await ended(client, "optimize", SHORT)
        assert "no idea of the catalogue applies" in result and "scripted" not in result, "it went as the user wanted"
        assert "Caps for this search: 200,000 tokens, 1 requests" in questions(client)[0].message

    assert len(session(tmp_path, scenario, helpful(), "max-requests = 1\n")) == 1


def test_cancel_ends_the_request_and_the_key_is_in_no_worker_s_environment(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        client.answer = SEND
        job = await client.command("optimize", await client.kernel("add"), SHORT)
        await client.until(lambda: "asking scripted for ideas" in stages(client) and bool(asked), 120)
        commands = {pid: told_to(pid, "cmdline") for pid in descendants(client.pid)}
        assert any(b"cuda_lsp.worker" in command for command in commands.values())
        # a process that has only just been forked is still the server by all accounts
        begun = [pid for pid, command in commands.items() if command != told_to(client.pid, "cmdline")]
        assert not any(SECRET.encode() in told_to(pid, "environ") + commands[pid] for pid in begun)
        params = types.WorkDoneProgressCancelParams(f"cuda-lsp/{job}")
        client.client.window_work_done_progress_cancel(params)
        await client.until(lambda: client.kinds(f"cuda-lsp/{job}")[-1:] == ["end"])
        assert await asyncio.to_thread(dropped.wait, 20), "the connection is closed"
        assert client.messages == [], "a user who cancels needs no message"

    asked: list[bool] = []
    quiet, dropped = silent(60.0), threading.Event()

    def turn(handler: Any) -> None:
        nonlocal dropped
        dropped = handler.endpoint.dropped
        asked.append(True)
        quiet(handler)

    trace, log = tmp_path / "server.trace", tmp_path / "server.log"
    session(tmp_path, scenario, turn, server=TRACED.format(str(trace), str(log)))
    assert trace.stat().st_size > 1000 and log.exists()
    assert [file for file in tmp_path.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()] == []


def test_cancel_while_the_question_is_open_and_an_answer_that_comes_too_late(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        kernel = await client.kernel("add")
        client.answer = "..."
        job = await client.command("optimize", kernel)
        await client.until(lambda: bool(questions(client)))
        assert await client.shows("optimize: waiting (cancel)")
        assert await client.command("suggestIdeas", kernel) is None, "one job a kernel"
        assert await client.command("cancel", kernel) is True
        await client.until(lambda: client.kinds(f"cuda-lsp/{job}")[-1:] == ["end"])
        client.answer = SEND
        await asyncio.sleep(0.3)
        assert await client.shows("Optimize")

    assert session(tmp_path, scenario, helpful()) == []


def test_edits_and_another_name_while_the_question_is_open(tmp_path: Path) -> None:
    """The job is about the text as it was; what it finds belongs to that kernel, wherever it is by now."""

    async def scenario(client: Connected) -> None:
        client.answer = "..."
        await client.command("optimize", await client.kernel("add"), SHORT)
        await client.until(lambda: bool(questions(client)))
        client.editor.type(0, 0, "// \U0001f680 above\n")
        client.editor.replace("a[j] + 1.0f", "a[j] + 2.0f")
        client.editor.close()
        old, new = client.editor.uri, client.editor.uri.replace("add.cu", "sum.cu")
        client.client.workspace_did_rename_files(types.RenameFilesParams([types.FileRename(old, new)]))
        client.editor.uri, client.editor.version = new, 1
        client.editor.open()
        edited = client.editor.text
        client.answer = SEND
        await client.until(lambda: any("right (emulated" in one for one in said(client)), 120)
        client.answer = ""
        review = await client.command("review", await client.kernel("add"))
        assert review["state"] == "outdated" and await client.command("accept", review["id"]) is False
        client.editor.replace("a[j] + 2.0f", "a[j] + 1.0f")
        assert client.editor.text != edited
        assert await client.command("accept", review["id"]) is True
        assert client.editor.text.startswith("// \U0001f680 above\n") and GOOD in client.editor.text

    told = session(tmp_path, scenario, helpful())
    assert "a[j] + 1.0f" in told[0] and "a[j] + 2.0f" not in "".join(told)


def test_an_answer_taken_back_ends_what_is_being_asked(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        client.answer = ALWAYS
        job = await client.command("suggestIdeas", await client.kernel("add"))
        await client.until(lambda: "asking scripted for ideas" in stages(client), 120)
        assert await client.command("forgetConsent") is True
        await client.until(lambda: client.kinds(f"cuda-lsp/{job}")[-1:] == ["end"])
        assert client.progress[-1][1]["message"] == "cancelled"

    session(tmp_path, scenario, silent(60.0))


def told_to(pid: int, what: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:
        return b""
