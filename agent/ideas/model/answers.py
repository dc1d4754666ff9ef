"""A model's code: the form that is asked for, and what is made of the answer."""

import json
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from agent.ideas.idea import Scope
from agent.ideas.model.plans import BadPlan, read_plan, scope_of
from agent.ideas.model.vetting import Refused, vet
from agent.ideas.request import Request
from agent.ideas.rewriting import splice_code
from agent.models.model import Reply, Schema
from agent.models.reading import fenced, json_object, without_thoughts
from agent.models.words import one_line
from agent.source.kernel import Kernel
from agent.workload.bind import bind
from agent.workload.errors import WorkloadError
from agent.workload.plan import Plan

_CODE = ("cuda", "cu", "cpp", "c++", "c", "")

SCHEMA = Schema(
    "rewrite",
    {
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "plan": {"type": "array", "items": {"type": "string", "maxLength": 200}, "maxItems": 16},
            "rationale": {"type": "string", "maxLength": 500},
        },
        "required": ["code", "plan", "rationale"],
        "additionalProperties": False,
    },
)


class Unusable(Exception):
    """The answer is no rewrite; the message tells whoever wrote it why. ``code`` is what was written, as far as it was
    found."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


@frozen
class Rewritten:
    """``code`` replaces the kernel, ``plan`` is how it is launched."""

    code: str
    plan: Plan
    scope: Scope
    rationale: str


def read_rewrite(reply: Reply, request: Request) -> Rewritten:
    """What a reply makes of the request's kernel, vetted and with launches that fit. Raises Unusable."""
    if reply.finish == "refusal":
        raise Unusable(f"the model declined: {one_line(reply.text) or 'it gave no reason'}")
    code, lines, rationale = _parts(reply)
    try:
        vetted = vet(code, request.document, request.kernel)
        plan = read_plan(lines, request)
    except (Refused, BadPlan) as refused:
        raise Unusable(str(refused), code) from None
    return Rewritten(vetted, plan, _fitting(vetted, plan, request), rationale)


def _parts(reply: Reply) -> tuple[str, list[str], str]:
    """Code, lines of the plan, rationale: from the JSON that was asked for, or from fenced blocks."""
    found = json_object(reply.text)
    if found is not None and isinstance(found.get("code"), str) and found["code"].strip():
        rationale = found.get("rationale")
        return _unfenced(found["code"]), _lines(found), one_line(rationale, 500) if isinstance(rationale, str) else ""
    blocks = fenced(without_thoughts(reply.text))
    code = "\n\n".join(text.strip("\n") for language, text in blocks if language in _CODE and "__global__" in text)
    if code:
        plan = [line for language, text in blocks if language == "plan" for line in text.split("\n")]
        return code, plan, ""
    cut = "it was cut at the limit on its length" if reply.finish == "length" else "it holds no code"
    raise Unusable(f"the answer cannot be read: {cut}; expected a JSON object with `code`, `plan` and `rationale`")


def _unfenced(code: str) -> str:
    blocks = fenced(code)
    return (
        "\n\n".join(text.strip("\n") for _, text in blocks)
        if blocks and code.lstrip().startswith(("```", "~~~"))
        else code
    )


def _lines(found: Mapping[str, Any]) -> list[str]:
    """The plan as lines; a text, or null for "as before", will do."""
    plan = found.get("plan")
    if isinstance(plan, str):
        return plan.split("\n")
    if plan is None:
        return []
    if not isinstance(plan, list) or not all(isinstance(line, str) for line in plan):
        raise Unusable(f"`plan` must be a list of statements, not {one_line(json.dumps(plan), 80)}", str(found["code"]))
    return [part for line in plan for part in line.split("\n")]


def _fitting(code: str, plan: Plan, request: Request) -> Scope:
    """The scope of the change. Raises Unusable where it is wider than allowed, or where launches and kernels do not fit
    each other."""
    document = splice_code(request.document, request.kernel, code)
    kernel = document.kernel(request.kernel.qualified_name)
    scope = scope_of(request.plan, plan)
    if _signature(kernel) != _signature(request.kernel):
        if plan == request.plan:
            raise Unusable(
                f"`{kernel.name}` has other parameters now: keep them, or state a plan that passes them", code
            )
        scope = Scope.PLAN
    if not request.scope.allows(scope):
        raise Unusable(
            f"this changes more than is allowed: {request.scope.value} is asked for, and it needs {scope.value}", code
        )
    try:
        bind(request.workload, plan, None, document)
    except WorkloadError as error:
        raise Unusable(f"the launches do not fit: {error.message}", code) from None
    return scope


def _signature(kernel: Kernel) -> list[tuple[str, int]]:
    return [("".join(item.element.split()), item.pointer_depth) for item in kernel.parameters]
