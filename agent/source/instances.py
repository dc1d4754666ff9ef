"""Which instance of a template kernel is meant where its name stands without arguments."""

import re

from agent.source.document import Document
from agent.source.errors import SliceError
from agent.source.kernel import Kernel
from agent.source.launch import LaunchSite
from agent.source.names import names_in
from agent.source.span import Span

_BUILTIN = frozenset(
    "dim3 uint uchar ushort size_t half half2 __half __half2 __nv_bfloat16 __nv_bfloat162 true false".split()
)
_VECTOR = re.compile(r"u?(?:char|short|int|long|longlong|float|double)[1-4]\Z|u?int\d+_t\Z")
_LITERAL = re.compile(r"[\w.\s+*/()-]+\Z")


def name_expression(document: Document, home: Document, kernel: Kernel, given: frozenset[str]) -> str:
    """NVRTC's name expression for ``kernel`` (of ``home``), template arguments taken from the first launch that fixes them.

    ``given`` are the names that the translation unit defines. Raises SliceError where no launch fixes them all.
    """
    if not kernel.template or "<" in kernel.qualified_name:
        return kernel.qualified_name
    for source in dict.fromkeys((document, home)):
        for site in source.launches:
            if site.kernel != kernel.name or not site.template_arguments:
                continue
            arguments = [_resolved(source, site, argument, given) for argument in site.template_arguments]
            known = [argument for argument in arguments if argument is not None]
            if len(known) == len(arguments) and _enough(kernel, len(known)):
                return f"{kernel.qualified_name}<{', '.join(known)}>"
    if _enough(kernel, 0):
        return f"{kernel.qualified_name}<>"
    wanted = ", ".join(parameter.name or parameter.kind for parameter in kernel.template)
    raise SliceError(
        f"{kernel.qualified_name} is a template over {wanted}, and no launch in this file fixes them; "
        f"name an instance, for example '{kernel.qualified_name}<{_example(kernel)}>'"
    )


def _enough(kernel: Kernel, count: int) -> bool:
    return all(parameter.default is not None for parameter in kernel.template[count:])


def _example(kernel: Kernel) -> str:
    return ", ".join("float" if parameter.kind == "type" else "256" for parameter in kernel.template)


def _resolved(document: Document, site: LaunchSite, argument: str, given: frozenset[str]) -> str | None:
    """The argument in names that hold at file level; a local constant is replaced by its value."""
    for name in names_in(argument.encode()):
        if name in _BUILTIN or _VECTOR.match(name):
            continue
        local = _local_constant(document, site.function_span, name) if site.function_span else None
        if local is not None:
            argument = re.sub(rf"\b{name}\b", local, argument)
        elif name not in given or _is_parameter(document, site.function_span, name):
            return None
    return argument


def _local_constant(document: Document, function: Span, name: str) -> str | None:
    written = document.slice_text(function)
    found = re.search(rf"\bconst(?:expr)?\s+(?:\w+\s+)?\w+\s+{re.escape(name)}\s*=\s*([^;,]+);", written)
    value = found.group(1).strip() if found else ""
    return f"({value})" if _LITERAL.match(value) and not re.search(r"[A-Za-z_]{2,}", value) else None


def _is_parameter(document: Document, function: Span | None, name: str) -> bool:
    """True where ``name`` is a template parameter of the function around a launch."""
    if function is None:
        return False
    before = document.slice_text(Span(max(0, function.start - 300), function.start))
    header = before.rpartition("template")[2]
    return bool(re.search(rf"\b{re.escape(name)}\b", header)) and header.rstrip().endswith(">")
