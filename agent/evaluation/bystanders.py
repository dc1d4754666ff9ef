"""What a rewrite does to the rest of its file: kernels that nobody judges here, and names that may now mean another."""

import re
from collections import Counter
from collections.abc import Iterator

from agent.source.document import Document
from agent.source.errors import SourceError
from agent.source.items import entries, leaves
from agent.source.lexing import macro_of, scan
from agent.source.names import names_in
from agent.source.slicing import device_slice
from agent.workload.program import Program
from agent.workload.types import kernel_of

_MARKER = re.compile(r"^#line .*$", re.MULTILINE)
_BLANK = re.compile(r"\s+")


def doubled(original: Program, candidate: Program) -> str:
    """A kernel that is launched and has more definitions than in the original, in words: which of them a launch in the
    user's file means is for the compiler to choose, and it need not choose the one that was judged."""
    before, after = (Counter(kernel.name for kernel in side.document.kernels) for side in (original, candidate))
    for name in _launched(original) | _launched(candidate):
        if after[name] > max(1, before[name]):
            return (
                f"{after[name]} kernels are called `{name}`: which of them a launch means hangs on the types of its "
                "arguments; give the new one another name"
            )
    return ""


def changed(original: Program, candidate: Program) -> tuple[str, ...]:
    """The other kernels of the file that do not read as they did, by name; and macros that the rewrite defines by names
    which the rest of the file uses."""
    old, new = original.document, candidate.document
    if old.text == new.text:
        return ()
    own = _launched(original)
    others = dict.fromkeys(kernel.qualified_name for kernel in old.kernels if kernel.name not in own)
    alike = not others or _shared(old, own) == _shared(new, own)  # one look that tells in nearly all cases
    kernels = [f"the kernel `{name}`" for name in others if not alike and _text(old, name) != _text(new, name)]
    rest = names_in(b"\n".join(_outside(old, own)))
    macros = sorted({name for name, _ in _macros(new) - _macros(old)} & rest)
    return (*kernels, *(f"what `{name}` means to the rest of the file" for name in macros))


def _launched(program: Program) -> frozenset[str]:
    found: set[str] = set()
    for launch in program.plan.launches():
        try:
            found.add(kernel_of(program.document, launch.kernel)[0].name)
        except SourceError:
            continue
    return frozenset(found)


def _shared(document: Document, own: frozenset[str]) -> list[bytes]:
    """The device code of a file beside the kernels of these names, in order."""
    items = (item for item in leaves(entries(document)) if item.device and not item.gives & own)
    return [document.text[item.span.start : item.span.end] for item in items]


def _text(document: Document, name: str) -> str:
    """All that a kernel is made of, without where it stands."""
    try:
        return _BLANK.sub(" ", _MARKER.sub("", device_slice(document, (name,)).text))
    except SourceError as error:
        return type(error).__name__


def _outside(document: Document, own: frozenset[str]) -> Iterator[bytes]:
    """The code outside the kernels of these names."""
    code, start = scan(document.text).code, 0
    for kernel in document.kernels:
        if kernel.name in own:
            yield code[start : kernel.span.start]
            start = max(start, kernel.span.end)
    yield code[start:]


def _macros(document: Document) -> frozenset[tuple[str, str]]:
    found = (macro_of(directive) for directive in scan(document.text).directives)
    return frozenset((macro.name, f"{macro.parameters}{macro.body}") for macro in found if macro is not None)
