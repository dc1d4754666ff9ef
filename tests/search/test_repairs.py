"""A failure in the lines of a candidate's own code, wherever it stands in the file."""

from pathlib import Path

import pytest

from agent.ideas.idea import Candidate, Scope
from agent.ideas.source import program
from agent.search.node import Node
from agent.search.repairs import _own_line
from agent.source.document import parse
from agent.workload.plan import Plan
from agent.workload.program import Program

CODE = """\
constexpr int WIDTH = 4;
__device__ float helper(float v) {
    return v;
}

template <int N>
__global__ void scale(float* p) {
    p[0] = helper(p[0]);
}"""
HEAD = "#include <cstdio>\n\n"
KERNEL = "template <int N>\n__global__ void scale(float* p) {\n    p[0] = 1.0f;\n}\n"
TAIL = "\nint main() {\n    return 0;\n}\n"
COMMENT = "// What it does,\n// in two lines.\n"


@pytest.mark.parametrize("comment", ["", COMMENT])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_line_maps_back(comment: str, end: str, tmp_path: Path) -> None:
    document = parse((HEAD + comment + KERNEL + TAIL).replace("\n", end).encode(), "file.cu")
    kernel = document.kernel("scale")
    root = Node("0", Program(document, Plan(()), "original"), None, None, None)
    candidate = Candidate((), "model", CODE, Plan(()), "", Scope.DROP_IN)
    made = program(document, kernel, candidate, "candidate")
    node = Node("1.1", made, candidate, root, None)
    lines = made.document.text.decode().replace("\r\n", "\n").split("\n")
    own = CODE.split("\n")
    mapped = {number: _own_line(node, number, kernel) for number in range(1, len(lines) + 1)}
    for number, line in enumerate(lines, 1):
        if mapped[number]:
            assert own[mapped[number] - 1] == line
    # Every line of the code is found, but for the blank one between its two pieces where a comment comes between them.
    assert set(mapped.values()) >= {number for number, line in enumerate(own, 1) if line}
    assert mapped[1] == 0 and mapped[len(lines) - 1] == 0
