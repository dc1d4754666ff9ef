"""Which kernels, device functions, device variables, launching macros and other functions a file has."""

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from agent.source.blanking import blanks_in
from agent.source.document import Document
from agent.source.index.facts import DEVICE, HOST, KERNEL, MACRO, SYMBOL, Definition
from agent.source.items import DEVICE as ON_DEVICE
from agent.source.items import known_device
from agent.source.kernel import Kernel
from agent.source.lexing import Directive
from agent.source.nodes import captured, declared_name, field, span_of, text_of
from agent.source.span import Span

_FOUND = """[
  (namespace_definition) (class_specifier) (struct_specifier) (template_declaration) (linkage_specification)
  (function_definition)
  (declaration ["__global__" "__device__"])
  (declaration (type_qualifier ["__constant__" "__managed__"]))
  (field_declaration ["__global__" "__device__"])
] @found"""
_SCOPES = frozenset({"namespace_definition", "class_specifier", "struct_specifier"})
_HEADERS = frozenset({"template_declaration", "linkage_specification"})
_GLOBAL = re.compile(rb"\b__global__\b")
_LONGEST_HEAD = 200
_LONGEST_SPECIFIERS = 300
_DEFINE = re.compile(rb"#\s*define\s+([A-Za-z_]\w*)")
_LAUNCHES = re.compile(rb"<<<|<\s*<<|<<\s*<|\bcu\w*Launch\w*")


def definitions_of(document: Document, code: bytes, directives: Sequence[Directive]) -> tuple[Definition, ...]:
    """In text order, outer ones first. What stands inside a function (a lambda, a class) belongs to it. ``code`` and
    ``directives`` as ``lexing.scan`` has them."""
    kernels = document.kernels
    known = {kernel.name_span for kernel in kernels}
    found = [_of_kernel(document, kernel) for kernel in kernels]
    found += (other for other in _in_tree(document, code) if other.span not in known)
    found += (macro for directive in directives if (macro := _macro(directive)) is not None)
    return tuple(sorted(found, key=lambda one: (one.extent.start, -one.extent.end)))


def _of_kernel(document: Document, kernel: Kernel) -> Definition:
    head = _one_line(document.text[kernel.signature.start : kernel.signature.end])
    return Definition(kernel.name, kernel.qualified_name, KERNEL, kernel.name_span, kernel.span, head)


def _macro(directive: Directive) -> Definition | None:
    """A macro with a launch in it."""
    named = _DEFINE.match(directive.text)
    if named is None or not _LAUNCHES.search(directive.text, named.end()):
        return None
    at = directive.span.start
    name = named.group(1).decode()
    span = Span(at + named.start(1), at + named.end(1))
    return Definition(name, name, MACRO, span, directive.span, _one_line(directive.text))


def _in_tree(document: Document, code: bytes) -> Iterator[Definition]:
    """Read off in one pass: asking a node for its parent walks down from the root."""
    text = document.text
    around: list[Node] = []
    inside = -1
    for node in captured(_FOUND, document.tree.root_node):
        while around and around[-1].end_byte <= node.start_byte:
            around.pop()
        if node.start_byte < inside:
            continue
        if node.type in _SCOPES or node.type in _HEADERS:
            around.append(node)
        elif node.type == "function_definition":
            if (body := node.child_by_field_name("body")) is not None and body.type == "compound_statement":
                inside = node.end_byte
                yield from _function(document, code, node, body, around)
        else:
            yield from _declared(text, node, around)


def _function(document: Document, code: bytes, node: Node, body: Node, around: Sequence[Node]) -> Iterator[Definition]:
    name = _name(node.child_by_field_name("declarator"))
    if name is None:
        return
    text, extent = document.text, Span(_outermost(node, around).start_byte, node.end_byte)
    start = _behind_the_last(code, extent.start)
    head = code[start : body.start_byte]
    hidden = " ".join(blank.expansion for blank in blanks_in(document.blanks, start, body.start_byte))
    kind = HOST
    if _GLOBAL.search(head):
        kind = KERNEL
    elif "__device__" in hidden or ON_DEVICE.search(head) or known_device(head):
        kind = DEVICE
    yield _definition(text, name, kind, extent, _one_line(text[extent.start : body.start_byte]), around)


def _behind_the_last(code: bytes, at: int) -> int:
    """Where a definition may begin that the parser lets begin at an offset: behind what ended last. A macro between the
    specifiers and the name is taken for a declaration of its own."""
    floor = max(0, at - _LONGEST_SPECIFIERS)
    return max(floor, *(code.rfind(end, floor, at) + 1 for end in (b";", b"}", b"{")))


def _declared(text: bytes, node: Node, around: Sequence[Node]) -> Iterator[Definition]:
    """Prototypes, and variables on the device."""
    extent = Span(_outermost(node, around).start_byte, node.end_byte)
    head = text[extent.start : extent.end]
    for declarator in node.children_by_field_name("declarator"):
        is_function = _holds_function(declarator)
        name = _name(declarator) if is_function else declared_name(declarator)
        if name is None:
            continue
        kind = KERNEL if _GLOBAL.search(head) else DEVICE if is_function else SYMBOL
        if kind == KERNEL and not is_function:
            continue  # the beginning of a kernel that the parser cut in two
        whole = kind == SYMBOL and not head.lstrip().startswith(b"extern")
        yield _definition(text, name, kind, extent, _one_line(head), around, whole)


def _definition(
    text: bytes, name: Node, kind: str, extent: Span, head: str, around: Sequence[Node], whole: bool = True
) -> Definition:
    bare = name
    while bare.type in ("qualified_identifier", "template_function"):
        inner = bare.child_by_field_name("name")
        if inner is None:
            break
        bare = inner
    named = (field(scope, "name") for scope in around if scope.type in _SCOPES)
    scopes = ["".join(text_of(text, scope).split()) for scope in named if scope is not None]
    qualified = "::".join([*scopes, "".join(text_of(text, name).split())])
    return Definition(text_of(text, bare), qualified, kind, span_of(bare), extent, head, whole)


def _outermost(node: Node, around: Sequence[Node]) -> Node:
    """The definition with its template header and ``extern "C"``."""
    outer = node
    for above in reversed(around):
        if above.type not in _HEADERS or above.end_byte != node.end_byte:
            break
        outer = above
    return outer


def _holds_function(declarator: Node | None) -> bool:
    while declarator is not None and declarator.type in ("pointer_declarator", "reference_declarator"):
        declarator = declarator.child_by_field_name("declarator") or next(iter(declarator.named_children), None)
    return declarator is not None and declarator.type == "function_declarator"


def _name(declarator: Node | None) -> Node | None:
    """The name of a function, with what qualifies it."""
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator") or next(
            (child for child in declarator.named_children if child.type == "function_declarator"), None
        )
    return declarator.child_by_field_name("declarator") if declarator is not None else None


def _one_line(head: bytes) -> str:
    line = " ".join(head[: 4 * _LONGEST_HEAD].decode("utf-8", "replace").split())
    return line if len(line) <= _LONGEST_HEAD else line[: _LONGEST_HEAD - 3] + "..."
