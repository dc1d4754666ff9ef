"""A file as a list of top-level items: what each gives, what each takes, and whether a device can use it."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from attrs import field, frozen
from tree_sitter import Node

from agent.source.blanking import blanks_in
from agent.source.document import Document
from agent.source.errors import SliceError
from agent.source.lexing import Directive, Macro, macro_of, scan
from agent.source.macros import KNOWN_SPECIFIER
from agent.source.names import declared_names, names_in
from agent.source.nodes import declared_name, descendants, span_of, text_of
from agent.source.span import Span

_NESTING = 100
_TYPES = ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier")
DEVICE = re.compile(rb"\b(?:__device__|__global__|__constant__|__managed__|__shared__|texture|surface)\b")
_CONSTANT = re.compile(rb"\b(?:const|constexpr|consteval|constinit)\b")
CONSTEXPR = re.compile(rb"\bconst(?:expr|eval)\b")
_SYMBOL = re.compile(rb"\b(?:__constant__|__device__)\b")
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINES = re.compile(
    r"__(?:device|global|constant|managed|shared)__|\b(?:struct|class|enum|union|using|typedef|template|const|constexpr|namespace)\b"
)
_PASTE = re.compile(r"\s*##\s*")
_USING = re.compile(rb"\busing\s+namespace\s+([\w:\s]+?)\s*;")


@frozen(eq=False)
class Item:
    """A leaf: one definition, declaration or macro.

    ``gives`` are the names it defines; an ``operator`` has none that a use would spell. ``device`` is False for what
    only a host can use. ``kind``: ``function``, ``variable``, ``type``, ``macro``, ``using``, ``operator``, ``pragma``,
    ``other``.
    """

    document: Document = field(repr=False)
    span: Span
    kind: str
    gives: frozenset[str]
    device: bool
    node: Node | None = field(repr=False)
    host_constexpr: bool = False

    @cached_property
    def free(self) -> frozenset[str]:
        """The names in it that nothing inside it declares."""
        return self.takes if self.node is None else self.takes - declared_names(self.document.text, self.node)

    @cached_property
    def takes(self) -> frozenset[str]:
        """The names in it, its own included."""
        return names_in(self.document.text[self.span.start : self.span.end])

    @cached_property
    def operands(self) -> frozenset[str]:
        """The names of an operator's parameter types."""
        if self.node is None:
            return frozenset()
        lists = next(descendants(self.node, "parameter_list"), None)
        types = descendants(lists, "type_identifier") if lists is not None else ()
        return frozenset(text_of(self.document.text, name) for name in types)


@frozen(eq=False)
class Found:
    """An item, the names that the ``#if`` lines around it read, the directives of the branches that it is in, and the
    namespaces around it."""

    item: Item
    conditions: frozenset[str] = frozenset()
    branches: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()


@frozen
class Include:
    span: Span
    name: str
    quoted: bool


@frozen
class Block:
    """A namespace or ``extern "C"`` with braces: kept where something in it is."""

    head: Span
    foot: Span
    children: "tuple[Entry, ...]"
    name: str


@frozen
class Conditional:
    """``#if`` to ``#endif``: each branch has its directive and its entries."""

    branches: "tuple[tuple[Span, tuple[Entry, ...]], ...]"
    foot: Span
    takes: frozenset[str]


Entry = Item | Include | Block | Conditional


def entries(document: Document) -> tuple[Entry, ...]:
    """The top level of a document in text order. An include guard is left away, its contents are not."""
    directives = {directive.span.start: directive for directive in scan(document.text).directives}
    found = tuple(_Reader(document, directives).read(document.tree.root_node))
    solid = [entry for entry in found if not (isinstance(entry, Item) and entry.kind == "other" and not entry.gives)]
    if len(solid) == 1 and isinstance(solid[0], Conditional) and len(solid[0].branches) == 1:
        inside = solid[0].branches[0][1]
        first = inside[0] if inside else None
        guard = isinstance(first, Item) and first.kind == "macro" and first.gives <= solid[0].takes
        return inside[1:] if guard else found
    return found


