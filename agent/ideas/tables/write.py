"""The table in shared memory: filled by one thread at the kernel's beginning, read by all of the block."""

from tree_sitter import Node

from agent.analysis.syntax import descendants, text
from agent.ideas.reduction.write import styled
from agent.ideas.rewriting import (
    Rewrite,
    fresh_local,
    fresh_name,
    indent_of,
    indent_unit,
    remove,
    remove_between,
    replace,
    source_text,
)
from agent.ideas.tables.site import Table
from agent.ideas.view import View
from agent.source.edits import Edit, apply_edits
from agent.source.span import Span


def once_a_block(view: View, found: Table) -> Rewrite:
    """The kernel fills the table once; a device function that made it gets a twin that is handed it."""
    name = found.array.name
    if not found.calls:
        removed = remove_between(view.document, found.run[0], found.run[-1])
        filled = _filled(view, found, name)
        if removed.span.start <= filled.span.start:  # the table is the first that the kernel has
            lead = view.document.text[removed.span.start : filled.span.start]
            put = lead + filled.text
            return Rewrite((Edit(removed.span, put.rstrip(b" \t") if lead else put),))
        return Rewrite((filled, removed))
    taken = fresh_local(name, view.document, view.kernel)
    twin = fresh_name(styled(f"{_called(found.calls[0])}_with_{name}", view), view.document)
    calls = [edit for call in found.calls for edit in _handed(call, twin, taken)]
    return Rewrite((_filled(view, found, taken), *calls), kernels=(_twin(view, found, twin),))


def _called(call: Node) -> str:
    return text(call.child_by_field_name("function"))


def _handed(call: Node, twin: str, name: str) -> list[Edit]:
    function, given = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    assert function is not None and given is not None
    at = given.start_byte + 1
    return [
        replace(function, twin),
        Edit(Span(at, at), f"{name}, ".encode() if given.named_children else name.encode()),
    ]


def _filled(view: View, found: Table, name: str) -> Edit:
    """The declaration and the filling, before the kernel's first statement."""
    first = view.facts.body.named_children[0]
    indent, unit = indent_of(view.document, first), indent_unit(view.document, view.kernel)
    axes = [axis for axis, extent in zip("xyz", view.block, strict=True) if extent != 1] or ["x"]
    alone = " && ".join(f"threadIdx.{axis} == 0" for axis in axes)
    dims = "".join(f"[{source_text(view.document, dim)}]" for dim in found.array.dims if dim is not None)
    lines = [
        f"// {name} is the same for all threads: one of them fills it for the block.",
        f"__shared__ {found.array.type} {name}{dims};",
        f"if ({alone}) {{",
        *(unit + line if line.strip() else "" for line in _filling(view, found, name)),
        "}",
        "__syncthreads();",
    ]
    return Edit(Span(first.start_byte, first.start_byte), (("\n" + indent).join(lines) + "\n\n" + indent).encode())


def _filling(view: View, found: Table, name: str) -> list[str]:
    """The lines without the declaration and without their indentation."""
    others = [one for one in found.run if one != found.declared]
    start, end = others[0].start_byte, others[-1].end_byte
    edits = [
        Edit(Span(one.start_byte - start, one.end_byte - start), name.encode())
        for part in others
        for one in descendants(part, "identifier")
        if name != found.array.name and text(one) == found.array.name
    ]
    if start < found.declared.start_byte:
        gone = remove(view.document, found.declared)
        edits.append(Edit(Span(gone.span.start - start, gone.span.end - start), gone.text))
    written = apply_edits(view.document.text[start:end], edits).decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    base = indent_of(view.document, others[0])
    first, *further = written.split("\n")
    return [first, *(line.removeprefix(base) for line in further)]


def _twin(view: View, found: Table, twin: str) -> str:
    """The device function with the table as a first parameter and without the statements that make it."""
    document, function = view.document, found.function
    start = function.start_byte
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    assert declarator is not None
    called, listing = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("parameters")
    assert called is not None and listing is not None
    inner = "".join(f"[{source_text(document, dim)}]" for dim in found.array.dims[1:] if dim is not None)
    name = found.array.name
    parameter = f"const {found.array.type} (*{name}){inner}" if inner else f"const {found.array.type}* {name}"
    at = listing.start_byte + 1
    edits = [
        *(_without(document.text, child) for child in function.children if text(child) == "__host__"),
        replace(called, twin),
        Edit(Span(at, at), f"{parameter}, ".encode() if listing.named_children else parameter.encode()),
        remove_between(document, found.run[0], found.run[-1]),
    ]
    moved = [Edit(Span(edit.span.start - start, edit.span.end - start), edit.text) for edit in edits]
    body = apply_edits(document.text[start : function.end_byte], moved).decode("utf-8", "surrogateescape")
    plain = body.replace("\r\n", "\n").replace("{\n\n", "{\n", 1)  # the blank line behind what is gone
    return f"// {_called(found.calls[0])}() with a {name} that is filled already.\n{plain}"


def _without(source: bytes, specifier: Node) -> Edit:
    end = specifier.end_byte
    while source[end : end + 1].isspace():
        end += 1
    return Edit(Span(specifier.start_byte, end), b"")
