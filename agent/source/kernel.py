"""Kernels as values: what a ``__global__`` definition says, and where it stands."""

from attrs import frozen

from agent.source.span import Span


@frozen
class Parameter:
    """One kernel parameter, as written.

    ``element`` is the pointee of a pointer (``float`` of ``const float* __restrict__ x``) or the type itself, without
    ``const``/``volatile``/``__restrict__``. ``pointer_depth`` counts the stars (an array parameter counts as one).
    ``arrays``: it points to arrays (``float x[][N]``, ``float (*x)[N]``), which lie one behind the other.
    """

    name: str
    type: str
    element: str
    pointer_depth: int
    const: bool
    restrict: bool
    span: Span
    arrays: bool = False


@frozen
class TemplateParameter:
    """``kind`` is ``type`` for ``typename T``/``class T``, ``value`` for ``int N``; ``type`` is the value's type."""

    name: str
    kind: str
    type: str
    default: str | None


@frozen
class Kernel:
    """A ``__global__`` function definition.

    ``span`` runs from the template header or first specifier to the closing brace; ``signature`` ends before the
    body; ``body`` includes its braces. ``line`` is the 1-based line of the name. ``uses`` holds every identifier in
    the definition that is not declared inside it. ``damage`` says in words why the kernel cannot be rewritten (a
    parse error inside it, with its line), or is None. ``cluster_dims`` are the arguments of ``__cluster_dims__``.
    """

    name: str
    qualified_name: str
    template: tuple[TemplateParameter, ...]
    parameters: tuple[Parameter, ...]
    span: Span
    signature: Span
    body: Span
    name_span: Span
    line: int
    launch_bounds: tuple[str, ...]
    uses: frozenset[str]
    damage: str | None
    cluster_dims: tuple[str, ...] = ()
