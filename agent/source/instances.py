"""Which instance of a template kernel is meant where its name stands without arguments: the file's launches say."""

import re
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen
from tree_sitter import Node

from agent.source.document import Document
from agent.source.errors import SliceError
from agent.source.kernel import Kernel, Parameter, TemplateParameter
from agent.source.kernels import parameters_of, template_parameters
from agent.source.launch import LaunchSite
from agent.source.launches import function_name
from agent.source.names import names_in
from agent.source.nodes import captured, declared_name, descendants, enclosing, node_text
from agent.source.span import Span

_BUILTIN = frozenset(
    {"dim3", "size_t", "half", "half2", "__half", "__half2", "__nv_bfloat16", "__nv_bfloat162", "uint"}
)
_VECTOR = re.compile(r"u?(?:char|short|int|long|longlong|float|double)[1-4]\Z|u?int\d+_t\Z")
_NUMBER = re.compile(r"[\w.\s+*/()<>-]+\Z")
_CALLS = "(call_expression function: [(template_function) (identifier)]) @call"
_DECLARING = ("declaration", "parameter_declaration", "optional_parameter_declaration")
_CONSTRUCTED = re.compile(r"((?:\w+\s*::\s*)*(\w+)\s*(?:<[\w\s:,<>*]*>)?)\s*[({]")  # ``Add(1)``, ``ops::Add<float>{}``
_QUALIFIED = re.compile(r"\w+(?:\s*::\s*\w+)+")
_DEPTH = 3


def name_expression(document: Document, home: Document, kernel: Kernel, given: frozenset[str]) -> str:
    """NVRTC's name expression for ``kernel`` (of ``home``), its arguments those of the first launch that fixes them.

    ``given`` are the names that the translation unit defines. Raises SliceError where no launch fixes them all.
    """
    if not kernel.template or "<" in kernel.qualified_name:
        return kernel.qualified_name
    for source in (document, home) if home is not document else (document,):
        for site in source.launches:
            if site.kernel == kernel.name and (arguments := _arguments(source, site, kernel, given)) is not None:
                return f"{kernel.qualified_name}<{', '.join(arguments)}>"
    if all(parameter.default is not None for parameter in kernel.template):
        return f"{kernel.qualified_name}<>"
    wanted = ", ".join(parameter.name or parameter.kind for parameter in kernel.template)
    raise SliceError(
        f"{kernel.qualified_name} is a template over {wanted}, and no launch in this file fixes them; "
        f"name an instance, for example '{kernel.qualified_name}<{_example(kernel)}>'"
    )


def _example(kernel: Kernel) -> str:
    return ", ".join("float" if parameter.kind == "type" else "256" for parameter in kernel.template)


def _arguments(document: Document, site: LaunchSite, kernel: Kernel, given: frozenset[str]) -> list[str] | None:
    function = _function(document, site.function_span) if site.function_span else None
    for environment in _environments(document, function, given, 0) if function is not None else iter([{}]):
        scope = _Scope(document, function, environment, given)
        known = _instance(scope, kernel.template, kernel.parameters, site.template_arguments, site.arguments)
        if known is not None:
            return known
    return None


@frozen
class _Scope:
    """Where an argument stands: its function, and what that function's template parameters are."""

    document: Document
    function: Node | None
    environment: Mapping[str, str]
    given: frozenset[str]


def _instance(
    scope: _Scope,
    template: Sequence[TemplateParameter],
    parameters: Sequence[Parameter],
    written: Sequence[str],
    arguments: Sequence[str],
) -> list[str] | None:
    """The template arguments of a call: those written, then those that follow from the types of what is passed."""
    known: list[str] = []
    for place, parameter in enumerate(template):
        argument: str | None = written[place] if place < len(written) else None
        if argument is None and parameter.kind == "type":
            argument = _deduced(scope, parameters, arguments, parameter.name)
        if argument is None:
            return known if all(rest.default is not None for rest in template[place:]) else None
        resolved = _resolved(scope, argument)
        if resolved is None:
            return None
        known.append(resolved)
    return known


def _function(document: Document, span: Span) -> Node | None:
    node = document.tree.root_node.descendant_for_byte_range(span.start, span.end)
    return node if node is not None and node.type == "function_definition" else None


