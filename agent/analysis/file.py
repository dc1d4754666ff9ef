"""What the kernels of a file share: integer constants, functions that take references, arrays and names that no
kernel can change.

Read off one item of the file at a time and remembered by the item's text, so that a keystroke inside one function
reads that function anew and nothing else.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b

from attrs import field, frozen
from tree_sitter import Node

from agent.analysis.constants import constant_arrays, definitions, folded, steady_scalars
from agent.analysis.formulas import Formula, formula_of
from agent.analysis.symbols import reference_takers
from agent.analysis.syntax import text
from agent.source.document import Document

CONTAINERS = frozenset(
    (
        *("translation_unit", "namespace_definition", "declaration_list", "linkage_specification"),
        *("preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef"),
        *("template_declaration", "ERROR"),
    )
)
_WORDS = re.compile(r"\b[A-Za-z_]\w*")


@frozen(eq=False)
class FileFacts:
    """``constants``: integers with a name. ``takers``: functions that may change an argument. ``arrays``: the arrays
    that no kernel changes. ``fixed``: scalar names that have one value for all threads (constants that are not
    integers included). ``functions``: functions and macros with parameters that the file defines or declares;
    ``formulas`` those of them that are one expression."""

    constants: Mapping[str, int]
    takers: frozenset[str]
    arrays: frozenset[str]
    fixed: frozenset[str]
    functions: frozenset[str] = frozenset()
    formulas: Mapping[str, Formula] = field(factory=dict)


@frozen
class _Item:
    """What one item of a file gives. ``macros`` and ``variables`` are (name, value as written)."""

    macros: tuple[tuple[str, str], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    takers: frozenset[str] = frozenset()
    arrays: frozenset[str] = frozenset()
    scalars: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    formulas: tuple[tuple[str, Formula], ...] = ()


@lru_cache(maxsize=8)
def file_facts(document: Document) -> FileFacts:
    """What the file of a document says to all its kernels."""
    whole = _merged(document.tree.root_node)
    return FileFacts(
        constants=folded((*whole.macros, *whole.variables)),
        takers=whole.takers | {"swap"},
        arrays=whole.arrays,
        fixed=_plain(whole.macros) | whole.scalars,
        functions=whole.functions,
        formulas=_single(whole.formulas),
    )


_seen: dict[bytes, _Item] = {}
MOST_ITEMS = 50_000


def _item(node: Node) -> _Item:
    source = node.text or b""
    key = blake2b(source, digest_size=16).digest()
    found = _seen.get(key)
    if found is None:
        if len(_seen) >= MOST_ITEMS:
            _seen.clear()
        found = _seen[key] = _merged(node) if node.type in CONTAINERS else _read(node, source)
    return found


def _merged(container: Node) -> _Item:
    items = [_item(child) for child in container.named_children if child.type != "comment"]
    return _Item(
        macros=tuple(pair for item in items for pair in item.macros),
        variables=tuple(pair for item in items for pair in item.variables),
        takers=frozenset().union(*(item.takers for item in items)),
        arrays=frozenset().union(*(item.arrays for item in items)),
        scalars=frozenset().union(*(item.scalars for item in items)),
        functions=frozenset().union(*(item.functions for item in items)),
        formulas=tuple(pair for item in items for pair in item.formulas),
    )


def _read(node: Node, source: bytes) -> _Item:
    functions, formula = frozenset(_functions(node)), formula_of(node)
    formulas = () if formula is None else (formula,)
    if node.type == "function_definition":
        macros, _ = definitions(node) if b"#" in source else ((), ())
        declarator = node.child_by_field_name("declarator")
        takes = declarator is not None and b"&" in (declarator.text or b"")
        takers = reference_takers(node) - {"swap"} if takes else frozenset()
        return _Item(macros=macros, takers=takers, functions=functions, formulas=formulas)
    # most items hold none of these words, and a table of numbers is long to walk through
    takers = reference_takers(node) - {"swap"} if b"&" in source else frozenset()
    if not any(word in source for word in (b"#", b"const", b"enum")):
        return _Item(takers=takers, functions=functions, formulas=formulas)
    macros, variables = definitions(node)
    return _Item(macros, variables, takers, constant_arrays(node), steady_scalars(node), functions, formulas)


def _functions(node: Node) -> Iterator[str]:
    """The names that an item defines or declares as functions."""
    if node.type == "preproc_function_def":
        yield text(node.child_by_field_name("name"))
        return
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    if declarator is not None:
        yield text(declarator.child_by_field_name("declarator")).split("::")[-1]


@lru_cache(maxsize=8)
def _plain(macros: tuple[tuple[str, str], ...]) -> frozenset[str]:
    """Macros that stand for numbers and other such macros only, so that they mean the same for every thread. One that
    is defined twice must be so both times."""
    words: dict[str, list[str]] = {name: [] for name, _ in macros}
    for name, value in macros:
        words[name] += _WORDS.findall(re.sub(r"\b\d[\w.]*|\b(?:sizeof|float|double|int|unsigned|long)\b", "", value))
    plain = {name for name, used in words.items() if not used}
    grew = True
    while grew:
        new = {name for name, used in words.items() if name not in plain and plain.issuperset(used)}
        plain |= new
        grew = bool(new)
    return frozenset(plain)


@lru_cache(maxsize=8)
def _single(pairs: tuple[tuple[str, Formula], ...]) -> Mapping[str, Formula]:
    """Those that are defined in one way."""
    found: dict[str, set[Formula]] = {}
    for name, formula in pairs:
        found.setdefault(name, set()).add(formula)
    return {name: next(iter(formulas)) for name, formulas in found.items() if len(formulas) == 1}


def restricted(facts: FileFacts, names: Iterable[str]) -> FileFacts:
    """What is known of these names only, and of those that their formulas use: what a kernel that uses them can see."""
    wanted = set(names)
    formulas = {name: facts.formulas[name] for name in sorted(wanted & facts.formulas.keys())}
    for formula in formulas.values():
        wanted |= formula.expression.names
    return FileFacts(
        {name: facts.constants[name] for name in sorted(wanted & facts.constants.keys())},
        facts.takers & (wanted | {"swap"}),
        facts.arrays & wanted,
        facts.fixed & wanted,
        facts.functions & wanted,
        formulas,
    )
