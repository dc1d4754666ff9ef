"""Writing the rewrite: each tree becomes one call."""

from collections.abc import Callable, Sequence

from agent.analysis.syntax import contains, descendants, next_statement, text
from agent.ideas.reduction.helpers import NAMES, Shape, every_thread, first_element, first_thread, shape_of
from agent.ideas.reduction.site import Site, used_after
from agent.ideas.rewriting import (
    Rewrite,
    fresh_local,
    fresh_name,
    indented,
    remove,
    remove_between,
    replace,
    replace_between,
    source_text,
)
from agent.ideas.view import View
from agent.source.edits import Edit


def in_every_thread(view: View, sites: Sequence[Site]) -> Rewrite:
    """The result in a register of every thread; reads of ``array[0]`` become reads of it."""
    return _in_registers(view, sites, "", every_thread)


def in_first_thread(view: View, sites: Sequence[Site]) -> Rewrite:
    """The result in a register of thread 0, which alone reads it."""
    return _in_registers(view, sites, "_in_first", first_thread)


def _in_registers(view: View, sites: Sequence[Site], suffix: str, make: Callable[[Shape, str], str]) -> Rewrite:
    names = _Names(view)
    edits: list[Edit] = []
    for site in sites:
        edits += _registers(view, site, names.of(_shape(view, site), suffix))
    return Rewrite(tuple(edits), names.helpers(make))


def in_first_element(view: View, sites: Sequence[Site]) -> Rewrite:
    """The result in ``array[0]`` as before; the reads stay as they are."""
    names = _Names(view)
    edits: list[Edit] = []
    for site in sites:
        call = f"{names.of(_shape(view, site), '_into')}({{}}, {site.array.name});"
        edits += _setup(view, site)
        edits.append(_in_place(view, site, call))
    return Rewrite(tuple(edits), names.helpers(first_element))


class _Names:
    """Names for the helpers: one for each shape, new to the file."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.chosen: dict[Shape, str] = {}

    def of(self, shape: Shape, suffix: str) -> str:
        if shape not in self.chosen:
            wanted = NAMES[shape.op] + suffix
            self.chosen[shape] = fresh_name(styled(wanted, self.view), self.view.document, *self.chosen.values())
        return self.chosen[shape]

    def helpers(self, make: Callable[[Shape, str], str]) -> tuple[str, ...]:
        return tuple(make(shape, name) for shape, name in self.chosen.items())


def styled(name: str, view: View) -> str:
    """The name as the kernel's own is written: ``block_max``, or ``blockMax`` beside a kernel called
    ``softmaxRows``."""
    own = view.kernel.name
    if "_" in own or own == own.lower() or own == own.upper():
        return name
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _shape(view: View, site: Site) -> Shape:
    templated = any(parameter.name == site.array.type for parameter in view.kernel.template)
    return shape_of(site.tree.combination, site.array.type, view.block[1:] != (1, 1), templated)


def _registers(view: View, site: Site, helper: str) -> list[Edit]:
    document = view.document
    array = site.array.name
    edits = _setup(view, site)
    following = next_statement(site.tree.statement)
    inline = (
        site.quiet
        and site.value is not None
        and not site.reused
        and len(site.reads) == 1
        and following is not None
        and following.type in ("expression_statement", "declaration")
        and contains(following, site.reads[0].node)
        and not any(True for _ in descendants(following, "conditional_expression", "lambda_expression"))
        and "&&" not in text(following)
        and "||" not in text(following)
    )
    if inline:
        assert site.value is not None
        call = f"{helper}({source_text(document, site.value)}, {array})"
        return [*edits, remove_between(document, site.first, site.tree.statement), replace(site.reads[0].node, call)]
    holder = _holder(view, site)
    name = holder or fresh_local(styled(f"{array}_{site.tree.combination.op}", view), document, view.kernel)
    declare = "" if holder else f"const {site.array.type} "
    tail = "\n__syncthreads();" if site.reused else ""
    edits.append(_in_place(view, site, f"{declare}{name} = {helper}({{}}, {array});{tail}"))
    edits += [replace(read.node, name) for read in site.reads]
    return edits


def _holder(view: View, site: Site) -> str | None:
    """The user's own variable for the result: the one whose value was stored, where nothing needs its old value."""
    if site.value is None or site.value.type != "identifier":
        return None
    symbol = view.facts.symbols.resolve(site.value)
    if symbol is None or symbol.is_memory or symbol.const or symbol.escapes or symbol.type != site.array.type:
        return None
    return None if used_after(symbol, site.tree.statement, view.facts) else symbol.name


def _in_place(view: View, site: Site, call: str) -> Edit:
    """``call`` (with ``{}`` for the value) in the place of the store, the barrier and the tree."""
    document = view.document
    array = site.array.name
    own = f"{array}[{source_text(document, site.tree.thread_node)}]"
    if site.value is not None and site.quiet:
        lines = call.format(source_text(document, site.value))
    else:
        # Someone may still be reading the array: take the value, let all arrive, then write.
        part = fresh_local(styled(f"{array}_part", view), document, view.kernel)
        taken = own if site.value is None else source_text(document, site.value)
        lines = f"const {site.array.type} {part} = {taken};\n__syncthreads();\n{call.format(part)}"
    return replace_between(site.first, site.tree.statement, indented(document, site.first, lines))


def _setup(view: View, site: Site) -> list[Edit]:
    """The declaration of a ``while`` tree's counter goes with the tree, if it stands before the replaced statements."""
    setup = site.tree.loop.setup
    if setup is None or setup.start_byte >= site.first.start_byte or setup.type != "declaration":
        return []
    if len(setup.children_by_field_name("declarator")) != 1:
        return []
    return [remove(view.document, setup)]