def leaves(found: Sequence[Entry]) -> Iterator[Item]:
    """The items in text order, those in namespaces and conditional branches too."""
    for entry in found:
        if isinstance(entry, Item):
            yield entry
        elif isinstance(entry, Block):
            yield from leaves(entry.children)
        elif isinstance(entry, Conditional):
            for _, inside in entry.branches:
                yield from leaves(inside)


class _Reader:
    """Reads one document's tree; holds what every step needs."""

    def __init__(self, document: Document, directives: dict[int, Directive]) -> None:
        self.document = document
        self.text = document.text
        self.directives = directives
        self.depth = 0
        self.macros = {macro.name: macro for macro in document.macros if macro.parameters is not None}

    def read(self, node: Node) -> Iterator[Entry]:
        children = node.children
        # a file's own node begins only where the parser saw something
        at = node.start_byte if node.parent is not None else 0
        for index, child in enumerate(children):
            yield from self._macro_calls(at, child.start_byte)
            after = children[index + 1] if index + 1 < len(children) else None
            end = after.end_byte if after is not None and after.type == ";" else child.end_byte
            yield from self._entry(child, at, end)
            at = child.end_byte

    def _entry(self, node: Node, previous: int, end: int) -> Iterator[Entry]:
        kind = node.type
        if kind in ("preproc_if", "preproc_ifdef"):
            yield self._conditional(node)
        elif kind == "preproc_include":
            path = node.child_by_field_name("path")
            if path is not None and path.type in ("string_literal", "system_lib_string"):
                yield Include(self._directive(node), text_of(self.text, path)[1:-1], path.type == "string_literal")
        elif kind in ("preproc_def", "preproc_function_def"):
            directive = self.directives.get(node.start_byte)
            macro = macro_of(directive) if directive else None
            if directive and macro:
                yield Item(self.document, directive.span, "macro", frozenset({macro.name}), True, None)
        elif kind == "preproc_call":
            yield from self._other_directive(node)
        elif kind in ("namespace_definition", "linkage_specification"):
            yield from self._block(node, previous, end)
        elif node.is_error:
            yield from self.read(node)
        elif node.is_named and kind not in ("comment", "static_assert_declaration", "template_instantiation"):
            yield self._item(node, Span(self._start(node, previous), end))

    def _directive(self, node: Node) -> Span:
        directive = self.directives.get(node.start_byte)
        return directive.span if directive else span_of(node)

    def _deeper(self, node: Node) -> None:
        if self.depth >= _NESTING:
            line = node.start_point.row + 1
            raise SliceError(
                f"#if or namespace nested more than {_NESTING} deep at line {line} of {self.document.path}"
            )
        self.depth += 1

    def _conditional(self, node: Node) -> Conditional:
        self._deeper(node)
        branches: list[tuple[Span, tuple[Entry, ...]]] = []
        takes: set[str] = set()
        branch: Node | None = node
        while branch is not None:
            span = self._directive(branch)
            takes |= names_in(self.text[span.start : span.end])
            alternative = branch.child_by_field_name("alternative")
            inside = [
                child
                for child in branch.children
                if child.start_byte >= span.end and child.id != (alternative.id if alternative else 0)
            ]
            branches.append((span, tuple(self._run(inside, span.end))))
            branch = alternative
        self.depth -= 1
        foot = next((child for child in reversed(node.children) if child.type == "#endif"), None)
        return Conditional(
            tuple(branches), span_of(foot) if foot else Span(node.end_byte, node.end_byte), frozenset(takes)
        )

    def _run(self, children: list[Node], at: int) -> Iterator[Entry]:
        for index, child in enumerate(children):
            after = children[index + 1] if index + 1 < len(children) else None
            yield from self._macro_calls(at, child.start_byte)
            end = after.end_byte if after is not None and after.type == ";" else child.end_byte
            yield from self._entry(child, at, end)
            at = child.end_byte

    def _other_directive(self, node: Node) -> Iterator[Entry]:
        directive = self.directives.get(node.start_byte)
        if directive is None:
            return
        words = directive.text.decode("utf-8", "replace").split()
        if directive.keyword == "undef":
            yield Item(self.document, directive.span, "macro", names_in(directive.text), True, None)
        elif directive.keyword == "pragma" and re.search(r"\bpack\b|\bnv_|\bdiag_", " ".join(words)):
            yield Item(self.document, directive.span, "pragma", frozenset(), True, None)

    def _block(self, node: Node, previous: int, end: int) -> Iterator[Entry]:
        body = node.child_by_field_name("body")
        if body is None or body.type != "declaration_list":
            yield self._item(node, Span(self._start(node, previous), end))
            return
        name = node.child_by_field_name("name")
        self._deeper(node)
        children = tuple(self._run([c for c in body.children if c.type not in ("{", "}")], body.start_byte + 1))
        self.depth -= 1
        yield Block(
            head=Span(self._start(node, previous), body.start_byte + 1),
            foot=Span(body.end_byte - 1, body.end_byte),
            children=children,
            name=text_of(self.text, name) if name and node.type == "namespace_definition" else "",
        )

    def _start(self, node: Node, previous: int) -> int:
        """The item's start, specifiers included that were blanked between it and the one before."""
        blanks = (
            blank.span.start
            for blank in blanks_in(self.document.blanks, previous, node.start_byte)
            if blank.kind in ("specifier", "attribute", "conditional")
        )
        return min((node.start_byte, *blanks))

    def _macro_calls(self, start: int, end: int) -> Iterator[Entry]:
        """Calls of this file's own macros between declarations, blanked for want of a semicolon."""
        for blank in blanks_in(self.document.blanks, start, end):
            if blank.kind == "statement" and blank.name in self.macros:
                yield self._macro_call(blank.span, blank.name, blank.value, None)

    def _macro_call(self, span: Span, name: str, arguments: str, node: Node | None) -> Item:
        gives = _expanded_names(self.macros[name], arguments)
        return Item(self.document, span, "other", gives, self._may_define(name, arguments, frozenset()), node)

    def _may_define(self, name: str, arguments: str, seen: frozenset[str]) -> bool:
        """Whether a macro call may define something for device code: not where it makes plain host functions only."""
        written = f"{self.macros[name].body} {arguments}"
        if _DEFINES.search(written):
            return True
        inner = {word for word in _WORD.findall(written) if word in self.macros} - seen - {name}
        return any(self._may_define(word, "", seen | inner | {name}) for word in inner)

    def _item(self, node: Node, span: Span) -> Item:
        inner = node
        while inner.type in ("template_declaration", "linkage_specification"):
            body = inner.child_by_field_name("body") or (inner.named_children[-1] if inner.named_children else None)
            if body is None:
                break
            inner = body
        if inner.type == "expression_statement" and (call := _called_macro(self.text, inner, self.macros)):
            return self._macro_call(span, *call, node)
        gives = frozenset(_gives(self.text, inner))
        kind = _kind(inner)
        if kind == "function" and any(
            child.type == "operator_name" for child in descendants(_head(inner), "operator_name")
        ):
            kind = "operator"
        if inner.type == "using_declaration" and _USING.search(self.text, span.start, span.end):
            kind = "using"
        annotated = self._annotated(inner, kind, span)
        host = kind in ("function", "operator") and not annotated and bool(CONSTEXPR.search(self._head(inner, span)))
        device = annotated or host or kind in ("type", "using", "other") or self._constant(inner, kind, span)
        return Item(self.document, span, kind, gives, device, node, host)

    def _head(self, node: Node, span: Span) -> bytes:
        """What stands before a function's body or a variable's value."""
        body = next((n for n in node.children if n.type in ("compound_statement", "field_initializer_list")), None)
        head = self.text[span.start : body.start_byte if body else span.end]
        return head if body else head.partition(b"=")[0]

    def _annotated(self, node: Node, kind: str, span: Span) -> bool:
        """True with a ``__device__`` or the like, written or inside a macro."""
        if kind not in ("function", "operator", "variable"):
            return False
        head = self._head(node, span)
        hidden = " ".join(b.expansion for b in blanks_in(self.document.blanks, span.start, span.start + len(head)))
        spelled = "__device__" in hidden or "__global__" in hidden
        return spelled or bool(DEVICE.search(head)) or known_device(head)

    def _constant(self, node: Node, kind: str, span: Span) -> bool:
        """True for a variable whose value device code may use though its storage is the host's."""
        head = self._head(node, span)
        if kind != "variable" or not _CONSTANT.search(head):
            return False
        return b"*" not in head or bool(CONSTEXPR.search(head))


