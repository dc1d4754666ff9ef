"""A tiled kernel: operands staged in shared memory a step at a time, and several outputs a thread."""

from tree_sitter import Node

from agent.analysis.affine import number
from agent.analysis.loops import Loop
from agent.analysis.patterns.product_nest import Load
from agent.analysis.syntax import contains, expression_of
from agent.ideas.product.draft import (
    Draft,
    Lines,
    defined,
    each_output,
    element,
    here,
    own_place,
    own_sum,
    own_values,
    valid,
)
from agent.ideas.product.launching import relaunched
from agent.ideas.product.names import Tile, key, names, together
from agent.ideas.product.shape import Product
from agent.ideas.product.stage import both_staged
from agent.ideas.product.texts import (
    Swaps,
    comment_above,
    names_outside,
    needed,
    own_definitions,
    seen,
    substituted,
    text_at,
    uniform,
    wrapped,
)
from agent.ideas.rewriting import Rewrite, indent_unit, with_unit
from agent.source.edits import Edit
from agent.source.span import Span
from agent.workload.plan import Plan


def tiled(product: Product, tile: Tile, same_launch: bool) -> Rewrite:
    """The kernel with its nest tiled. ``same_launch``: block and grid stay, each thread has one output."""
    chosen = names(product)
    draft = Draft(product, tile, chosen, same_launch, chosen.cells)
    lines = [*_head(draft), "", *_opening(draft), *turns(draft, both_staged(draft), _compute(draft)), *_closing(draft)]
    return rewrite(product, lines, None if same_launch else relaunched(product, tile))


def rewrite(product: Product, body: Lines, plan: Plan | None, headers: tuple[str, ...] = ()) -> Rewrite:
    """The kernel with ``body`` (lines without indentation) for what it did, in its own indentation."""
    document, kernel = product.view.document, product.view.kernel
    inner = [child for child in product.facts.body.named_children if child.type != "comment"]
    width = max(100, *(len(line) for line in document.slice_text(kernel.span).split("\n")))
    lines = [piece for line in _indented(body) for piece in wrapped(line, width)]
    text = with_unit("\n".join(lines), indent_unit(document, kernel))
    edit = Edit(Span(inner[0].start_byte, inner[-1].end_byte), text.strip("\n ").lstrip("\t").encode())
    return Rewrite((edit,), plan=plan, headers=headers)


def _indented(lines: Lines) -> Lines:
    """Lines with one step of four blanks for each brace that is open; pieces of several lines keep their own steps."""
    found: Lines = []
    depth = 1
    for piece in lines:
        depth -= piece.startswith("}")
        for line in piece.split("\n"):
            found.append(line if not line or line.startswith("#") else "    " * depth + line)
        depth += piece.endswith("{") and "\n" not in piece
    return found


def _head(draft: Draft) -> Lines:
    product, tile, own = draft.product, draft.tile, draft.names
    lines = [
        "// The block brings a step of both operands into shared memory, then each thread multiplies out of registers."
        if not tile.single
        else "// The block brings a step of both operands into shared memory, where its threads share them.",
        f"constexpr int {own.rows} = {tile.rows}, {own.cols} = {tile.cols}, {own.step} = {tile.step};  // of a block",
    ]
    if not tile.single:
        lines.append(
            f"constexpr int {own.own_rows} = {tile.own_rows}, {own.own_cols} = {tile.own_cols};  // of a thread"
        )
    for side, extent in ((product.rows, own.rows), (product.cols, own.cols)):
        pad = 1 if tile.single else 4
        align = "" if tile.single else "__align__(16) "
        lines += [
            f"__shared__ {align}{load.access.element} {own.tiles[key(load)]}[{own.step}][{extent} + {pad}];"
            for load in side.loads
        ]
    lines += _indices(draft)
    lines += outer_places(draft)
    lines += [text_at(product, one) for one in product.frame.before if uniform(product, one)]
    return lines


def _indices(draft: Draft) -> Lines:
    product, tile, own = draft.product, draft.tile, draft.names
    row, col = (together(one) for one in (tile.own_rows, tile.own_cols))
    times = (f" * {row}" if row > 1 else "", f" * {col}" if col > 1 else "")
    if draft.same_launch:
        x = product.view.block[0]
        thread = f"threadIdx.y * {x} + threadIdx.x"
        blocks = (f"blockIdx.{product.rows.digits[0].axis}", f"blockIdx.{product.cols.digits[0].axis}")
    else:
        thread, blocks = "threadIdx.x", ("blockIdx.y", "blockIdx.x")
    return [
        f"const int {own.thread} = {thread};",
        f"const int {own.first_row} = {blocks[0]} * {own.rows}, {own.first_col} = {blocks[1]} * {own.cols};",
        f"const int {own.own_row} = {own.thread} / {tile.along}{times[0]}, "
        f"{own.own_col} = {own.thread} % {tile.along}{times[1]};",
    ]


