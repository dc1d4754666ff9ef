"""Every ``__global__`` definition of a text, also those that the parser lost."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from tree_sitter import Node, Tree

from agent.source.blanking import Blank, blanks_in
from agent.source.brackets import Brackets, match_brackets
from agent.source.kernel import Kernel, Parameter, TemplateParameter
from agent.source.lexing import scan
from agent.source.names import free_names
from agent.source.nodes import ancestors, captured, declared_name, first_error, span_of, text_of
from agent.source.span import Span

_DEFINITIONS = "(function_definition) @definition"
_GLOBAL = re.compile(rb"\b__global__\b")
# programs of OptiX, which its pipeline calls and nobody can launch
_PROGRAM = re.compile(
    r"__(?:raygen|miss|closesthit|anyhit|intersection|exception|(?:direct|continuation)_callable)__\w*"
)
# from __global__ to the name and its parenthesis; bounded, so that a file of __global__ takes linear time
_LOST = re.compile(rb"[^;{}()]{0,400}?([A-Za-z_]\w*)\s*\(")
_WRAPPERS = frozenset({"template_declaration", "linkage_specification"})
_QUALIFIERS = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|__grid_constant__|struct|class|enum|typename)\b")
_RESTRICT = re.compile(r"\b(?:__restrict__|__restrict|restrict)\b")


def find_kernels(text: bytes, tree: Tree, blanks: Sequence[Blank]) -> tuple[Kernel, ...]:
    """All kernels in text order."""
    if b"__global__" not in text and not any("__global__" in blank.expansion for blank in blanks):
        return ()
    code = scan(text).code if tree.root_node.has_error else text
    return find_kernels_in(text, tree, blanks, code, None, Span(0, len(text)))


def find_kernels_in(
    text: bytes, tree: Tree, blanks: Sequence[Blank], code: bytes, brackets: Brackets | None, within: Span
) -> tuple[Kernel, ...]:
    """The kernels in a stretch of whole functions. ``code`` (see ``lexing.scan``) and its ``brackets`` tell where those
    are that the parser lost."""
    found = [_kernel(text, node, blanks, within.start) for node in _definitions(tree, blanks, within)]
    kernels = [kernel for kernel in found if kernel is not None]
    lost = _lost(text, code, brackets, kernels, within) if tree.root_node.has_error else ()
    launchable = (kernel for kernel in (*kernels, *lost) if not _PROGRAM.fullmatch(kernel.name))
    return tuple(sorted(launchable, key=lambda kernel: kernel.span))


def _definitions(tree: Tree, blanks: Sequence[Blank], within: Span) -> Iterator[Node]:
    near = blanks_in(blanks, within.start, within.end)
    disguised = [blank.span.end for blank in near if "__global__" in blank.expansion]
    for node in captured(_DEFINITIONS, tree.root_node, within):
        body = node.child_by_field_name("body")
        if body is None or body.type != "compound_statement":
            continue
        if any(child.type == "__global__" for child in node.children):
            yield node
        elif disguised:
            start, declarator = _start(node, blanks, within.start), node.child_by_field_name("declarator")
            if declarator and any(start < end <= declarator.start_byte for end in disguised):
                yield node


def _kernel(text: bytes, node: Node, blanks: Sequence[Blank], first: int) -> Kernel | None:
    declarator = node.child_by_field_name("declarator")
    body = node.child_by_field_name("body")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    if declarator is None or body is None:
        return None
    name_node = declarator.child_by_field_name("declarator")
    if name_node is None:
        return None
    written = text_of(text, name_node)
    bare = name_node
    while bare.type in ("qualified_identifier", "template_function"):
        inner = bare.child_by_field_name("name")
        if inner is None:
            break
        bare = inner
    outer = _outermost(node)
    span = Span(_start(node, blanks, first), node.end_byte)
    signature = Span(span.start, body.start_byte)
    return Kernel(
        name=text_of(text, bare),
        qualified_name="::".join([*_scopes(text, node), "".join(written.split())]),
        template=tuple(template_parameters(text, outer)),
        parameters=tuple(parameters_of(text, declarator, blanks)),
        span=span,
        signature=signature,
        body=span_of(body),
        name_span=span_of(bare),
        line=bare.start_point.row + 1,
        launch_bounds=_attribute(signature, blanks, "LAUNCH_BOUNDS"),
        uses=free_names(text, span, outer) - {text_of(text, bare)},
        damage=_damage(text, outer),
        cluster_dims=_attribute(signature, blanks, "CLUSTER_DIMS"),
    )


def _outermost(node: Node) -> Node:
    """The definition with its template header and ``extern "C"``."""
    while node.parent is not None and node.parent.type in _WRAPPERS:
        node = node.parent
    return node


def _start(node: Node, blanks: Sequence[Blank], first: int) -> int:
    """Where the definition begins, specifiers that were blanked in front of it included. ``first`` is where the stretch
    of the text begins that is looked at."""
    outer = _outermost(node)
    start = outer.start_byte
    before = outer.prev_sibling
    above = outer.parent
    # a file's own node begins only where the parser saw something
    floor = before.end_byte if before else above.start_byte if above is not None and above.parent is not None else first
    hidden = [b for b in blanks_in(blanks, floor, start) if b.kind in ("specifier", "attribute", "conditional")]
    return hidden[0].span.start if hidden else start


def _scopes(text: bytes, node: Node) -> list[str]:
    scopes = []
    for above in ancestors(node):
        if above.type == "namespace_definition" or above.type in ("class_specifier", "struct_specifier"):
            name = above.child_by_field_name("name")
            if name is not None:
                scopes.append("".join(text_of(text, name).split()))
    return scopes[::-1]


def template_parameters(text: bytes, outer: Node) -> Iterator[TemplateParameter]:
    """The parameters in the header of a ``template_declaration`` (also one inside ``extern "C"``); none without one."""
    while outer.type == "linkage_specification":
        inner = outer.child_by_field_name("body")
        if inner is None:
            return
        outer = inner
    parameters = outer.child_by_field_name("parameters") if outer.type == "template_declaration" else None
    for node in parameters.named_children if parameters else []:
        if node.type == "comment":
            continue
        declarator = node.child_by_field_name("declarator")
        name = declared_name(declarator) if declarator else None
        default = node.child_by_field_name("default_value") or node.child_by_field_name("default_type")
        if "type_parameter" in node.type:
            name = node.child_by_field_name("name") or next(
                (child for child in node.named_children if child.type == "type_identifier"), None
            )
        kind = "type" if "type_parameter" in node.type or "template_template" in node.type else "value"
        type_node = node.child_by_field_name("type")
        yield TemplateParameter(
            name=text_of(text, name) if name else "",
            kind=kind,
            type=text_of(text, type_node) if type_node and kind == "value" else "",
            default=text_of(text, default) if default else None,
        )


def parameters_of(text: bytes, declarator: Node, blanks: Sequence[Blank]) -> Iterator[Parameter]:
    """The parameters of a ``function_declarator``."""
    parameters = declarator.child_by_field_name("parameters")
    for node in parameters.named_children if parameters else []:
        if node.type not in (
            "parameter_declaration",
            "optional_parameter_declaration",
            "variadic_parameter_declaration",
        ):
            continue
        inner = node.child_by_field_name("declarator")
        name = declared_name(inner)
        type_node = node.child_by_field_name("type")
        if name is None and type_node is not None and text_of(text, type_node) == "void" and inner is None:
            continue
        levels, step = list[str](), inner  # from the outermost to the name
        while step is not None and (name is None or step.id != name.id):
            if step.type in ("pointer_declarator", "array_declarator", "abstract_pointer_declarator"):
                levels.append(step.type)
            step = step.child_by_field_name("declarator") or next(
                (child for child in step.named_children if "declarator" in child.type), None
            )
        written = text_of(text, node)
        before = text[node.start_byte : inner.start_byte if inner else node.end_byte].decode("utf-8", "replace")
        hidden = blanks_in(blanks, node.start_byte, node.end_byte)
        whole = written if name is None else _without_name(text, node, name)
        yield Parameter(
            name=text_of(text, name) if name else "",
            type=" ".join(whole.split()),
            element=" ".join(_QUALIFIERS.sub(" ", _without(before, hidden)).split()),
            pointer_depth=len(levels),
            const=bool(re.search(r"\bconst\b", before)),
            restrict=bool(_RESTRICT.search(written)) or any("restrict" in b.expansion for b in hidden),
            span=span_of(node),
            arrays=len(levels) > 1 and all(level == "array_declarator" for level in levels[:-1]),
        )


def _without(before: str, hidden: Sequence[Blank]) -> str:
    for blank in hidden:
        before = re.sub(rf"\b{re.escape(blank.name)}\b\s*(?:\([^()]*\))?", " ", before)
    return before


def _without_name(text: bytes, node: Node, name: Node) -> str:
    default = node.child_by_field_name("default_value")
    end = default.start_byte if default else node.end_byte
    after = text[name.end_byte : end].decode("utf-8", "replace").rstrip().removesuffix("=")
    return text[node.start_byte : name.start_byte].decode("utf-8", "replace") + after


def _attribute(signature: Span, blanks: Sequence[Blank], name: str) -> tuple[str, ...]:
    """The arguments of ``__launch_bounds__`` (or of PyTorch's macros for it) and the like in the signature."""
    for blank in blanks_in(blanks, signature.start, signature.end):
        if name in blank.name.upper() and blank.value:
            return split_arguments(blank.value)
    return ()


def split_arguments(written: str) -> tuple[str, ...]:
    """Split at the commas that stand outside parentheses, brackets and braces."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(written):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(written[start:at].strip())
            start = at + 1
    return (*parts, written[start:].strip())


def _damage(text: bytes, outer: Node) -> str | None:
    error = first_error(outer)
    if error is not None:
        line = error.start_point.row + 1
        if error.is_missing:
            return f"a parse error at line {line}: '{error.type}' is missing"
        shown = " ".join(text_of(text, error).split())
        return f"a parse error at line {line} near '{shown[:40]}'"
    broken = next((above for above in ancestors(outer) if above.is_error), None)
    if broken is None:
        return None
    # inside an error the definition itself may be whole; not so if its header or its namespace is a loose token there
    before = outer.prev_sibling
    loose = before is not None and before.type in ("template", "template_parameter_list", "extern", "string_literal")
    siblings = broken.children
    torn = any(child.type == "namespace" and child.start_byte < outer.start_byte for child in siblings)
    if not (loose or torn):
        return None
    return f"it stands inside code that could not be parsed, which begins at line {broken.start_point.row + 1}"


def _lost(
    text: bytes, code: bytes, matched: Brackets | None, found: Sequence[Kernel], within: Span
) -> Iterator[Kernel]:
    """Definitions that the text shows and the tree does not: listed as damaged, so that they do not vanish silently."""
    brackets = matched or match_brackets(code)
    end, counted, last = 0, 0, 0
    spans = sorted(kernel.span for kernel in found)
    for match in _GLOBAL.finditer(code, within.start, within.end):
        place = bisect_right(spans, Span(match.start(), len(text) + 1)) - 1
        if match.start() < end or (place >= 0 and match.start() < spans[place].end):
            continue
        head = _LOST.match(code, match.end())
        while head is not None and head.group(1).startswith(b"__") and head.end() - 1 in brackets.closing:
            head = _LOST.match(code, brackets.closing[head.end() - 1] + 1)  # past an attribute with arguments
        closing = brackets.closing.get(head.end() - 1) if head else None
        if head is None or closing is None:
            continue
        opening = re.compile(rb"\s*\{").match(code, closing + 1)
        if opening is None:
            continue
        brace = opening.end() - 1
        end = brackets.closing.get(brace, len(text) - 1) + 1
        name = head.group(1).decode()
        start = Span(match.start(), end)
        counted += text.count(b"\n", last, head.start(1))
        line, last = counted + 1, head.start(1)
        yield Kernel(
            name=name,
            qualified_name=name,
            template=(),
            parameters=(),
            span=start,
            signature=Span(match.start(), brace),
            body=Span(brace, end),
            name_span=Span(head.start(1), head.end(1)),
            line=line,
            launch_bounds=(),
            uses=frozenset(),
            damage=f"the definition at line {line} could not be parsed (a macro or an #if cuts it in two)",
        )
