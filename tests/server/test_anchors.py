"""Where a rewrite belongs in a text that was edited since: told by what it replaces, or not at all."""

from agent.source.document import parse
from agent.source.edits import apply_edits
from cuda_lsp.proposals.anchors import anchor, is_applied, locate
from tests.server.rewrites import relaunched, rewritten
from tests.server.texts import SCALE


def test_anchors_hold_the_kernel_and_its_launches_and_nothing_else() -> None:
    base = parse(SCALE.encode())
    anchors = relaunched(base, "scale").anchors
    assert anchors is not None
    assert anchors.old.endswith(b"}") and anchors.old.startswith(b"__global__ void scale(")
    assert anchors.above == b"// helper 0\n"
    edits = locate(anchors, base)
    assert edits is not None and len(edits) == 3
    assert max(len(edit.span) for edit in edits) < len(anchors.old), "what stays is not written again"


def test_a_rewrite_that_changes_anything_else_has_no_anchors() -> None:
    base = parse(SCALE.encode())
    kernel = base.kernel("scale")
    for old, new in ((b"n = 4096", b"n = 1"), (b"x[i] + 1.0f", b"x[i]"), (b"FACTOR 2.0f", b"FACTOR 1.0f")):
        spliced = apply_edits(base.text, locate(rewritten(base, "scale").anchors, base))  # type: ignore[arg-type]
        assert anchor(base, kernel, parse(spliced.replace(old, new))) is None


TWINS = """#if A
__global__ void k(float* x) { x[0] = 1; }
#else
__global__ void k(float* x) { x[0] = 1; }
#endif
void f(float* x) { k<<<1, 1>>>(x); k<<<1, 1>>>(x); }
"""


def test_of_twins_the_right_one_is_rewritten() -> None:
    base = parse(TWINS.encode())
    second = base.kernels[1]
    code = base.text[: second.span.start] + b"__global__ void k(float* x) { x[0] = 2; }" + base.text[second.span.end :]
    anchors = anchor(base, second, parse(code))
    assert anchors is not None and (anchors.place, anchors.alike) == (1, 2)
    later = parse(b"// more\n" + base.text)
    edits = locate(anchors, later)
    assert edits is not None and apply_edits(later.text, edits) == b"// more\n" + code
    assert locate(anchors, parse(code)) is None, "which twin is left cannot be told"


def test_a_launch_more_or_less_is_a_change() -> None:
    base = parse(SCALE.encode())
    anchors = relaunched(base, "scale").anchors
    assert anchors is not None
    launch = "scale<<<(n + 255) / 256, 256>>>(x, y, n);"
    assert locate(anchors, parse(SCALE.replace(launch, launch + launch).encode())) is None
    assert locate(anchors, parse(SCALE.replace(launch, "").encode())) is None


def test_a_directive_that_states_the_launches_changes_with_them() -> None:
    before = b"""\
// cuda-lsp: workload
//   size     n = 64
//   launch   k<<<n / 32, 32>>>(x, n)
__global__ void k(float* x, int n) { x[blockIdx.x * 32 + threadIdx.x] = n; }
void run(float* x, int n) { k<<<n / 32, 32>>>(x, n); }
"""
    after = before.replace(b"n / 32, 32>>>", b"n / 16, 16>>>").replace(b"* 32 +", b"* 16 +")
    base = parse(before, "k.cu")
    found = anchor(base, base.kernel("k"), parse(after, "k.cu"))
    assert found is not None
    elsewhere = parse(b"// a line above\n\n" + before + b"int other;\n", "k.cu")
    edits = locate(found, elsewhere)
    assert edits is not None
    assert apply_edits(elsewhere.text, edits) == b"// a line above\n\n" + after + b"int other;\n"
    assert locate(found, parse(before.replace(b"n = 64", b"n = 96"), "k.cu")) is None
    assert is_applied(found, after) and not is_applied(found, before)
