"""PTX and machine code of a kernel, shown as a document by what the client can do."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.uris import to_fs_path

from agent.execution.sass import disassembler
from tests.server.connected import CAPABILITIES, REAL, Connected, connect
from tests.server.texts import SCALE


def session(folder: Path, scenario: Callable[[Connected], Awaitable[None]], **how: Any) -> None:
    async def run() -> None:
        async with connect(folder / "scale.cu", SCALE, folder / "state", server=REAL, **how) as client:
            await scenario(client)

    asyncio.run(run())


def test_as_a_file_where_the_client_shows_nothing_else(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        titles = [entry.title for entry in await client.actions("scale(")]
        assert {"Show the PTX of scale", "Show the machine code of scale"} <= set(titles)
        forms = ["ptx", "sass"] if disassembler() else ["ptx"]
        for number, form in enumerate(forms, 1):
            await client.command("showCode", await client.kernel("scale"), form)
            await client.until(lambda: len(client.shown) == number)  # noqa: B023
            path = to_fs_path(client.shown[-1])
            assert path is not None and path.endswith(f"scale.{form}")
            text = Path(path).read_text()
            assert text.startswith("// ") and " for sm_90" in text.splitlines()[0]
            assert "x[i]" in text and ("st.global.f32" if form == "ptx" else "STG.E") in text
        with pytest.raises(Exception, match="ptx"):
            await client.command("showCode", await client.kernel("scale"), "elf")

    session(tmp_path, scenario)


def test_as_a_document_of_the_servers_where_the_client_asks_for_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capable = types.WorkspaceClientCapabilities(
        apply_edit=True, text_document_content=types.TextDocumentContentClientCapabilities(dynamic_registration=True)
    )
    shows = types.WindowClientCapabilities(show_document=types.ShowDocumentClientCapabilities(support=True))
    announced = types.ClientCapabilities(workspace=capable, window=shows)
    monkeypatch.setitem(CAPABILITIES, "minimal", announced)

    async def scenario(client: Connected) -> None:
        async def text(uri: str) -> str:
            params = types.TextDocumentContentParams(uri)
            return (await client.client.workspace_text_document_content_async(params)).text

        await client.command("showCode", await client.kernel("scale"), "ptx")
        await client.until(lambda: bool(client.shown))
        assert client.shown[0].startswith("cuda-lsp-code:/") and client.shown[0].endswith("/scale.ptx")
        assert "st.global.f32" in await text(client.shown[0])
        assert "ask for it again" in await text("cuda-lsp-code:/0/scale.ptx")
        assert not (tmp_path / "state" / "cuda-lsp" / "code").exists()

    session(tmp_path, scenario, capabilities="minimal")


def test_what_does_not_compile_is_said(tmp_path: Path) -> None:
    async def scenario(client: Connected) -> None:
        client.editor.replace("float", "flout")
        await client.command("showCode", await client.kernel("scale"), "ptx")
        await client.until(lambda: bool(client.messages))
        assert "scale does not compile" in client.messages[0] and client.shown == []

    session(tmp_path, scenario)
