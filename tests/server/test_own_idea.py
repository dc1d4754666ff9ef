"""An idea in the user's own words: the words, the consent, and a model that turns it into code."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pygls.exceptions import JsonRpcException

from tests.models.endpoint import answer, serving
from tests.server.connected import REAL, Connected, connect
from tests.server.test_end_to_end import BODY, TEXT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="reads /proc")

GOOD = """\
__global__ void add(const float* a, float* c, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n && col < n) c[row * n + col] = a[row * n + col] + 1.0f;
}"""
SECRET = "sk-very-secret-0123456789"


def written(code: str) -> str:
    return json.dumps({"code": code, "plan": [], "rationale": "neighbouring threads read neighbours"})


def session(
    folder: Path, scenario: Callable[[Connected], Awaitable[None]], endpoint: str = "", capabilities: str = "vscode"
) -> None:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    (work / "add.cu").write_text(TEXT)
    if endpoint:
        (work / ".cuda-lsp.toml").write_text(f'[model]\nname = "scripted"\nendpoint = "{endpoint}"\n')

    async def run() -> None:
        how: dict[str, Any] = {"server": REAL, "CUDA_LSP_API_KEY": SECRET}
        async with connect(work / "add.cu", TEXT, folder / "state", capabilities, **how) as client:
            await scenario(client)

    asyncio.run(run())


def test_without_a_model_it_is_said_what_is_missing_and_what_needs_none(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        job = await client.command("tryIdea", await client.kernel("add"), "swap the indices")
        await client.until(lambda: bool(client.messages) and client.kinds(f"cuda-lsp/{job}")[-1:] == ["end"])
        assert "needs a language model" in client.messages[0] and "[model] in .cuda-lsp.toml" in client.messages[0]
        assert "Suggest ideas lists those that apply" in client.messages[0]
        for wrong in ({"idea": "x" * 5000}, {"idea": 3}, 3):
            with pytest.raises(JsonRpcException):
                await client.command("tryIdea", await client.kernel("add"), wrong)

    session(tmp_path, scenario)


def test_the_words_are_asked_for_where_the_client_can(tmp_path: Path) -> None:
    async def typed(client: Connected) -> None:
        await client.command("tryIdea", await client.kernel("add"))
        await asyncio.sleep(0.3)
        assert client.messages == [], "the user typed nothing"
        client.text = "swap the indices"
        assert await client.command("tryIdea", await client.kernel("add")) is None, "the words are not there yet"
        await client.until(lambda: bool(client.messages))
        assert "needs a language model" in client.messages[0]

    async def cannot(client: Connected) -> None:
        await client.command("tryIdea", await client.kernel("add"))
        await client.until(lambda: bool(client.messages))
        assert "this editor cannot ask for a text: send the command cuda-lsp.tryIdea" in client.messages[0]

    session(tmp_path, typed)
    session(tmp_path, cannot, capabilities="neovim")


def test_the_user_agrees_and_the_idea_is_judged_like_any_other(tmp_path: Path) -> None:
    with serving(answer(written(GOOD))) as endpoint:

        async def scenario(client: Connected) -> None:
            kernel = await client.kernel("add")
            client.answer = "none of these"
            assert await client.command("tryIdea", kernel, "swap the indices") == "job-1"
            await client.until(lambda: bool(client.messages))
            assert "nothing was sent" in client.messages[0] and endpoint.requests == []
            assert "the device code of add: " in client.asked[0].message
            assert "Your key from CUDA_LSP_API_KEY goes to this endpoint alone" in client.asked[0].message
            client.answer = "Always in this project"
            await client.command("tryIdea", kernel, "swap the indices")
            await client.until(lambda: len(client.asked) == 3, 120)
            assert "swap the indices (your idea, code from scripted): right (emulated" in client.asked[2].message, (
                client.messages
            )
            assert "swap the indices" in endpoint.said(0) and "int main" not in endpoint.said(0)
            assert endpoint.headers[0]["authorization"] == f"Bearer {SECRET}"
            review = await client.command("review", kernel)
            assert "blockIdx.y * blockDim.y + threadIdx.y, col" in review["proposed"]
            assert BODY in client.editor.text
            # it was allowed for good: the job's id comes at once
            assert await client.command("tryIdea", kernel, "do it again") == "job-3"
            await client.until(lambda: client.kinds("cuda-lsp/job-3")[-1:] == ["end"], 120)
            assert len([one for one in client.asked if "It would be sent" in one.message]) == 2

        session(tmp_path, scenario, endpoint.url)


def test_an_idea_that_comes_to_nothing_says_why(tmp_path: Path) -> None:
    with serving(answer(written(GOOD.replace("a[row * n + col] + 1.0f", "a[row * n + col] + 2.0f")))) as endpoint:

        async def scenario(client: Connected) -> None:
            client.answer = "Send"
            await client.command("tryIdea", await client.kernel("add"), "add two instead")
            await client.until(lambda: bool(client.messages), 120)
            assert "your idea came to nothing: wrong" in client.messages[0]
            assert client.editor.text == TEXT and SECRET not in str(client.messages)

        session(tmp_path, scenario, endpoint.url)


def test_a_client_that_cannot_be_asked_is_told_where_to_agree(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        assert await client.command("tryIdea", await client.kernel("add"), "swap the indices")
        await client.until(lambda: bool(client.messages))
        assert "Nothing was sent: this editor cannot ask" in client.messages[0]

    session(tmp_path, scenario, "http://127.0.0.1:9/v1", "minimal")
