"""Packs of elements that lie in shared memory already, as far as there was room."""

from attrs import frozen
from tree_sitter import Node

from agent.analysis.loops import Loop
from agent.analysis.syntax import contains, descendants
from agent.ideas.elements.pieces import Lines, at, rewritten
from agent.ideas.rewriting import source_text
from agent.ideas.rowpass.writing import with_pragma
from agent.ideas.vectors.moving import Moving
from agent.ideas.vectors.site import Site
from agent.ideas.view import View


@frozen(eq=False)
class Held:
    """Elements that loops find in the shared array ``row``, up to number ``count`` (names in the new code), once the
    loop ``first`` has put them there: those of ``reads`` (places of accesses). ``made`` are the places in the last two
    loops of what both make of an element: it takes the element's place in the first of them. ``whole`` is the name of
    the number of elements that come in packs; those behind them are worked on one by one. ``at_once`` packs of a thread
    are under way together."""

    row: str
    count: str
    whole: str
    at_once: int
    first: Node
    reads: frozenset[tuple[int, int]]
    made: tuple[Node, Node] | None

    def near(self, name: str, first: str, counter: str, moves: Moving) -> "Near":
        return Near(self, name, first, counter, moves)

    def around(self, view: View, loop: Loop, packs: list[str], lines: Lines) -> list[str]:
        """The loop over packs (its lines), and the user's own for what is left."""
        assert loop.variable.init is not None
        start = source_text(view.document, loop.variable.init)
        rest = lines.statement(loop.node, {at(loop.variable.init): f"{self.whole} + {start}"})
        pragma = [] if with_pragma(loop.node) != loop.node else [f"#pragma unroll {self.at_once}"]
        return [*pragma, *packs, *rest]


@frozen
class Near:
    """The text around a pack ``name`` of elements that may lie in shared memory."""

    held: Held
    name: str
    first: str
    counter: str
    moves: Moving

    def loaded(self, site: Site, address: str, lines: Lines, stored: bool) -> list[str]:
        """Its declaration; ``address`` is where it lies in global memory."""
        far = self.moves.load(address, "")
        if site.loop is not None and site.loop.node == self.held.first:
            return [f"const auto {self.name} = {far};", self._put()]
        constant = "" if stored or self._inside(site, 0) or self._inside(site, 1) else "const "
        kept = self.moves.load(f"&{self.held.row}[{self.first}]", "")
        return [
            f"{constant}auto {self.name} = {self.first} < {self.held.count} ? {kept}",
            *lines.deeper([f": {far};"]),
        ]

    def made(
        self, view: View, site: Site, replaced: dict[tuple[int, int], str], lines: Lines
    ) -> tuple[list[str], list[str]]:
        """(in front of the loop over the pack's elements, in it) what makes of an element what is kept instead; from
        there on the element's text stands for it."""
        element = f"{self.name}.v[{self.counter}]"
        which = self._which(site)
        if self.held.made is None or which is None:
            return [], []
        node = self.held.made[which]
        value = rewritten(view, node, replaced)
        inner = [place for place in replaced if node.start_byte <= place[0] and place[1] <= node.end_byte]
        names = [one for one in descendants(node, "identifier") if view.facts.symbols.resolve(one) is site.variable]
        numbered = any(not any(start <= one.start_byte < end for start, end in inner) for one in names)
        for place in inner:
            del replaced[place]
        replaced[at(node)] = element
        if which == 0:
            return [], [f"{element} = {value};"]
        if numbered:
            replaced[at(node)] = f"({self.first} < {self.held.count} ? {element} : {value})"
            return [], []
        over = f"for (int {self.counter} = 0; {self.counter} < {self.moves.width}; ++{self.counter})"
        inside = ["#pragma unroll", f"{over} {element} = {value};"]
        return lines.block(f"if ({self.first} >= {self.held.count})", inside), []

    def put_back(self, site: Site) -> list[str]:
        """What was made of the elements takes their place."""
        return [self._put()] if self._inside(site, 0) else []

    def _put(self) -> str:
        return f"if ({self.first} < {self.held.count}) " + self.moves.store(
            f"&{self.held.row}[{self.first}]", self.name, ""
        )

    def _which(self, site: Site) -> int | None:
        return next((n for n in (0, 1) if self._inside(site, n)), None)

    def _inside(self, site: Site, which: int) -> bool:
        made = self.held.made
        return made is not None and site.loop is not None and contains(site.loop.node, made[which])


@frozen(eq=False)
class There(Held):
    """All elements of the packs are held: in ``row`` or, where ``register`` is an element of an array of packs, there;
    ``count``, ``at_once`` and ``first`` say nothing."""

    register: str | None = None

    def near(self, name: str, first: str, counter: str, moves: Moving) -> "Near":
        return Nearer(self, self.register or name, first, counter, moves)


@frozen
class Nearer(Near):
    """The text around a pack that is held."""

    def loaded(self, site: Site, address: str, lines: Lines, stored: bool) -> list[str]:
        assert isinstance(self.held, There)
        if self.held.register is not None:
            return []
        constant = "" if stored or self._inside(site, 0) else "const "
        return [f"{constant}auto {self.name} = {self.moves.load(f'&{self.held.row}[{self.first}]', '')};"]

    def made(
        self, view: View, site: Site, replaced: dict[tuple[int, int], str], lines: Lines
    ) -> tuple[list[str], list[str]]:
        element, which = f"{self.name}.v[{self.counter}]", self._which(site)
        if self.held.made is None or which is None:
            return [], []
        node = self.held.made[which]
        value = rewritten(view, node, replaced)
        for place in [one for one in replaced if node.start_byte <= one[0] and one[1] <= node.end_byte]:
            del replaced[place]
        replaced[at(node)] = element
        return [], [f"{element} = {value};"] if which == 0 else []

    def put_back(self, site: Site) -> list[str]:
        assert isinstance(self.held, There)
        if self.held.register is not None or not self._inside(site, 0):
            return []
        return [self.moves.store(f"&{self.held.row}[{self.first}]", self.name, "")]
