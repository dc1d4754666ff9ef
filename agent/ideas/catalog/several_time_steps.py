"""Take several time steps in one launch, the planes between them in shared memory."""

from agent.analysis.patterns.stencil_step import StencilStep, stencil_step
from agent.ideas.idea import Expectation, Scope, Tunable
from agent.ideas.registry import Match, Refusal, Variant, catalogued
from agent.ideas.terms import apart_from, in_plan_names
from agent.ideas.timesteps.loop import TimeLoop, time_loop
from agent.ideas.timesteps.write import THREADS, WORDS, Tile, several_steps, spellable
from agent.ideas.view import View

MOST_SHARED = 48 * 1024

EXAMPLE = """\
// cuda-lsp: workload
//   size     height = 4096, width = 4096, steps = 100
//   buffer   now: f32[height * width] inout normal
//   buffer   next: f32[height * width] inout normal
//   repeat   steps {
//     launch diffuse<<<dim3((width + 31) / 32, (height + 7) / 8), dim3(32, 8)>>>(now, next, height, width)
//     swap   now next
//   }
__global__ void diffuse(const float* now, float* next, int height, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    int i = y * width + x;
    next[i] = 0.25f * (now[i - 1] + now[i + 1] + now[i - width] + now[i + width]);
}
"""


@catalogued(
    name="several-time-steps",
    title="Take several time steps in one launch",
    rationale=(
        "A simulation step reads a whole plane and writes another, and the next launch reads that again: planes larger "
        "than L2 cross DRAM twice a step. A block that works on a part of the plane, and at first on what lies around "
        "it as well, can keep the values in shared memory and take several steps before it writes, at the price of "
        "doing the points around its part more than once."
    ),
    needs=(
        "a loop that launches the kernel and then exchanges its two buffers, and nothing else",
        "each point of a rectangle is made of neighbours of one array at fixed distances, in rows and columns",
        "the kernel's threads are independent of each other and use their indices for their own point only",
    ),
    effect="DRAM traffic and launches fall to the number of steps in one launch",
    risk="the points between blocks are computed twice; where arithmetic is the limit, that costs more than it saves",
    example=EXAMPLE,
)
def several_time_steps(view: View) -> Match | Refusal:
    if view.kernel.template:
        return Refusal("the kernel is a template")
    loop = time_loop(view)
    if isinstance(loop, str):
        return Refusal(loop)
    written = {access.name for access in view.facts.accesses if access.writes and access.space == "global"}
    old = [name for name in loop.planes if name not in written]
    if len(old) != 1:
        return Refusal(f"of {loop.planes[0]} and {loop.planes[1]}, not one alone is written")
    step = stencil_step(view.facts, old[0])
    if isinstance(step, str):
        return Refusal(step)
    if step.target.name not in loop.planes or step.target not in apart_from(step.source, view):
        return Refusal(f"{step.target.name} is not what {step.source.name} changes places with")
    highs = (step.rows.high, step.columns.high)
    if not spellable(step, view) or any(in_plan_names(high, loop.launch, view) is None for high in highs):
        return Refusal("the plane's extents are not parameters of the kernel")
    if 4 * (max(WORDS) - 1) * step.columns.reach > THREADS[0]:
        return Refusal("its neighbours lie so far away that a block would mostly work on what is around its part")
    others = [a for a in view.facts.accesses if a.space == "global" and a.root not in (step.source, step.target)]
    shared = next((a for a in others if a.root is not None and a.root not in apart_from(step.target, view)), None)
    if shared is not None:
        return Refusal(f"{shared.name} may be the buffer that is written")
    return _match(step, loop, view)


def _match(step: StencilStep, loop: TimeLoop, view: View) -> Match | Refusal:
    # After an odd number of steps the new plane is where it was; after an even one, with the other plane's rim.
    element = view.element_bytes(step.writes[0])
    if element is None:
        return Refusal(f"the type of {step.target.name}'s elements is not a plain one")
    fits = [count for count in WORDS if Tile(step, count).shared_bytes(element) <= MOST_SHARED]
    counts = tuple(count for count in fits if count % 2 or not step.rim)
    if not counts:
        return Refusal("its neighbours lie so far away that the planes between steps do not fit into shared memory")
    tunable = Tunable("steps", counts, counts[0], "time steps in a launch")
    return Match(
        line=view.kernel.line,
        title="take several time steps in one launch",
        why=(
            f"each step reads all of {step.source.name} and writes all of {step.target.name}, and the next one "
            "reads that again from DRAM"
        ),
        expects=(Expectation("DRAM bytes", 0.55, "DRAM bytes -45 % with two steps a launch"),),
        variants=(
            Variant(
                "planes between steps in shared memory",
                "the step at a point becomes a function; a new kernel applies it several times to a part of the plane",
                Scope.PLAN,
                lambda steps: several_steps(step, loop, view, steps),
                (tunable,),
            ),
        ),
    )
