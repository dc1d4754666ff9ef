"""Values that an edit before them moved: the same, some bytes and lines further on."""

from agent.source.blanking import Blank
from agent.source.kernel import Kernel, Parameter
from agent.source.launch import LaunchSite
from agent.source.span import Span


def moved_kernel(kernel: Kernel, by: int, lines: int) -> Kernel:
    """Written out, and not with ``evolve``: a file has hundreds, and this happens on each keystroke."""
    return Kernel(
        kernel.name,
        kernel.qualified_name,
        kernel.template,
        tuple([
            Parameter(p.name, p.type, p.element, p.pointer_depth, p.const, p.restrict, _moved(p.span, by))
            for p in kernel.parameters
        ]),
        _moved(kernel.span, by),
        _moved(kernel.signature, by),
        _moved(kernel.body, by),
        _moved(kernel.name_span, by),
        kernel.line + lines,
        kernel.launch_bounds,
        kernel.uses,
        kernel.damage,
    )  # fmt: skip


def moved_launch(site: LaunchSite, by: int, lines: int) -> LaunchSite:
    return LaunchSite(
        site.kernel,
        site.callee,
        site.template_arguments,
        site.grid,
        site.block,
        site.shared,
        site.stream,
        site.arguments,
        _moved(site.span, by),
        _moved(site.grid_span, by),
        _moved(site.block_span, by),
        _moved(site.shared_span, by) if site.shared_span else None,
        tuple([_moved(span, by) for span in site.argument_spans]),
        site.line + lines,
        site.function,
        _moved(site.function_span, by) if site.function_span else None,
        tuple([_moved(span, by) for span in site.loops]),
        site.damage,
    )


def moved_blank(blank: Blank, by: int) -> Blank:
    return Blank(_moved(blank.span, by), blank.kind, blank.name, blank.value, blank.expansion)


def _moved(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by)
