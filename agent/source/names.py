"""Which names a piece of code takes from outside itself."""

import re

from tree_sitter import Node

from agent.source.lexing import scan, word_set
from agent.source.nodes import declared_name, text_of, walk
from agent.source.span import Span

# not a member (``p.x``, ``p->x``); ``1.f`` and ``...`` are no members either, and no words
_NAME = re.compile(rb"(?<![\w.])(?<!->)[A-Za-z_]\w*|(?<=\.\.)[A-Za-z_]\w*")
_KEYWORD = re.compile(rb"#\s*\w*(?:(?<=pragma)\s*(?:unroll|nounroll|once)\b)?")
KEYWORDS = word_set(
    "alignas alignof and asm auto bool break case catch char char16_t char32_t char8_t class concept const "
    "const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default delete do "
    "double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable "
    "namespace new noexcept not nullptr operator or private protected public register reinterpret_cast requires "
    "return short signed sizeof static static_assert static_cast struct switch template this thread_local throw "
    "true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor final "
    "override _Pragma __maxnreg__ __cluster_dims__ __block_size__ __attribute__ __declspec __global__ __device__ "
    "__host__ __shared__ __constant__ __managed__ __forceinline__ __noinline__ __restrict__ __restrict "
    "__launch_bounds__ __align__ __grid_constant__ __inline__ __inline __asm__ __asm __volatile__ defined "
    "threadIdx blockIdx blockDim gridDim warpSize"
)
_DECLARING = frozenset(
    {
        "parameter_declaration",
        "optional_parameter_declaration",
        "variadic_parameter_declaration",
        "declaration",
        "init_declarator",
        "for_range_loop",
    }
)


def names_in(text: bytes) -> frozenset[str]:
    """Every word of a piece of code that may name something: no keywords, members, comments or strings.

    Directives are read, with their macro bodies."""
    scanned = scan(text)
    words = set(_NAME.findall(scanned.code))
    for directive in scanned.directives:
        if directive.keyword not in ("include", "error", "warning", "line"):
            words.update(_NAME.findall(scan(_KEYWORD.sub(b"", directive.text)).code))
    return frozenset(word.decode() for word in words) - KEYWORDS


def declared_names(text: bytes, node: Node) -> frozenset[str]:
    """The names that declarations below ``node`` give: parameters, locals, template parameters."""
    names: set[str] = set()
    for found in walk(node):
        if found.type in _DECLARING:
            for declarator in found.children_by_field_name("declarator"):
                name = declared_name(declarator)
                if name is not None and name.type == "identifier":
                    names.add(text_of(text, name))
        elif "type_parameter" in found.type:
            names.update(text_of(text, child) for child in found.named_children[:1] if child.type == "type_identifier")
        elif found.type in (
            "alias_declaration",
            "type_definition",
            "struct_specifier",
            "class_specifier",
            "enum_specifier",
        ):
            name = found.child_by_field_name("name") or found.child_by_field_name("declarator")
            if name is not None and (found.child_by_field_name("body") or "specifier" not in found.type):
                names.add(text_of(text, name))
        elif found.type == "labeled_statement":
            names.update(text_of(text, c) for c in found.named_children[:1])
    return frozenset(names)


def free_names(text: bytes, span: Span, node: Node) -> frozenset[str]:
    """The names in ``span`` that are not declared below ``node`` (the definition that stands there)."""
    return names_in(text[span.start : span.end]) - declared_names(text, node)