def outer_places(draft: Draft) -> Lines:
    """Coordinates that each block has one value of."""
    product = draft.product
    if draft.same_launch:
        return [text_at(product, one) for one in own_definitions(product)]
    lines, below = [], ""
    outer = product.outer
    for at, digit in enumerate(outer):
        shifted = f"blockIdx.z / ({below})" if below else "blockIdx.z"
        extent = product.extents[digit].text
        kind = "int" if digit.symbol.type == "auto" else digit.symbol.type
        last = at == len(outer) - 1
        lines.append(f"const {kind} {digit.name} = {shifted}{'' if last else f' % ({extent})'};")
        below = f"{below} * ({extent})" if below else f"{extent}"
    return lines


def _opening(draft: Draft) -> Lines:
    """The accumulators and what they start from."""
    product = draft.product
    nest = product.frame.nest
    extent = "" if draft.tile.single else f"[{draft.names.own_rows}][{draft.names.own_cols}]"
    swaps = own_values(draft)
    lines: Lines = []
    starts: Lines = []
    sources: list[Node] = []
    for symbol in nest.accumulators:
        if draft.tile.single and symbol.init is not None and _says_the_same(draft, symbol.init):
            lines.append(f"{symbol.type} {symbol.name} = {text_at(product, symbol.init)};")
            continue
        lines.append(f"{symbol.type} {symbol.name}{extent} = {{}};")
        if symbol.init is not None and not is_zero(text_at(product, symbol.init)):
            start = substituted(product, symbol.init, symbol.init, swaps)
            starts.append(f"{symbol.name}{element(draft)} = {start};")
            sources.append(symbol.init)
    for cell in nest.cells:
        name = draft.cells[cell.node.start_byte]
        lines.append(f"{cell.element} {name}{extent} = {{}};")
        if not _set_first(draft, cell.node):
            starts.append(f"{name}{element(draft)} = {text_at(product, cell.node)};")
            sources.append(cell.node)
    for statement in product.frame.opening:
        if _sets_loop_variable(draft, statement):
            continue
        plain = plainly_set(statement)
        if plain is None or not is_zero(text_at(product, plain)):
            starts.append(substituted(product, statement, statement, swaps))
            sources.append(statement if plain is None else plain)
    if not starts:
        return [*lines, ""]
    if all(_says_the_same(draft, one) for one in sources):
        return [*lines, *each_output(draft, starts), ""]
    body = [f"if ({valid(draft)}) {{", *defined(draft, sources, swaps), *starts, "}"]
    body = [*here(draft, body), *body]
    return [*lines, *(each_output(draft, body) if not draft.tile.single else ["{", *body, "}"]), ""]


def _says_the_same(draft: Draft, node: Node) -> bool:
    """Whether an expression has one value for all outputs of a block."""
    product = draft.product
    reached = seen(product, [node])
    return not (reached.over & {*product.rows.digits, *product.cols.digits} or reached.turns or reached.loose)


def is_zero(written: str) -> bool:
    return written.strip().rstrip("fFlLuU").rstrip("0").rstrip(".").strip("0") == "" and written.strip()[:1] in "0."


def plainly_set(statement: Node) -> Node | None:
    """The value of ``target = value;``."""
    assignment = expression_of(statement)
    operator = None if assignment is None else assignment.child_by_field_name("operator")
    plain = assignment is not None and operator is not None and operator.text == b"="
    return assignment.child_by_field_name("right") if assignment is not None and plain else None


def _set_first(draft: Draft, cell: Node) -> bool:
    """Whether the kernel sets a cell before the nest, so that what was there does not matter."""
    name = draft.cells[cell.start_byte]
    swaps = own_values(draft)
    for statement in draft.product.frame.opening:
        assignment = expression_of(statement)
        left = None if assignment is None else assignment.child_by_field_name("left")
        if left is not None and swaps.get(left.start_byte, (0, ""))[1].startswith(name) and assignment is not None:
            operator = assignment.child_by_field_name("operator")
            return operator is not None and operator.text == b"="
    return False


def _sets_loop_variable(draft: Draft, statement: Node) -> bool:
    assignment = expression_of(statement)
    left = None if assignment is None else assignment.child_by_field_name("left")
    symbol = None if left is None or left.type != "identifier" else draft.product.facts.symbols.resolve(left)
    return any(loop.variable is symbol for loop in draft.product.frame.nest.loops)


