"""Where a rewrite belongs in a text that was edited since: told by what it replaces, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.source.document import Document, parse
from agent.source.edits import apply_edits
from cuda_lsp.proposals.anchors import anchor, is_applied, locate
from tests.server.rewrites import relaunched, replaced, rewritten
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


def test_a_rewrite_that_changes_anything_but_definitions_has_no_anchors() -> None:
    base = parse(SCALE.encode())
    kernel = base.kernel("scale")
    spliced = apply_edits(base.text, locate(rewritten(base, "scale").anchors, base))  # type: ignore[arg-type]
    for old, new in ((b"FACTOR 2.0f", b"FACTOR 1.0f"), (b"_runtime.h>", b"_fp16.h>"), (b"\n\nint main", b"\nint main")):
        assert anchor(base, kernel, parse(spliced.replace(old, new))) is None


def test_host_code_that_launches_otherwise_is_replaced_as_a_whole_function() -> None:
    base = parse(SCALE.encode())
    anchors = replaced(base, "scale").anchors
    assert anchors is not None
    (main,) = anchors.definitions
    assert main.old.startswith(b"int main() {") and main.old.endswith(b"}") and (main.place, main.alike) == (0, 1)
    assert main.new.count(b"scale<<<") == 2 and main.new.count(b"shift<<<") == 1
    edits = locate(anchors, base)
    assert edits is not None
    after = apply_edits(base.text, edits)
    assert b"cudaMalloc(&part, 64)" in after and is_applied(anchors, after) and not is_applied(anchors, base.text)
    assert max(len(edit.span) for edit in edits) < len(main.old), "what stays is not written again"


def test_such_a_function_is_found_again_where_it_is_as_it_was() -> None:
    base = parse(SCALE.encode())
    anchors = replaced(base, "scale").anchors
    assert anchors is not None
    after = apply_edits(base.text, locate(anchors, base) or ())
    around = SCALE.replace("x[i] + 1.0f", "x[i] + 2.0f").replace("#define", "// größe 🚀\n#define")
    edits = locate(anchors, parse(around.encode()))
    assert edits is not None
    wanted = after.replace(b"x[i] + 1.0f", b"x[i] + 2.0f").replace(b"#define", "// größe 🚀\n#define".encode())
    assert apply_edits(around.encode(), edits) == wanted


MAIN = SCALE[SCALE.index("int main") :].strip()


@pytest.mark.parametrize(
    "text",
    [
        SCALE.replace("    return 0;", "    return 1;"),
        SCALE.replace(MAIN, f"/*\n{MAIN}\n*/"),
        SCALE.replace(MAIN, f'const char* text = R"({MAIN})";'),
        SCALE.replace(MAIN, f"#if A\n{MAIN}\n#else\n{MAIN}\n#endif"),
        SCALE.replace(MAIN, f"namespace {{ struct Run {{ {MAIN} }}; }}"),
        SCALE + "void again(float* x) { scale<<<1, 32>>>(x, x, 32); }\n",
        SCALE.replace("\n", "\r\n"),
    ],
    ids=["edited", "in a comment", "in a string", "twice", "in a class", "another launch", "other line ends"],
)
def test_such_a_function_that_is_not_as_it_was_is_left_alone(text: str) -> None:
    anchors = replaced(parse(SCALE.encode()), "scale").anchors
    assert anchors is not None
    assert locate(anchors, parse(text.encode())) is None


def test_of_two_branches_with_the_same_host_function_only_the_rewritten_one_changes() -> None:
    two = SCALE.replace(MAIN, f"#if A\n{MAIN}\n#else\n{MAIN}\n#endif")
    base = parse(two.encode())
    single = parse(SCALE.encode())
    whole = replaced(single, "scale").anchors
    assert whole is not None
    code = apply_edits(single.text, locate(whole, single) or ())
    main = code[code.index(b"int main") :].strip()
    rewritten_text = code.replace(main, b"#if A\n" + MAIN.encode() + b"\n#else\n" + main + b"\n#endif")
    anchors = anchor(base, base.kernel("scale"), parse(rewritten_text))
    assert anchors is not None
    assert [(one.place, one.alike) for one in anchors.definitions] == [(1, 2)]
    assert apply_edits(base.text, locate(anchors, base) or ()) == rewritten_text


@given(st.data())
def test_whatever_is_edited_a_rewrite_of_host_code_goes_where_it_was_proved_or_nowhere(data: st.DataObject) -> None:
    base = parse(SCALE.encode())
    anchors = replaced(base, "scale").anchors
    assert anchors is not None
    text = base.text
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 6))
        put = data.draw(st.sampled_from([b"", b"x", b"\n", b"/*", b"*/", b"}", b"{", b"int a;", b"// b\n"]))
        text = text[:at] + put + text[at + cut :]
    edits = locate(anchors, parse(text))
    if edits is None:
        return
    after = apply_edits(text, edits)
    assert anchors.old in text and is_applied(anchors, after)
    for one in anchors.definitions:
        assert one.old in text and one.old not in after


def with_header(text: str = SCALE, line: str = "#include <cuda_runtime.h>\n") -> tuple[Document, Document]:
    """The text, and a rewrite of its kernel and launches that needs a header."""
    base = parse(text.encode())
    anchors = relaunched(base, "scale").anchors
    assert anchors is not None
    after = apply_edits(base.text, locate(anchors, base) or ())
    return base, parse(after.replace(line.encode(), line.encode() + b"#include <cuda_pipeline.h>\n"))


def test_a_header_is_held_by_the_line_before_it() -> None:
    base, after = with_header()
    anchors = anchor(base, base.kernel("scale"), after)
    assert anchors is not None and [one.behind for one in anchors.headers] == [b"#include <cuda_runtime.h>\n"]
    assert apply_edits(base.text, locate(anchors, base) or ()) == after.text
    assert is_applied(anchors, after.text) and not is_applied(anchors, base.text)
    assert not is_applied(anchors, after.text.replace(b"#include <cuda_pipeline.h>\n", b""))
    elsewhere = SCALE.replace("x[i] + 1.0f", "x[i] + 2.0f").replace("#include", "// mine\n#include <vector>\n#include")
    wanted = after.text.decode().replace("x[i] + 1.0f", "x[i] + 2.0f")
    wanted = wanted.replace("#include <cuda_runtime.h>", "// mine\n#include <vector>\n#include <cuda_runtime.h>")
    assert apply_edits(elsewhere.encode(), locate(anchors, parse(elsewhere.encode())) or ()) == wanted.encode()


@pytest.mark.parametrize(
    "head",
    [
        "#include <cuda_runtime.h>  // first\n",
        "#include <cuda_runtime_api.h>\n",
        "// #include <cuda_runtime.h>\n",
        "#if A\n#include <cuda_runtime.h>\n#endif\n",
        "#include <cuda_runtime.h>\n#include <cuda_runtime.h>\n",
        "",
    ],
)
def test_where_that_line_is_not_as_it_was_the_rewrite_is_left_alone(head: str) -> None:
    base, after = with_header()
    anchors = anchor(base, base.kernel("scale"), after)
    assert anchors is not None
    assert locate(anchors, parse(SCALE.replace("#include <cuda_runtime.h>\n", head).encode())) is None


@pytest.mark.parametrize(
    "head",
    ["#include <cuda_pipeline.h>\n#include <cuda_runtime.h>\n", "#include <cuda_pipeline.h>  // by another rewrite\n"],
)
def test_a_header_that_came_meanwhile_is_not_included_again(head: str) -> None:
    base, after = with_header()
    anchors = anchor(base, base.kernel("scale"), after)
    now = SCALE.replace("#include <cuda_runtime.h>\n", head).encode()
    edits = locate(anchors, parse(now)) if anchors else None
    assert edits is not None
    assert apply_edits(now, edits).count(b"#include <cuda_pipeline.h>") == 1


def test_headers_and_whole_host_functions_go_together() -> None:
    base = parse(SCALE.replace("\n", "\r\n").encode())
    whole = replaced(base, "scale").anchors
    assert whole is not None
    line = b"#include <cuda_runtime.h>\r\n"
    after = parse(apply_edits(base.text, locate(whole, base) or ()).replace(line, line + b"#include <a.h>\r\n" * 2))
    anchors = anchor(base, base.kernel("scale"), after)
    assert anchors is not None and len(anchors.definitions) == 1 and len(anchors.headers) == 2
    assert apply_edits(base.text, locate(anchors, base) or ()) == after.text


@given(st.data())
def test_whatever_is_edited_a_header_goes_behind_its_line_or_nowhere(data: st.DataObject) -> None:
    base, after = with_header(SCALE.replace("#include", "#include <vector>\n#include"))
    anchors = anchor(base, base.kernel("scale"), after)
    assert anchors is not None
    text = base.text
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, data.draw(st.sampled_from([80, len(text)]))))
        cut = data.draw(st.integers(0, 6))
        put = data.draw(st.sampled_from([b"", b"x", b"\n", b"/*", b"*/", b"#if A\n", b"#endif\n", b"// b\n", b"\r"]))
        text = text[:at] + put + text[at + cut :]
    edits = locate(anchors, parse(text))
    if edits is not None:
        changed = apply_edits(text, edits)
        assert is_applied(anchors, changed)
        assert b"#include <cuda_runtime.h>\n#include <cuda_pipeline.h>\n" in changed


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
