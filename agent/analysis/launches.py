"""The numbers of a launch that the file itself fixes: block, grid and shared bytes, through the host function's own
definitions.

Host code is read, not run: a name counts only where it is defined once and never changed in its function.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b

from attrs import evolve, frozen
from tree_sitter import Node

from agent.analysis.file import file_facts
from agent.analysis.syntax import arguments, bare, callee, descendants, text
from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.source.kernels import split_arguments
from agent.source.launch import LaunchSite
from agent.source.parsing import parse_tree
from agent.workload.expression import Expression, ExpressionError

Extents = tuple[int | None, int | None, int | None]
UNKNOWN: Extents = (None, None, None)
DEEPEST = 12
_PART = re.compile(r"\b([A-Za-z_]\w*)\s*\.\s*([xyz])\b")
_DIM3 = re.compile(r"(?:const\s+)?dim3\s*[({](.*)[)}]", re.DOTALL)
_TRIALS = (1, 2, 3, 5, 31, 32, 33, 255, 256, 257, 1000, 1023, 1024, 1025, 4096, 9973, 65536, 100003)


@frozen
class Shape:
    """One launch, its place left out. ``rounds`` says how the grid's x extent follows from a size: ``up`` or ``down``
    to whole blocks, or None where that is not known; ``size`` is that size as written. ``shared`` is in bytes, 0 where
    none is given. ``arguments`` are the kernel's, as written; ``how`` as in ``LaunchSite``."""

    block: Extents
    grid: Extents
    rounds: str | None
    size: str
    shared: int | None
    arguments: tuple[str, ...] = ()
    how: str = ""

    @property
    def threads(self) -> int | None:
        x, y, z = self.block
        return None if x is None or y is None or z is None else x * y * z


def launches_of(document: Document, kernel: Kernel) -> tuple[LaunchSite, ...]:
    """The launches of a kernel in its file; none where several kernels have its name and it cannot be told whose they
    are."""
    if [one.name for one in document.kernels.as_read].count(kernel.name) != 1:
        return ()
    sites = enumerate(document.launches.as_read)
    plain = [document.launches[at] for at, site in sites if site.kernel == kernel.name and site.damage is None]
    others = [site for site in document.indirect_launches if site.kernel == kernel.name and site.damage is None]
    return tuple(sorted((*plain, *others), key=lambda site: site.span))


def shape(document: Document, site: LaunchSite, constants: Mapping[str, int] | None = None) -> Shape:
    """The numbers of one launch. ``constants`` are what names mean outside its function, as the file says where they
    are not given."""
    written, host = (site.grid, site.block, site.shared or ""), _host(document, site)
    known = file_facts(document).constants if constants is None else constants
    used = tuple((name, known[name]) for name in _names(written, host) if name in known)
    found = evolve(_shape(written, host, used), arguments=site.arguments, how=site.how)
    if "Ex" in site.how and site.shared is None:
        found = evolve(found, shared=None)  # whoever made its configuration may have set them
    # who asks what is left over does not round by mistake
    return evolve(found, rounds=None) if found.rounds == "down" and _asks_for_rest(document, found.size) else found


def _asks_for_rest(document: Document, size: str) -> bool:
    return re.search(rb"\b%s\s*%%\s*\w" % re.escape(size.encode()), document.text) is not None


def template_numbers(
    document: Document, kernel: Kernel, sites: tuple[LaunchSite, ...], constants: Mapping[str, int] | None = None
) -> Mapping[str, int]:
    """The template's own numbers where every launch names the same. ``constants``: see :func:`shape`."""
    known = file_facts(document).constants if constants is None else constants
    found: dict[str, int] = {}
    for at, parameter in enumerate(kernel.template):
        given = {_template_number(document, site, at, known) for site in sites} if parameter.kind == "value" else set()
        number = next(iter(given)) if len(given) == 1 else None
        if number is not None:
            found[parameter.name] = number
    return found


def _template_number(document: Document, site: LaunchSite, at: int, constants: Mapping[str, int]) -> int | None:
    if at >= len(site.template_arguments):
        return None
    host = _host(document, site)
    return _Names(dict(host.scalars), {}, constants).number(site.template_arguments[at])