def turns(draft: Draft, staging: Lines, compute: Lines) -> Lines:
    """The nest: steps of ``staging`` and of ``compute``."""
    product, own = draft.product, draft.names
    step = product.step
    around = [loop for loop in product.frame.nest.loops if loop is not step]
    lines = [_header(draft, loop) for loop in around]
    start, bound = _start(draft, step), text_at(product, step.bound_node)
    lines += [
        f"for ({step.variable.type} {own.first_turn} = {start}; {own.first_turn} {step.relation} {bound}; "
        f"{own.first_turn} += {own.step}) {{",
        *staging,
        "__syncthreads();",
        *compute,
        "__syncthreads();",
        "}",
    ]
    return [*lines, *("}" for _ in around), ""]


def _start(draft: Draft, loop: Loop) -> str:
    if loop.start == number(0):
        return "0"
    initializer = loop.node.child_by_field_name("initializer")
    init = loop.variable.init if initializer is not None and contains(initializer, loop.variable.declarator) else None
    if init is None and initializer is not None:
        init = initializer.child_by_field_name("right")
    assert init is not None
    return text_at(draft.product, init)


def _header(draft: Draft, loop: Loop) -> str:
    name, bound = loop.variable.name, text_at(draft.product, loop.bound_node)
    kind = loop.variable.type
    return f"for ({kind} {name} = {_start(draft, loop)}; {name} {loop.relation} {bound}; ++{name}) {{"


def _compute(draft: Draft) -> Lines:
    product, tile, own = draft.product, draft.tile, draft.names
    nest, step = product.frame.nest, product.step
    swaps = own_values(draft)
    lines: Lines = []
    uses: Lines = []
    for side, rows in ((product.rows, True), (product.cols, False)):
        for load in side.loads:
            source = f"{own.tiles[key(load)]}[{own.at}][{own_place(draft, rows)}]"
            for node in load.nodes:
                turn = own.down if rows else own.along
                swaps[node.start_byte] = node.end_byte, source if tile.single else f"{own.owns[key(load)]}[{turn}]"
            if not tile.single:
                uses += _fetch(draft, load, source, rows)
    declared = [one for one in needed(product, list(nest.updates), swaps) if not uniform(product, one)]
    declared = [one for one in declared if not own_sum(draft, one)]
    inner = [_on_one_line(substituted(product, one, one, swaps)) for one in (*declared, *nest.updates)]
    open_ended = not nest.product or _loose_turns(draft, swaps)
    lines += ["#pragma unroll", f"for (int {own.at} = 0; {own.at} < {own.step}; ++{own.at}) {{"]
    if open_ended:
        bound = text_at(product, step.bound_node)
        lines += [
            f"const {step.variable.type} {step.variable.name} = {own.first_turn} + {own.at};",
            f"if (!({step.variable.name} {step.relation} {bound})) break;",
        ]
    return [*lines, *uses, *each_output(draft, inner), "}"]


def _on_one_line(written: str) -> str:
    return written if "//" in written else " ".join(written.split())


def _loose_turns(draft: Draft, staged: Swaps) -> bool:
    """Whether an update uses the step's variable by itself, or reads an element that is not staged."""
    product = draft.product
    texts = [*product.frame.nest.updates, *needed(product, list(product.frame.nest.updates), staged)]
    return any(
        product.facts.symbols.resolve(name) is product.step.variable
        for one in texts
        for name in names_outside(one, staged)
    )


def _fetch(draft: Draft, load: Load, source: str, rows: bool) -> Lines:
    own = draft.names
    name = own.owns[key(load)]
    turn, count = (own.down, own.own_rows) if rows else (own.along, own.own_cols)
    return [
        f"{load.access.element} {name}[{count}];",
        "#pragma unroll",
        f"for (int {turn} = 0; {turn} < {count}; ++{turn}) {name}[{turn}] = {source};",
    ]


def _closing(draft: Draft) -> Lines:
    """Each output's own statements, where the thread has such an output."""
    product = draft.product
    after = product.frame.after
    # A cell is written back first, so that what follows finds it where it looks for it.
    swaps = {at: swap for at, swap in own_values(draft).items() if not _is_cell(draft, at)}
    body: Lines = []
    for cell in product.frame.nest.cells:
        name = draft.cells[cell.node.start_byte]
        body.append(f"{text_at(product, cell.node)} = {name}{element(draft)};")
    nodes = [*after, *(cell.node for cell in product.frame.nest.cells)]
    if after:
        body.append(substituted(product, comment_above(after[0]), after[-1], swaps))
    full = [f"if ({valid(draft)}) {{", *defined(draft, nodes, swaps), *body, "}"]
    return each_output(draft, [*here(draft, full), *full])


def _is_cell(draft: Draft, at: int) -> bool:
    return any(
        access.node.start_byte == at and access.root is cell.root and access.index == cell.index
        for cell in draft.product.frame.nest.cells
        for access in draft.product.facts.accesses
    )