def known_device(head: bytes) -> bool:
    return any(b"D" in match.group().replace(b"CUDA", b"") for match in KNOWN_SPECIFIER.finditer(head))


def _head(node: Node) -> Node:
    declarator = node.child_by_field_name("declarator")
    return declarator if declarator is not None else node


def _kind(node: Node) -> str:
    if node.type in ("function_definition", "inline_method_definition"):
        return "function"
    if node.type in _TYPES or node.type in ("type_definition", "alias_declaration", "concept_definition"):
        return "type"
    if node.type in ("declaration", "field_declaration"):
        declarators = node.children_by_field_name("declarator")
        if any(is_function(declarator) for declarator in declarators):
            return "function"
        return "variable" if declarators else "type"
    return "type" if node.type in ("namespace_alias_definition", "using_declaration") else "other"


def is_function(declarator: Node | None) -> bool:
    while declarator is not None:
        if declarator.type == "function_declarator":
            return True
        if declarator.type in ("init_declarator", "parenthesized_declarator"):
            return False
        declarator = declarator.child_by_field_name("declarator") or next(
            (c for c in declarator.named_children if c.type == "function_declarator"), None
        )
    return False


def _gives(text: bytes, node: Node) -> Iterator[str]:
    """The names an item defines at its level; for ``S::f`` both, so that a type brings its members' definitions."""
    for declarator in node.children_by_field_name("declarator"):
        name = declared_name(declarator)
        if name is None:
            name = next(descendants(declarator, "qualified_identifier", "template_function"), None)
        if name is not None:
            yield from _WORD.findall(re.sub(r"<.*>", "", text_of(text, name), flags=re.DOTALL))
    own = node.child_by_field_name("name")
    if own is not None:
        yield from _WORD.findall(re.sub(r"<.*>", "", text_of(text, own), flags=re.DOTALL))
    elif node.type in ("namespace_alias_definition", "using_declaration"):
        yield from _WORD.findall(text_of(text, node))[-1:]
    for child in (node, *node.children_by_field_name("type")):
        if child.type in _TYPES and child.child_by_field_name("body") is not None:
            tag = child.child_by_field_name("name")
            if tag is not None:
                yield from _WORD.findall(re.sub(r"<.*>", "", text_of(text, tag), flags=re.DOTALL))
            if child.type == "enum_specifier":
                for enumerator in descendants(child, "enumerator"):
                    if (name := enumerator.child_by_field_name("name")) is not None:
                        yield text_of(text, name)


