"""Launch sites as values: ``kernel<<<grid, block, shared, stream>>>(arguments)``."""

from attrs import frozen

from agent.source.span import Span


@frozen
class LaunchSite:
    """One ``<<<>>>`` expression, its parts as written.

    ``callee`` is the text before the chevrons (``ns::softmax<float>``), ``kernel`` its last bare name (``softmax``),
    ``template_arguments`` what stands in its angle brackets. ``function`` is the enclosing function's name and
    ``function_span`` its definition (None at file level, or inside a macro body). ``loops`` are the spans of the
    enclosing loop statements, outermost first. ``how`` is empty for a launch that names its kernel in front of ``<<<``,
    else what launches it (``a pointer``, ``cudaLaunchKernelEx``); ``cluster`` the clusters that such a call asks for.
    """

    kernel: str
    callee: str
    template_arguments: tuple[str, ...]
    grid: str
    block: str
    shared: str | None
    stream: str | None
    arguments: tuple[str, ...]
    span: Span
    grid_span: Span
    block_span: Span
    shared_span: Span | None
    argument_spans: tuple[Span, ...]
    line: int
    function: str | None
    function_span: Span | None
    loops: tuple[Span, ...]
    damage: str | None
    how: str = ""
    cluster: str | None = None