def _environments(document: Document, function: Node, given: frozenset[str], depth: int) -> Iterator[Mapping[str, str]]:
    """What the function's own template parameters stand for: one mapping for each call of it that fixes them."""
    outer = function.parent
    declarator = function.child_by_field_name("declarator")
    if outer is None or outer.type != "template_declaration" or declarator is None:
        yield {}
        return
    template = tuple(template_parameters(document.text, outer))
    parameters = tuple(parameters_of(document.text, declarator, document.blanks))
    name = function_name(document.text, function)
    for call in captured(_CALLS, document.tree.root_node) if depth < _DEPTH else ():
        called = call.child_by_field_name("function")
        own = called.child_by_field_name("name") if called and called.type == "template_function" else called
        caller = enclosing(call, "function_definition")
        if own is None or node_text(document, own) != name or caller is None or caller.id == function.id:
            continue
        written = _listed(document, called.child_by_field_name("arguments") if called else None)
        arguments = _listed(document, call.child_by_field_name("arguments"))
        for around in _environments(document, caller, given, depth + 1):
            known = _instance(_Scope(document, caller, around, given), template, parameters, written, arguments)
            if known is not None:
                yield {parameter.name: text for parameter, text in zip(template, known, strict=False)}


def _listed(document: Document, node: Node | None) -> list[str]:
    return [node_text(document, child) for child in node.named_children if child.type != "comment"] if node else []


def _resolved(scope: _Scope, argument: str) -> str | None:
    """The argument in names that hold at file level: template parameters and local constants become their values."""
    qualified = _qualified(scope, argument)
    for name in names_in(argument.encode()):
        if name in _BUILTIN or _VECTOR.match(name):
            continue
        value = scope.environment.get(name) or _local_constant(scope, name)
        if value is not None:
            argument = re.sub(rf"\b{re.escape(name)}\b", value.replace("\\", r"\\"), argument)
        elif name not in qualified and (name not in scope.given or _is_parameter(scope, name)):
            return None
    return argument


def _qualified(scope: _Scope, argument: str) -> frozenset[str]:
    """The parts of names such as ``ops::Square``, ``Policy::TILE`` of which one is known: a namespace is no item."""
    chains = [names_in(chain.encode()) for chain in _QUALIFIED.findall(argument)]
    known = {name for chain in chains for name in chain if name in scope.environment or name in scope.given}
    known = {name for name in known if name in scope.environment or not _is_parameter(scope, name)}
    return frozenset(name for chain in chains if chain & known for name in chain)


def _local_constant(scope: _Scope, name: str) -> str | None:
    if scope.function is None:
        return None
    written = node_text(scope.document, scope.function)
    found = re.search(rf"\bconst(?:expr)?\s+(?:\w+\s+){{1,2}}{re.escape(name)}\s*=\s*([^;,]+);", written)
    value = found.group(1).strip() if found else ""
    return f"({value})" if _NUMBER.match(value) and not names_in(value.encode()) else None


def _is_parameter(scope: _Scope, name: str) -> bool:
    outer = scope.function.parent if scope.function else None
    if outer is None or outer.type != "template_declaration":
        return False
    return any(parameter.name == name for parameter in template_parameters(scope.document.text, outer))


def _deduced(scope: _Scope, parameters: Sequence[Parameter], arguments: Sequence[str], name: str) -> str | None:
    """The type for ``T`` of a parameter ``T *x`` or ``T x``, from the declaration of the variable that is passed."""
    for parameter, argument in zip(parameters, arguments, strict=False):
        if parameter.element != name or scope.function is None:
            continue
        if (made := _CONSTRUCTED.match(argument)) and made.group(2) in scope.given:
            return made.group(1)
        outermost = enclosing(scope.function, "template_declaration") or scope.function
        for node in descendants(outermost, *_DECLARING):
            kind = node.child_by_field_name("type")
            for declarator in node.children_by_field_name("declarator"):
                declared = declared_name(declarator)
                if kind is not None and declared is not None and node_text(scope.document, declared) == argument:
                    written = node_text(scope.document, kind)
                    return None if written == "auto" else written
    return None
