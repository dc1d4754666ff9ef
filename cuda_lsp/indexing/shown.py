"""Questions from a client's requests, and answers as it takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lsprotocol import types

from cuda_lsp.indexing.messages import Answer, Item, Place, Question, Range

if TYPE_CHECKING:
    from cuda_lsp.server import CudaServer

T = TypeVar("T")
Positioned = types.DefinitionParams | types.ReferenceParams | types.CallHierarchyPrepareParams


def asked_at(
    server: CudaServer, kind: str, params: Positioned, show: Callable[[Item], T], **more: Any
) -> asyncio.Future[list[T] | None]:
    """What is to be said about the name at a position. Nothing where the document is none of ours."""
    snapshot = server.session.snapshot(params.text_document.uri)
    if snapshot is None:
        return _now(None)
    key, position = snapshot.path or snapshot.uri, params.position
    encoding = server.session.client.encoding
    return asked(server, Question(kind, encoding, key, position.line, position.character, **more), show)


def asked(server: CudaServer, question: Question, show: Callable[[Item], T]) -> asyncio.Future[list[T] | None]:
    answer = server.index.ask(question, server.session.snapshots())
    return asyncio.ensure_future(_shown(answer, show))


async def _shown(answer: asyncio.Future[Answer], show: Callable[[Item], T]) -> list[T] | None:
    items = (await answer).items
    return [show(item) for item in items] or None


def _now(value: None) -> asyncio.Future[Any]:
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    done.set_result(value)
    return done


def location(item: Item) -> types.Location:
    return types.Location(uri_of(item), range_of(item.range))


def uri_of(item: Item) -> str:
    return item.uri or Path(item.key).as_uri()


def range_of(range_: Range) -> types.Range:
    start = types.Position(range_.line, range_.character)
    return types.Range(start, types.Position(range_.end_line, range_.end_character))


def symbol(item: Item) -> types.SymbolInformation:
    return types.SymbolInformation(
        name=item.name,
        kind=types.SymbolKind.Variable if item.variable else types.SymbolKind.Function,
        location=location(item),
        container_name=item.qualified.rpartition("::")[0] or None,
    )


def callee(item: Item) -> types.CallHierarchyItem:
    return types.CallHierarchyItem(
        name=item.qualified or item.name,
        kind=types.SymbolKind.Function,
        uri=uri_of(item),
        range=range_of(item.extent or item.range),
        selection_range=range_of(item.range),
        detail=item.head,
        data={"key": item.key, "name": item.name, "kind": item.kind, "line": item.range.line},
    )


def place_of(item: types.CallHierarchyItem) -> Place | None:
    """What :func:`callee` put into an item; None where that is not what came back."""
    data = item.data
    if not isinstance(data, Mapping):
        return None
    known = [data.get(name) for name in ("key", "name", "kind", "line")]
    key, name, kind, line = known
    if isinstance(key, str) and isinstance(name, str) and isinstance(kind, str) and isinstance(line, int):
        return Place(key, name, kind, line)
    return None
