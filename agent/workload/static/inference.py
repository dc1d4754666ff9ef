"""Static inference: host code of the file -> Workload, or the questions that it leaves open."""

import functools
from collections.abc import Iterator, Mapping

from attrs import evolve

from agent.source.document import Document
from agent.source.kernel import Kernel
from agent.source.names import names_in
from agent.source.nodes import descendants
from agent.workload.bind import bind
from agent.workload.errors import NoWorkload, WorkloadError
from agent.workload.joined.headers import with_headers
from agent.workload.static import arguments, assemble, options, refusal
from agent.workload.static.declarations import declare, declare_enumerators, free_parameter
from agent.workload.static.execute import is_interesting, run_body
from agent.workload.static.run_line import RunLine, run_lines
from agent.workload.static.state import Facts, OutOfWork, State, device_names, read_facts
from agent.workload.static.unit import Unit, alone, unit_of
from agent.workload.static.values import Item, LaunchItem, LoopItem
from agent.workload.workload import Workload


def infer(
    document: Document,
    kernel: Kernel,
    answers: Mapping[str, int | float] | None = None,
    flags: tuple[str, ...] = (),
) -> Workload:
    """The workload that the host code of the same file gives ``kernel``.

    ``answers`` are numbers that the user told for names which the file leaves open, ``flags`` those of a command line,
    which overrule what files say that the program is compiled with. Raises NoWorkload with questions
    and a draft directive where something stays open; never guesses a size.
    """
    if kernel.damage:
        raise NoWorkload(f"`{kernel.name}` cannot be read: {kernel.damage}", line=kernel.line)
    unit = unit_of(document, kernel, flags)
    read = unit.kernel(kernel)
    if read is None:
        message = f"`{kernel.name}` stands in a branch of `#if` that is not compiled; write a directive above it"
        question = f"launch of `{kernel.name}`?"
        raise NoWorkload(message, (question,), kernel.line, refusal.blank_draft(document, kernel))
    try:
        found = unit.placed(_found(unit, read, dict(answers or {})))
        bind(found, found.plan, None, document)
    except NoWorkload as error:
        raise NoWorkload(error.message, error.questions, unit.line(error.line) or kernel.line, error.draft) from None
    except WorkloadError as error:
        raise NoWorkload(f"no workload for `{kernel.name}`: {error.message}", (), kernel.line) from None
    return evolve(found, flags=tuple(_flags(unit)))


def _found(unit: Unit, kernel: Kernel, answers: dict[str, int | float]) -> Workload:
    if (barred := refusal.unlaunchable(unit.document, kernel)) is not None:
        raise barred
    facts, reached = trace(unit, kernel, answers)
    sites = list(candidates(facts.items, kernel.name))
    if not sites:
        raise _no_launch(unit, kernel, reached)
    failure: NoWorkload | None = None
    for path, item in sorted(sites, key=lambda site: site[1].conditional):
        try:
            return assemble.workload(unit.document, kernel, facts, path, item)
        except NoWorkload as error:
            if failure is None or _openness(error) < _openness(failure):
                failure = error
    assert failure is not None
    raise failure


def _flags(unit: Unit) -> Iterator[str]:
    """The macros of the Makefile that the kernel's file, or a header of it, may be compiled with."""
    words = names_in(with_headers(unit.own))
    for flag in unit.joined.flags.values():
        if flag.certain and not flag.stated and flag.name in words:
            yield f"-D{flag.name}={flag.body}"


def _openness(error: NoWorkload) -> tuple[bool, int]:
    """Fewer questions are better, but a launch that no answer helps is worse than all of them."""
    return not error.draft, len(error.questions)


def trace(
    unit: Unit, kernel: Kernel, answers: dict[str, int | float], followed: frozenset[str] = frozenset()
) -> tuple[Facts, str]:
    """Read the host code from its entry: ``main`` where it leads to a launch in one of the runs in the Makefile, else
    the outermost function that does. Branches by the numbers in ``followed`` are read both ways."""
    document = unit.document
    names = device_names(document, frozenset[str]().union(*(other.uses for other in document.kernels)))
    entries = list(_entries(document, kernel, read_facts(unit, names, answers)))
    facts = read_facts(unit, names, answers)
    told = tuple(sorted(answers.items()))
    for entry in entries or [""]:
        for command in (run_lines(unit.root) if entry == "main" else ()) or (None,):
            facts = _traced(unit, entry, told, command, followed).copy()
            if any(True for _ in candidates(facts.items, kernel.name)):
                return facts, entry
    return facts, entries[0] if entries else ""


@functools.lru_cache(maxsize=4)
def _traced(
    unit: Unit,
    entry: str,
    answers: tuple[tuple[str, int | float], ...],
    command: RunLine | None,
    followed: frozenset[str] = frozenset(),
) -> Facts:
    """What reading from an entry finds, for all kernels of the program."""
    document = unit.document
    names = device_names(document, frozenset[str]().union(*(kernel.uses for kernel in document.kernels)))
    facts = read_facts(unit, names, dict(answers), command)
    facts.followed = followed
    _run_entry(document, entry, facts)
    return facts


