"""The catalogue as an idea source: works offline, with no key."""

from collections.abc import Mapping

from agent.ideas.idea import Candidate, Idea, Scope
from agent.ideas.registry import Entry, Match, Refusal, Variant, entries
from agent.ideas.request import Proposal, Request
from agent.ideas.rewriting import code_of
from agent.ideas.view import View, view

SOURCE = "catalog"


def propose(request: Request) -> Proposal:
    """The catalogue's ideas for a kernel, the greatest expected effect first; for every other idea, why it does not
    apply."""
    if request.kernel.damage is not None:
        return Proposal((), tuple((entry.name, request.kernel.damage) for entry in entries()))
    seen = view(request)
    if not seen.launches:
        return Proposal((), tuple((entry.name, "the plan does not launch this kernel") for entry in entries()))
    ideas: list[Idea] = []
    considered: list[tuple[str, str]] = []
    before = [entry for entry in entries() if entry.name in request.applied]
    for entry in entries():
        barred = next((one.name for one in before if entry.name in one.conflicts or one.name in entry.conflicts), None)
        if barred is not None:
            considered.append((entry.name, f"goes against {barred}, which was applied before"))
            continue
        found = _examined(entry, seen)
        if isinstance(found, Refusal):
            considered.append((entry.name, found.reason))
            continue
        allowed = _allowed(found, request)
        if allowed:
            ideas.append(_idea(entry, found, allowed))
        else:
            narrowest = min((variant.scope for variant in found.variants), key=_width)
            considered.append(
                (entry.name, f"applies, but changes more than the scope {request.scope.value}: needs {narrowest.value}")
            )
    enabled = {name for one in before for name in one.enables}

    def order(idea: Idea) -> tuple[bool, bool, float]:
        """What an earlier idea made room for comes first, the same idea once more comes last."""
        return idea.name in request.applied, idea.name not in enabled, _promise(idea)

    return Proposal(tuple(sorted(ideas, key=order)), tuple(considered))


def implement(idea: Idea, request: Request) -> tuple[Candidate, ...]:
    """Every implementation of a catalogue idea that the request's scope allows; none where it no longer applies."""
    entry = next((entry for entry in entries() if entry.name == idea.name), None)
    if entry is None or request.kernel.damage is not None:
        return ()
    seen = view(request)
    found = _examined(entry, seen) if seen.launches else Refusal("not launched")
    if isinstance(found, Refusal):
        return ()
    return tuple(_candidate(idea, variant, seen) for variant in _allowed(found, request))


def retune(candidate: Candidate, request: Request, values: Mapping[str, int]) -> Candidate | None:
    """The candidate's newest idea in the same variant with other values for its tunables; None where it no longer
    applies or a value is none of those that the tunable allows."""
    idea = candidate.ideas[-1]
    entry = next((entry for entry in entries() if entry.name == idea.name), None)
    if entry is None:
        return None
    seen = view(request)
    found = _examined(entry, seen)
    if isinstance(found, Refusal):
        return None
    variant = next((variant for variant in found.variants if variant.name == candidate.variant), None)
    if variant is None or any(values.get(one.name, one.default) not in one.values for one in variant.tunables):
        return None
    return _candidate(idea, variant, seen, values)


def _examined(entry: Entry, seen: View) -> Match | Refusal:
    try:
        return entry.examine(seen)
    except RecursionError:  # generated code: a sum of a thousand terms is a tree a thousand deep
        return Refusal("an expression of the kernel nests too deeply to be followed")


def _allowed(found: Match, request: Request) -> tuple[Variant, ...]:
    return tuple(variant for variant in found.variants if request.scope.allows(variant.scope))


def _idea(entry: Entry, found: Match, variants: tuple[Variant, ...]) -> Idea:
    scope = min((variant.scope for variant in variants), key=_width)
    return Idea(entry.name, found.title, found.why, found.expects, entry.risk, scope, SOURCE, found.line)


def _candidate(idea: Idea, variant: Variant, seen: View, values: Mapping[str, int] | None = None) -> Candidate:
    chosen = {one.name: (values or {}).get(one.name, one.default) for one in variant.tunables}
    rewrite = variant.write(**chosen)
    return Candidate(
        ideas=(idea,),
        variant=variant.name,
        code=code_of(seen.document, seen.kernel, rewrite),
        plan=seen.request.plan if rewrite.plan is None else rewrite.plan,
        rationale=variant.rationale,
        scope=variant.scope,
        tunables=variant.tunables,
        values=tuple(chosen.items()),
    )


def _width(scope: Scope) -> int:
    return list(Scope).index(scope)


def _promise(idea: Idea) -> float:
    """The strongest effect that an idea expects."""
    return min((expectation.factor for expectation in idea.expects), default=1.0)
