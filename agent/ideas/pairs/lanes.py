"""Several lanes of a warp for each element: each takes every so many of the others, and shuffles add up."""

from attrs import evolve

from agent.analysis.affine import number
from agent.analysis.patterns.pair_loop import Total
from agent.ideas.pairs.site import Site, declaration_of, element, starts_at_zero, written_before
from agent.ideas.plans import each_launch
from agent.ideas.rewriting import Rewrite, fresh_local, fresh_name, insert_after, insert_before, replace, source_text
from agent.source.edits import Edit
from agent.workload.expression import build
from agent.workload.expression import number as numeral
from agent.workload.plan import Launch, Plan

HELPER = """\
// The {words} of `value` over the {count} neighbouring lanes that share an element; each of them gets it.
template <int {count}>
__device__ __forceinline__ {type} {name}({type} value) {{
    const unsigned lanes = ({count} == 32 ? ~0u : (1u << {count} % 32) - 1) << threadIdx.x % 32 / {count} * {count};
    for (int offset = {count} / 2; offset > 0; offset /= 2) {fold}
    return value;
}}"""
WORDS = {"sum": "sum", "max": "largest", "min": "smallest"}
SHUFFLED = "__shfl_xor_sync(lanes, value, offset)"


def shared_by_lanes(site: Site, lanes: int) -> Rewrite:
    """The kernel with ``lanes`` lanes for each element, and as many times the blocks."""
    document, kernel = site.view.document, site.view.kernel
    lane = fresh_local("lane", document, kernel)
    count = fresh_name("LANES", document)
    declared = declaration_of(site.own)
    assert declared is not None and site.own.symbol.init is not None
    place = source_text(document, site.own.symbol.init)
    edits: list[Edit] = [
        insert_before(
            document,
            declared,
            f"constexpr int {count} = {lanes};  // lanes that share an element\n"
            f"const int {lane} = threadIdx.x % {count};",
        ),
        replace(site.own.symbol.init, f"({place}) / {count}"),
        *_loop(site, lane, count),
    ]
    names: dict[tuple[str, str, str], str] = {}
    lines = []
    for total in site.pairs.totals:
        key = (total.op, element(total) or "", "" if total.op == "sum" else total.function)
        if key not in names:
            names[key] = fresh_name(f"lanes_{total.op}", document, *names.values())
        lines.append(f"{total.spelled} = {names[key]}<{count}>({total.spelled});")
    loop = site.pairs.loop.node
    edits.append(insert_after(document, loop, "\n".join([*lines, f"if ({lane} != 0) return;"])))
    fresh = [one for one in site.pairs.totals if one.op == "sum" and not _is_zero(one, site)]
    if fresh:
        edits.append(insert_before(document, loop, f"if ({lane} != 0) {' = '.join(one.spelled for one in fresh)} = 0;"))
    return Rewrite(tuple(edits), tuple(_helper(*key, name, count) for key, name in names.items()), _plan(site, lanes))


def _is_zero(total: Total, site: Site) -> bool:
    return starts_at_zero(total) and not written_before(total, site.pairs.loop.node)


def _helper(op: str, kind: str, function: str, name: str, count: str) -> str:
    if op == "sum":
        fold = f"value += {SHUFFLED};"
    elif function == "compare":
        sign = ">" if op == "max" else "<"
        fold = f"{{\n        const {kind} other = {SHUFFLED};\n        if (other {sign} value) value = other;\n    }}"
    else:
        fold = f"value = {function}(value, {SHUFFLED});"
    return HELPER.format(words=WORDS[op], type=kind, name=name, fold=fold, count=count)


def _loop(site: Site, lane: str, count: str) -> list[Edit]:
    """The loop from the lane's own first element on, in steps of all lanes."""
    loop = site.pairs.loop
    header = loop.node.child_by_field_name("initializer")
    assert header is not None
    start = loop.variable.init if header.start_byte <= loop.variable.declarator.start_byte < header.end_byte else None
    if start is None:
        start = header.child_by_field_name("right")
    assert start is not None
    written = source_text(site.view.document, start)
    begin = lane if loop.start == number(0) else f"{written} + {lane}"
    return [replace(start, begin), replace(loop.update, f"{loop.variable.name} += {count}")]


def _plan(site: Site, lanes: int) -> Plan:
    def changed(launch: Launch) -> Launch:
        return evolve(launch, grid=(build("*", [launch.grid[0], numeral(lanes)]), *launch.grid[1:]))

    return each_launch(site.view.request.plan, site.view.kernel, changed)