def _called_macro(text: bytes, statement: Node, macros: dict[str, Macro]) -> tuple[str, str] | None:
    call = next((child for child in statement.named_children if child.type == "call_expression"), None)
    function = call.child_by_field_name("function") if call else None
    arguments = call.child_by_field_name("arguments") if call else None
    if function is None or arguments is None:
        return None
    name = text_of(text, function)
    return (name, text_of(text, arguments)[1:-1]) if name in macros else None


def _expanded_names(macro: Macro, arguments: str) -> frozenset[str]:
    """Names that a macro call may define: the words of its body with its arguments put in and ``##`` carried out."""
    given = dict(zip((p.strip() for p in (macro.parameters or "").split(",")), arguments.split(","), strict=False))
    body = _WORD.sub(lambda match: given.get(match.group(), match.group()).strip(), macro.body)
    return names_in(_PASTE.sub("", body).encode()) | names_in(arguments.encode())


def symbol_names(item: Item) -> Iterator[str]:
    """The ``__constant__``/``__device__`` variables that an item declares (NVRTC cannot name a ``__managed__`` one)."""
    head = item.document.text[item.span.start : item.span.end]
    equals = head.find(b"=")
    template = item.node is not None and item.node.type == "template_declaration"  # a variable for each argument
    if item.kind == "variable" and not template and _SYMBOL.search(head[:equals] if equals >= 0 else head):
        yield from sorted(item.gives)


def used_namespace(item: Item) -> str:
    """``ns`` of ``using namespace ns;``."""
    match = _USING.search(item.document.text, item.span.start, item.span.end)
    return "".join(match.group(1).decode("utf-8", "replace").split()) if match else ""