@frozen(eq=False)
class Host:
    """What a host function fixes: scalars as written, and the three parts of each ``dim3``."""

    scalars: tuple[tuple[str, str], ...] = ()
    dims: tuple[tuple[str, tuple[str, ...]], ...] = ()


Written = tuple[str, str, str]
_NOTHING = Host()


@lru_cache(maxsize=2048)
def _names(written: Written, host: Host) -> tuple[str, ...]:
    """The names that a launch may use, through its function's definitions."""
    texts = [*written, *(value for _, value in host.scalars), *(part for _, parts in host.dims for part in parts)]
    return tuple(sorted(set(re.findall(r"[A-Za-z_]\w*", " ".join(texts)))))


@lru_cache(maxsize=2048)
def _shape(written: Written, host: Host, constants: tuple[tuple[str, int], ...]) -> Shape:
    grid, block, shared = written
    names = _Names(dict(host.scalars), dict(host.dims), dict(constants))
    blocks = names.parts(block)
    extents = tuple(None if part is None else names.number(part) for part in blocks)
    grids = names.parts(grid)
    rounds, size = names.rounding(grids[0], extents[0])
    return Shape(
        block=(extents[0], extents[1], extents[2]),
        grid=(names.of(grids[0]), names.of(grids[1]), names.of(grids[2])),
        rounds=rounds,
        size=size,
        shared=names.number(shared) if shared else 0,
    )


