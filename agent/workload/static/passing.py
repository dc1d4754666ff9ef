"""What a plan cannot pass to a kernel, so that no number that a user writes down helps, and what to do instead."""

import re

from agent.source.document import Document
from agent.source.kernel import Kernel, Parameter
from agent.workload import dtypes, types
from agent.workload.layout import LayoutError, parameter_layout


def barred(
    document: Document, kernel: Kernel, parameter: Parameter, dtype: str | None, template: tuple[str, ...] = ()
) -> str:
    """Why no launch can be written for a parameter of the element type ``dtype``; empty where one can.

    ``dtype`` is None for a type that is no number, vector or struct of plain members in this file.
    """
    what = f"`{kernel.name}` takes `{parameter.name}`"
    if parameter.pointer_depth > 1 and not parameter.arrays:
        return f"{what} as a pointer to pointers, and these are not followed: put the arrays into one and pass that"
    if types.is_texture(parameter):
        return ""
    if parameter.pointer_depth or (dtype is not None and dtypes.is_scalar(dtype)):
        return ""
    try:
        parameter_layout(document, kernel, parameter, template)
    except LayoutError as error:
        return (
            f"{what}, a `{parameter.type}`, by value: {error.message}; {_instead(document, kernel, parameter, dtype)}"
        )
    return ""


def _instead(document: Document, kernel: Kernel, parameter: Parameter, dtype: str | None) -> str:
    if parameter.element in {template.name for template in kernel.template}:
        return (
            f"have the kernel make its own (`{parameter.element} {parameter.name};` in its body), "
            "or pass the numbers in it"
        )
    if dtype is None and not _is_defined(document, parameter.element):
        return "write it as `int`, `float` or the like, or pass its members"
    return "make those of its members that the kernel uses parameters of their own"


def counts_arrays(document: Document, element: str) -> bool:
    """Whether a pointer to ``element`` steps over whole arrays."""
    return (
        "[" in element or re.search(rf"\btypedef\b[^;]*\b{re.escape(element)}\s*\[".encode(), document.text) is not None
    )


def _is_defined(document: Document, name: str) -> bool:
    bare = re.escape(name.split("::")[-1].split("<")[0].strip())
    return (
        re.search(rf"\b(struct|class|union)\b[^;{{}}()]*\b{bare}\b|\}}\s*{bare}\s*;".encode(), document.text)
        is not None
    )
