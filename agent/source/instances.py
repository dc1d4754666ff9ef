"""Which instances of a template kernel are meant where its name stands without arguments: what names it says.

A launch, a pointer to it, an explicit instantiation: each place gives template arguments as they are written there.
Names that hold only there (template parameters of the function around, local constants and aliases) are replaced by
what they stand for, by every call of that function that fixes them. Where nothing fixes one, something may be put in.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen
from tree_sitter import Node

from agent.source.deducing import deduced
from agent.source.document import Document
from agent.source.errors import SliceError
from agent.source.expansion import expansions, function_macros
from agent.source.kernel import Kernel, Parameter, TemplateParameter
from agent.source.kernels import parameters_of, template_parameters
from agent.source.launches import function_name
from agent.source.nodes import captured, enclosing, node_text, span_of
from agent.source.resolving import Scope, Value, resolved, stand_in

_NAMED = "(template_function) @named"
_CALLS = "(call_expression function: [(template_function) (identifier)]) @call"
_DEPTH = 3
_MOST = 16


@frozen
class Instance:
    """``arguments`` as they hold at file level. ``assumed`` says which stand for something that nothing in sight fixes
    (``T = float``)."""

    arguments: tuple[str, ...]
    assumed: tuple[str, ...] = ()


@frozen
class _Mention:
    """A place that names the kernel: the template arguments written there, and the arguments of a call of it."""

    scope: Scope
    written: tuple[str, ...]
    passed: tuple[str, ...]


def expressions(
    documents: Sequence[Document], kernel: Kernel, given: Mapping[str, str], stand_ins: str = ""
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """NVRTC's name expressions for ``kernel``, one for each instance that ``documents`` name, in the order in which
    they do (at most 16), and what is assumed in each.

    ``given`` are the names of the translation unit, each as file level has it. With ``stand_ins`` (a type) what
    nothing fixes is assumed, in one instance, where there are no others. Raises SliceError where there is none at all.
    """
    if not kernel.template or "<" in kernel.qualified_name:
        return ((kernel.qualified_name, ()),)
    found: dict[tuple[str, ...], Instance] = {}
    for instance in _instances(documents, kernel, given, stand_ins):
        if instance.arguments not in found or not instance.assumed:
            found[instance.arguments] = instance
    certain = [instance for instance in found.values() if not instance.assumed]
    if not certain and all(parameter.default is not None for parameter in kernel.template):
        certain = [Instance(())]
    if not certain and not found and stand_ins:
        certain = [made] if (made := _stood_in(kernel, given, stand_ins)) is not None else []
    chosen = certain or list(found.values())[:1]
    if chosen:
        return tuple((f"{kernel.qualified_name}<{', '.join(one.arguments)}>", one.assumed) for one in chosen[:_MOST])
    wanted = ", ".join(parameter.name or parameter.kind for parameter in kernel.template)
    raise SliceError(
        f"{kernel.qualified_name} is a template over {wanted}, and no launch in this file fixes them; "
        f"name an instance, for example '{kernel.qualified_name}<{_example(kernel)}>'"
    )


def _example(kernel: Kernel) -> str:
    return ", ".join("float" if parameter.kind == "type" else "256" for parameter in kernel.template)


def _stood_in(kernel: Kernel, given: Mapping[str, str], stand_ins: str) -> Instance | None:
    """An instance of a kernel that nothing names."""
    values = [stand_in(parameter, given, stand_ins) for parameter in kernel.template if parameter.default is None]
    known = [value for value in values if value is not None]
    assumed = tuple(text for value in known for text in value.assumed)
    return Instance(tuple(value.text for value in known), assumed) if len(known) == len(values) else None


def _instances(
    documents: Sequence[Document], kernel: Kernel, given: Mapping[str, str], stand_ins: str
) -> Iterator[Instance]:
    for mention in _mentions(documents, kernel, given, stand_ins):
        around = list(itertools.islice(_environments(documents, mention.scope, given, stand_ins, 0), _MOST))
        for environment in around or ([{}] if stand_ins else []):
            yield from _made(mention.scope.within(environment), kernel.template, kernel.parameters, mention)


def _mentions(
    documents: Sequence[Document], kernel: Kernel, given: Mapping[str, str], stand_ins: str
) -> Iterator[_Mention]:
    macros = function_macros(documents)
    word = kernel.name.encode()
    for document in documents:
        if word not in document.text and b"##" not in document.text:
            continue
        for expansion in expansions(document, macros, kernel.name):
            root = document.tree.root_node
            place = root.descendant_for_byte_range(expansion.offset, expansion.offset)
            function = enclosing(place, "function_definition") if place is not None else None
            scope = Scope(document, function, given, expansion.offset, expansion.document, stand_ins)
            yield from _named_in(expansion.document, kernel, scope)
        yield from _named_in(document, kernel, Scope(document, None, given, 0, None, stand_ins))


def _named_in(document: Document, kernel: Kernel, scope: Scope) -> Iterator[_Mention]:
    """The places in a document (a file, or a macro call carried out) that name the kernel; launches first."""
    launched = set()
    for site in document.launches:
        if site.kernel == kernel.name:
            launched.add(site.span.start)
            node = document.tree.root_node.descendant_for_byte_range(site.span.start, site.span.end)
            yield _Mention(_at(scope, document, node), site.template_arguments, site.arguments)
    if kernel.name.encode() not in document.text:
        return
    for named in captured(_NAMED, document.tree.root_node):
        name, arguments = named.child_by_field_name("name"), named.child_by_field_name("arguments")
        if name is None or node_text(document, name) != kernel.name:
            continue
        outer = enclosing(named, "call_expression")
        if outer is None or outer.start_byte not in launched:
            yield _Mention(_at(scope, document, named), tuple(_listed(document, arguments)), ())


def _at(scope: Scope, document: Document, node: Node | None) -> Scope:
    if node is None or scope.expanded is document:
        return scope.at(node.start_byte if node is not None else 0)
    function = enclosing(node, "function_definition")
    return Scope(document, function, scope.given, node.start_byte, None, scope.stand_ins)


def _made(
    scope: Scope, template: Sequence[TemplateParameter], parameters: Sequence[Parameter], mention: "_Mention"
) -> Iterator[Instance]:
    """The template arguments of a call: those written, then those that follow from the types of what is passed."""
    known: list[Sequence[Value]] = []
    written = mention.written
    for place, parameter in enumerate(template):
        argument: str | None = written[place] if place < len(written) else None
        if argument is None and parameter.kind == "type":
            argument = deduced(scope, parameters, mention.passed, parameter.name)
        if argument is None and parameter.default is not None:
            break
        values = resolved(scope, argument, parameter) if argument is not None else ()
        if not values and scope.stand_ins:
            values = [value] if (value := stand_in(parameter, scope.given, scope.stand_ins)) is not None else []
        if not values:
            return
        known.append(values)
    else:
        known += [resolved(scope, argument, None) for argument in written[len(template) :]]  # of a pack
    for chosen in itertools.islice(itertools.product(*known), _MOST):
        assumed = tuple(dict.fromkeys(text for value in chosen for text in value.assumed))
        yield Instance(tuple(value.text for value in chosen), assumed)


Environment = Mapping[str, Value]


def _environments(
    documents: Sequence[Document], scope: Scope, given: Mapping[str, str], stand_ins: str, depth: int
) -> Iterator[Environment]:
    """What the template parameters of the function around stand for: one mapping for each place that fixes them."""
    function = scope.function
    outer = function.parent if function is not None else None
    declarator = function.child_by_field_name("declarator") if function is not None else None
    if function is None or outer is None or outer.type != "template_declaration" or declarator is None:
        yield {}
        return
    template = tuple(template_parameters(scope.document.text, outer))
    parameters = tuple(parameters_of(scope.document.text, declarator, scope.document.blanks))
    name = function_name(scope.document.text, function)
    if name is None or depth >= _DEPTH:
        return
    for document in documents:
        if name.encode() not in document.text:
            continue
        for mention in _called_in(document, name, function, given):
            if mention.scope.function is not None and span_of(mention.scope.function) == span_of(function):
                continue
            for around in _environments(documents, mention.scope, given, stand_ins, depth + 1):
                for made in _made(mention.scope.within(around), template, parameters, mention):
                    yield {p.name: Value(text) for p, text in zip(template, made.arguments, strict=False)}


def _called_in(document: Document, name: str, function: Node, given: Mapping[str, str]) -> Iterator[_Mention]:
    """The calls and the explicit instantiations of a function."""
    seen: set[int] = set()
    for call in captured(_CALLS, document.tree.root_node):
        called = call.child_by_field_name("function")
        own = called.child_by_field_name("name") if called and called.type == "template_function" else called
        if own is None or called is None or node_text(document, own) != name:
            continue
        seen.add(called.start_byte)
        scope = Scope(document, enclosing(call, "function_definition"), given, call.start_byte, None, "")
        written = tuple(_listed(document, called.child_by_field_name("arguments")))
        yield _Mention(scope, written, tuple(_listed(document, call.child_by_field_name("arguments"))))
    for named in captured(_NAMED, document.tree.root_node):
        own = named.child_by_field_name("name")
        if named.start_byte in seen or own is None or node_text(document, own) != name:
            continue
        scope = Scope(document, enclosing(named, "function_definition"), given, named.start_byte, None, "")
        yield _Mention(scope, tuple(_listed(document, named.child_by_field_name("arguments"))), ())


def _listed(document: Document, node: Node | None) -> list[str]:
    return [node_text(document, child) for child in node.named_children if child.type != "comment"] if node else []