def trace_all(document: Document, followed: frozenset[str] = frozenset()) -> Facts:
    """Read the host code from ``main``, or from the outermost function that launches anything. Branches by the numbers
    in ``followed`` are read both ways."""
    names = device_names(document, frozenset[str]().union(*(kernel.uses for kernel in document.kernels)))
    facts = read_facts(alone(document), names, {})
    for kernel in document.kernels:
        found, _ = trace(alone(document), kernel, {}, followed)
        if any(True for _ in candidates(found.items, kernel.name)):
            return found
    return facts


def _run_entry(document: Document, entry: str, facts: Facts) -> None:
    state = State()
    try:
        options.begin(facts, state)
        declare_enumerators(facts, state)
        for node in _file_level(document):
            declare(node, facts, state, file_level=True)
        facts.file_state = state.fork()
        if entry:
            function = facts.functions[entry][0]
            facts.reach(function.node)
            with facts.call_scope():
                for index, parameter in enumerate(function.parameters):
                    if entry == "main":
                        if index == 0:
                            facts.declare("argc", arguments.count(facts), "int", state)
                        elif index == 1:
                            facts.declare("argv", arguments.ARGV, "char**", state)
                        continue
                    free_parameter(parameter, entry, facts, state)
                run_body(function.node, facts, state)
    except (OutOfWork, RecursionError):
        facts.notes.append("the host code is too long to be read whole")


def _file_level(document: Document) -> Iterator:  # type: ignore[type-arg]
    from agent.source.nodes import enclosing

    for node in descendants(document.tree.root_node, "declaration"):
        if enclosing(node, "function_definition", "struct_specifier", "class_specifier", "lambda_expression") is None:
            yield node


def _entries(document: Document, kernel: Kernel, facts: Facts) -> Iterator[str]:
    """Functions to start from, best first: ``main``, then what nothing in the file calls, from the launch outwards."""
    if "main" in facts.functions and is_interesting(facts.functions["main"][0].node, facts):
        yield "main"
    callers = _callers(facts)
    sites = [*document.launches, *document.indirect_launches]
    around = list(dict.fromkeys(site.function for site in sites if site.kernel == kernel.name and site.function))
    around = around or list(_naming(kernel, facts))
    seen: set[str] = set()
    for start in around:
        name, turn = start.split("::")[-1], 0
        while turn < 8 and callers.get(name):
            following = next((caller for caller in callers[name] if caller not in seen), None)
            if following is None:
                break
            seen.add(following)
            name, turn = following, turn + 1
        if name in facts.functions and name != "main":
            yield name
        if start in facts.functions and start != name:
            yield start


def _naming(kernel: Kernel, facts: Facts) -> Iterator[str]:
    """The functions that name a kernel and may launch it: through a pointer, or by a call of the runtime."""
    for name, functions in facts.functions.items():
        if name != "main" and any(kernel.name in names_in(one.node.text or b"") for one in functions):
            yield name


def _callers(facts: Facts) -> dict[str, list[str]]:
    import re

    found: dict[str, list[str]] = {}
    for caller, functions in facts.functions.items():
        text = " ".join(facts.node_text(function.node) for function in functions)
        for name in set(re.findall(r"\b([A-Za-z_]\w*)\s*(?:<[^;(]*>)?\s*\(", text)):
            if name in facts.functions and name != caller:
                found.setdefault(name, []).append(caller)
    return found


def candidates(
    items: "list[Item] | tuple[Item, ...]", kernel: str, path: tuple[LoopItem, ...] = ()
) -> Iterator[tuple[tuple[LoopItem, ...], LaunchItem]]:
    """Every launch of ``kernel``, with the repeats around it, in the order met."""
    for item in items:
        if isinstance(item, LaunchItem) and item.kernel == kernel:
            yield path, item
        elif isinstance(item, LoopItem):
            yield from candidates(item.body, kernel, (*path, item))


def _no_launch(unit: Unit, kernel: Kernel, entry: str) -> NoWorkload:
    document = unit.document
    sites = [*document.launches, *document.indirect_launches]
    sites = [site for site in sites if site.kernel == kernel.name]
    draft = refusal.blank_draft(document, kernel)
    if not sites:
        message = f"nothing in this file launches `{kernel.name}`; write a directive above it that says how it is run"
        return NoWorkload(message, (f"launch of `{kernel.name}`?",), kernel.line, draft)
    message = f"the launch of `{kernel.name}` at {unit.at(sites[0].line)} is not reached from `{entry or 'main'}`"
    return NoWorkload(
        message + "; write a directive above the kernel", (f"launch of `{kernel.name}`?",), sites[0].line, draft
    )
