"""Requests for tests, from a kernel's source and a few words about its launch."""

from agent.ideas.idea import Scope
from agent.ideas.request import Request
from agent.source.document import parse
from agent.workload.expression import Expression
from agent.workload.plan import Launch, Plan
from agent.workload.workload import Access, Buffer, Constant, Domain, Origin, Size, Workload

HERE = Origin("directive")
Three = tuple[str, str, str]


def expressions(*texts: str) -> Three:
    return tuple(Expression.parse(text) for text in (*texts, "1", "1", "1")[:3])  # type: ignore[return-value]


def request(
    source: str,
    *,
    grid: tuple[str, ...] = ("rows",),
    block: tuple[str, ...] = ("256",),
    arguments: str = "",
    shared: str = "0",
    scope: Scope = Scope.PLAN,
    constants: dict[str, str] | None = None,
    kernel: str | None = None,
    **sizes: int,
) -> Request:
    """A request for the first kernel of ``source`` (or the named one). Every pointer parameter gets a buffer of its
    own name with as many elements as all sizes multiplied; scalars are passed under their own names unless
    ``arguments`` says otherwise."""
    document = parse(source.encode(), "test.cu")
    target = document.kernel(kernel) if kernel else document.kernels[0]
    names = [text.strip() for text in arguments.split(",")] if arguments else [p.name for p in target.parameters]
    extent = Expression.parse(" * ".join(sizes) or "1")
    buffers = tuple(
        Buffer(p.name, "f32", extent, Access.IN if p.const else Access.INOUT, Domain("normal"), HERE)
        for p in target.parameters
        if p.pointer_depth
    )
    launch = Launch(
        target.name,
        expressions(*grid),
        expressions(*block),
        Expression.parse(shared),
        tuple(Expression.parse(name) for name in names),
    )
    workload = Workload(
        kernel=target.name,
        sizes=tuple(Size(name, value, HERE) for name, value in sizes.items()),
        constants=tuple(Constant(name, Expression.parse(text), HERE) for name, text in (constants or {}).items()),
        buffers=buffers,
        plan=Plan((launch,)),
    )
    return Request(document, target, workload, workload.plan, scope)