@frozen(eq=False)
class _Names:
    scalars: Mapping[str, str]
    dims: Mapping[str, tuple[str, ...]]
    constants: Mapping[str, int]

    def parts(self, written: str) -> tuple[str | None, str | None, str | None]:
        """x, y and z of a grid or block as written, None where not known."""
        given = _DIM3.fullmatch(written.strip())
        if given is not None:
            return _three(split_arguments(given[1]))
        if written.strip() in self.dims:
            return _three(self.dims[written.strip()])
        if self.number(written) is not None:
            return written, "1", "1"
        # a lone name or call may be a dim3; a sum or quotient is a number
        lone = re.fullmatch(r"[\w:.]+(?:\(.*\))?", written.strip(), re.DOTALL)
        if lone is not None and written.strip() not in self.scalars:
            return None, None, None
        return written, "1", "1"

    def of(self, written: str | None) -> int | None:
        return None if written is None else self.number(written)

    def number(self, written: str) -> int | None:
        expression = self.expression(written)
        if expression is None or not expression.names <= self.constants.keys():
            return None
        try:
            return expression.integer(self.constants)
        except ExpressionError:
            return None

    def expression(self, written: str, depth: int = 0) -> Expression | None:
        """What is written, definitions put in; None where it is no expression."""
        if depth > DEEPEST:
            return None
        expanded = _PART.sub(lambda part: self._part(part[1], part[2]) or part[0], written)
        try:
            expression = Expression.parse(expanded)
            inner = {
                name: found
                for name in expression.names & self.scalars.keys()
                if (found := self.expression(self.scalars[name], depth + 1)) is not None
            }
            return expression.substitute(inner)
        except ExpressionError:
            return None

    def _part(self, name: str, axis: str) -> str | None:
        part = _three(self.dims[name])["xyz".index(axis)] if name in self.dims else None
        return None if part is None else f"({part})"

    def rounding(self, written: str | None, block: int | None) -> tuple[str | None, str]:
        """Whether a grid extent is a size divided by the block, rounded up or down: found by trying sizes."""
        expression = None if written is None else self.expression(written)
        if expression is None or block is None or block < 2:
            return None, ""
        free = sorted(expression.names - self.constants.keys())
        if len(free) != 1:
            return None, ""
        try:
            counts = [expression.integer({**self.constants, free[0]: size}) for size in _TRIALS]
        except (ExpressionError, ValueError, OverflowError):
            return None, ""
        if counts == [-(-size // block) for size in _TRIALS] or counts == [size // block + 1 for size in _TRIALS]:
            return "up", free[0]
        return ("down", free[0]) if counts == [size // block for size in _TRIALS] else (None, "")


def _three(parts: tuple[str, ...]) -> tuple[str | None, str | None, str | None]:
    given = [part for part in parts if part]
    padded: list[str | None] = [*given, "1", "1", "1"]
    return (padded[0], padded[1], padded[2]) if len(given) <= 3 else (None, None, None)


def _host(document: Document, site: LaunchSite) -> Host:
    if site.function_span is None:
        return _NOTHING
    start, end = site.function_span.start, site.function_span.end
    written = document.blanked[start:end]
    key = blake2b(written, digest_size=16).digest()
    if key not in _hosts:
        if len(_hosts) > 4096:
            _hosts.clear()
        root = parse_tree(written).root_node
        # alone, if that is a function: the whole tree may have to be made
        node = document.tree.root_node.descendant_for_byte_range(start, end) if root.has_error else root
        _hosts[key] = _NOTHING if node is None else _read(node)
    return _hosts[key]


_hosts: dict[bytes, Host] = {}


def _read(function: Node) -> Host:
    scalars: dict[str, str | None] = {}
    dims: dict[str, tuple[str, ...] | None] = {}
    for node in descendants(function, "declaration"):
        is_dim = text(node.child_by_field_name("type")).split("::")[-1] == "dim3"
        for declarator in node.children_by_field_name("declarator"):
            name = text(_name(declarator))
            if not name:
                continue
            if is_dim:
                parts = _dim_parts(declarator)
                dims[name] = parts if dims.get(name, parts) == parts else None
            else:
                value = declarator.child_by_field_name("value")
                given = None if value is None or declarator.type != "init_declarator" else text(value)
                scalars[name] = given if scalars.get(name, given) == given else None
    changed = _changed(function) | (scalars.keys() & dims.keys())  # of which of its scopes, is not asked
    for parameter in descendants(function, "parameter_declaration", "optional_parameter_declaration"):
        changed.add(text(_name(parameter.child_by_field_name("declarator"))))
    return Host(
        tuple((n, value) for n, value in scalars.items() if value is not None and n not in changed),
        tuple((n, parts) for n, parts in dims.items() if parts is not None and n not in changed),
    )


def _name(declarator: Node | None) -> Node | None:
    while declarator is not None and declarator.type in ("init_declarator", "function_declarator"):
        declarator = declarator.child_by_field_name("declarator")
    return declarator if declarator is not None and declarator.type == "identifier" else None


def _dim_parts(declarator: Node) -> tuple[str, ...] | None:
    """The parts of ``dim3 g(a, b)``, ``dim3 g{a, b}``, ``dim3 g = dim3(a, b)`` and ``dim3 g``. With names only, the
    first reads like the declaration of a function."""
    if declarator.type == "identifier":
        return ()
    if declarator.type == "function_declarator":
        return split_arguments(text(declarator.child_by_field_name("parameters"))[1:-1])
    value = bare(declarator.child_by_field_name("value"))
    if value is None:
        return None
    if value.type in ("argument_list", "initializer_list"):
        return tuple(text(child) for child in value.named_children if child.type != "comment")
    if callee(value) == "dim3":
        return tuple(text(argument) for argument in arguments(value))
    return None


def _changed(function: Node) -> set[str]:
    """The names that a function assigns to, steps or gives away."""
    found: set[str] = set()
    for node in descendants(function, "assignment_expression", "update_expression", "pointer_expression"):
        if node.type == "pointer_expression" and text(node.child_by_field_name("operator")) != "&":
            continue
        target = bare(node.child_by_field_name("left") or node.child_by_field_name("argument"))
        if target is not None and target.type == "field_expression":
            target = bare(target.child_by_field_name("argument"))
        if target is not None and target.type == "identifier":
            found.add(text(target))
    for node in descendants(function, "binary_expression"):  # `input >> n`
        target = bare(node.child_by_field_name("right"))
        if _shifts(node) and target is not None and target.type == "identifier" and _is_read_into(node):
            found.add(text(target))
    return found


def _is_read_into(shift: Node) -> bool:
    """Whether a shift stands alone, as a statement or a condition: then it reads from a stream."""
    parent = shift.parent
    while parent is not None and (parent.type == "parenthesized_expression" or _shifts(parent)):
        parent = parent.parent
    return parent is not None and parent.type in ("expression_statement", "condition_clause", "unary_expression")


def _shifts(node: Node) -> bool:
    return node.type == "binary_expression" and text(node.child_by_field_name("operator")) == ">>"
