"""Constants of a program's own headers are known to its kernels."""

from pathlib import Path

from agent.analysis.file import file_facts
from agent.analysis.program import program_facts
from agent.source.document import parse, read

KERNEL = b"__global__ void f(float* x) { x[threadIdx.x * WIDTH] = 0.0f; }\n"


def test_a_header_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text(
        "#ifndef SIZES_H\n#define SIZES_H\n#define RADIUS 8\nconstexpr int WIDTH = 2 * RADIUS + 1;\n"
        "#ifdef HUGE_TILES\n#define TILE 64\n#else\n#define TILE 16\n#endif\n#endif\n"
    )
    file = tmp_path / "f.cu"
    file.write_bytes(b'#include "sizes.h"\n#define OWN (TILE / 2)\n' + KERNEL)
    found = program_facts(read(str(file))).constants
    assert {name: found[name] for name in ("RADIUS", "WIDTH", "TILE", "OWN")} == {
        "RADIUS": 8, "WIDTH": 17, "TILE": 16, "OWN": 8,
    }  # fmt: skip
    (tmp_path / "sizes.h").write_text("#define WIDTH 170\n")  # another text of the header, another value
    assert program_facts(read(str(file))).constants["WIDTH"] == 170


def test_no_header_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "f.cu"
    file.write_bytes(b'#include <cstdio>\n#include "missing.h"\n' + KERNEL)
    document = read(str(file))
    assert program_facts(document).constants == file_facts(document).constants == {}
    nameless = parse(b"#define WIDTH 3\n" + KERNEL)
    assert program_facts(nameless).constants == {"WIDTH": 3}
