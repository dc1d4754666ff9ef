"""The type for ``T`` of a kernel's parameter ``T *x`` or ``T x``, from what a call passes for it."""

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from agent.source.document import Document
from agent.source.kernel import Parameter
from agent.source.nodes import declared_name, descendants, enclosing, node_text
from agent.source.resolving import Scope

_DECLARING = ("declaration", "parameter_declaration", "optional_parameter_declaration", "field_declaration")
_CONSTRUCTED = re.compile(r"((?:\w+\s*::\s*)*(\w+)\s*(?:<[\w\s:,<>*]*>)?)\s*[({]")  # ``Add(1)``, ``ops::Add<float>{}``
_CAST = re.compile(
    r"\(\s*((?:const\s+)?[A-Za-z_][\w:<>, ]*?)(?:\s+const)?\s*\*+\s*\)|"
    r"(?:reinterpret|static|const)_cast\s*<\s*((?:const\s+)?[\w:<>, ]+?)(?:\s+const)?\s*\*+\s*>\s*\("
)
_MEMBER = re.compile(r"\.\s*(?:template\s+)?(?:data_ptr|mutable_data_ptr|const_data_ptr|data)\s*<\s*([\w:]+)\s*>\s*\(")
_BASE = re.compile(
    r"&?\s*(?:thrust\s*::\s*raw_pointer_cast\s*\(\s*&?\s*([A-Za-z_]\w*)|([A-Za-z_]\w*)(?!\s*(?:\.|\(|->|::|\w)))"
)
_NUMBERS = (
    (re.compile(r"-?\d+"), "int"),
    (re.compile(r"-?\d+[uU]"), "unsigned int"),
    (re.compile(r"-?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]"), "float"),
    (re.compile(r"-?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?"), "double"),
)
_CONTAINER = re.compile(r"\w*(?:vector|Vector|array|ptr|buffer|Buffer)\s*<\s*([\w:]+)\s*[,>]")
_QUALIFIERS = re.compile(r"\b(?:const|volatile|static|constexpr)\b")


def deduced(scope: Scope, parameters: Sequence[Parameter], arguments: Sequence[str], name: str) -> str | None:
    """The type, as it is written where the passed variable is declared; None where it cannot be told."""
    for parameter, argument in zip(parameters, arguments, strict=False):
        if parameter.element == name and (found := _type_of(scope, argument.strip())) is not None:
            return found
    return None


def _type_of(scope: Scope, argument: str) -> str | None:
    """The type of what is passed, or of what it points to."""
    cast = _CAST.match(argument) or _MEMBER.search(argument)
    if cast is not None:
        return _plain(next(filter(None, cast.groups())))
    for pattern, kind in _NUMBERS:
        if pattern.fullmatch(argument):
            return kind
    made = _CONSTRUCTED.match(argument)
    if made is not None and made.group(2) in scope.given:
        return made.group(1)
    base = _BASE.match(argument)
    return _declared(scope, base.group(1) or base.group(2)) if base is not None else None


def _declared(scope: Scope, name: str) -> str | None:
    """The type with which the nearest variable by that name is declared."""
    for document, declarations in _places(scope):
        found = None
        for declaration in declarations:
            kind = declaration.child_by_field_name("type")
            for declarator in declaration.children_by_field_name("declarator"):
                declared = declared_name(declarator)
                if kind is not None and declared is not None and node_text(document, declared) == name:
                    found = node_text(document, kind)
        if found is not None:
            element = _CONTAINER.search(found)
            return None if found == "auto" else _plain(element.group(1) if element else found)
    return None


def _places(scope: Scope) -> Iterator[tuple[Document, Iterator[Node]]]:
    """The declarations in a macro's expansion, in the function and at file level."""
    if scope.expanded is not None:
        yield scope.expanded, descendants(scope.expanded.tree.root_node, *_DECLARING)
    if scope.function is not None:
        outer = enclosing(scope.function, "template_declaration") or scope.function
        yield scope.document, descendants(outer, *_DECLARING)
    yield scope.document, (node for node in scope.document.tree.root_node.children if node.type == "declaration")


def _plain(written: str) -> str:
    return " ".join(_QUALIFIERS.sub(" ", written).split())
