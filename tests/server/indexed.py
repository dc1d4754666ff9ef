"""A small workspace on disk, and a client that asks about the names in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.server.wire import VSCODE, Wire, at, until

HEADER = """\
#pragma once
/* 🚀 größe */ template <typename T> __global__ void scale(T* x, T größe);
extern __constant__ float weights[16];
"""
KERNELS = """\
#include "kernels.cuh"
__constant__ float weights[16];
/* é🚀 */ __device__ float twice(float x) { return 2 * x; }
template <typename T> __global__ void scale(T* x, T größe) { x[0] = twice(größe) * weights[0]; }
"""
MAIN = """\
#include "kernels.cuh"
int main() {
    float* x;
    cudaMemcpyToSymbol(weights, x, 64);
    /* é🚀 */ scale<float><<<1, 32>>>(x, 2.0f);
}
"""
SIZE = {"utf-8": lambda text: len(text.encode()), "utf-16": lambda text: len(text.encode("utf-16-le")) // 2}


class Workspace:
    """Files on disk, and a client that has opened one of them."""

    def __init__(self, folder: Path, client: Wire, encoding: str = "utf-16") -> None:
        self.folder, self.client, self.encoding = folder, client, encoding

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def ask(self, method: str, name: str, piece: str, text: str = "", **more: Any) -> Any:
        """At ``|`` in a piece of a file's text."""
        text = text or (self.folder / name).read_text()
        position = at(text.replace(piece.replace("|", ""), piece), "|", self.encoding)
        return self.client.about(f"textDocument/{method}", self.uri(name), position=position, **more) or []

    def definition(self, name: str, piece: str, text: str = "") -> list[str]:
        return [self.shown(one) for one in self.ask("definition", name, piece, text)]

    def references(self, name: str, piece: str, text: str = "", declarations: bool = False) -> list[str]:
        context = {"includeDeclaration": declarations}
        return [self.shown(one) for one in self.ask("references", name, piece, text, context=context)]

    def symbols(self, query: str) -> list[str]:
        found = self.client.request("workspace/symbol", {"query": query}) or []
        return [f"{one['name']} {self.shown(one['location'])}" for one in found]

    def shown(self, location: dict[str, Any], ranges: str = "range") -> str:
        """``file:line:column text``, the line from 1: what the client finds at the range in the file."""
        name = location["uri"].rpartition("/")[2]
        start, end = location[ranges]["start"], location[ranges]["end"]
        path = next(self.folder.rglob(name), None)
        line = path.read_text().splitlines()[start["line"]] if path else ""
        columns = [next(n for n in range(len(line) + 1) if SIZE[self.encoding](line[:n]) >= one["character"])
                   for one in (start, end)] if line else [0, 0]  # fmt: skip
        return f"{name}:{start['line'] + 1} {line[columns[0] : columns[1]]}"

    def eventually(self, found: Callable[[], Any], expected: Any) -> None:
        seen = None

        def same() -> bool:
            nonlocal seen
            seen = found()
            return bool(seen == expected)

        try:
            until(same, 60)
        except AssertionError:
            assert seen == expected


def start(client: Wire, folder: Path, capabilities: dict[str, Any] = VSCODE, **more: Any) -> Workspace:
    """With the file ``main.cu`` open, where there is one."""
    told = client.initialize(capabilities, **{"workspaceFolders": [{"uri": folder.as_uri(), "name": "w"}], **more})
    for name in ("definition", "references", "workspaceSymbol", "callHierarchy"):
        assert told[f"{name}Provider"], told
    if (folder / "main.cu").exists():
        client.open((folder / "main.cu").as_uri(), (folder / "main.cu").read_text())
    return Workspace(folder, client, told.get("positionEncoding", "utf-16"))
