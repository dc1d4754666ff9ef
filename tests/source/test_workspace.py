"""Headers that lie elsewhere in the workspace, and headers that are read as a file that includes them sees them."""

import pytest

from agent.execution.compiler import Build, Options, compile_slice
from agent.source.document import parse, read
from agent.source.slicing import device_slice, kernel_instances
from agent.source.workspace import elsewhere, includers

KERNEL = "template <class T> __global__ void k(T* p) { p[threadIdx.x] = SCALE * helper(threadIdx.x); }\n"


@pytest.fixture
def project(tmp_path):
    """A project whose build has include folders that nobody names."""
    (tmp_path / ".git").mkdir()
    return tmp_path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def compiles(part):
    return isinstance(compile_slice(part, Options()), Build)


def test_a_header_of_another_folder(project, nvrtc):
    write(project / "include" / "lib" / "math.cuh", "__device__ inline int twice(int x) { return 2 * x; }\n")
    for include in ('"lib/math.cuh"', "<lib/math.cuh>", '"../../lib/math.cuh"'):
        main = write(
            project / "src" / "a.cu", f"#include {include}\n__global__ void k(int* p) {{ p[0] = twice(1); }}\n"
        )
        part = device_slice(read(main), ["k"])
        assert not part.dropped
        assert compiles(part)


def test_the_nearest_of_several(project):
    for folder in ("one", "two", "two/deep"):
        write(project / folder / "include" / "size.h", "#define SIZE 1\n")
    main = write(project / "two" / "src" / "a.cu", '#include "size.h"\n')
    assert elsewhere("size.h", str(main)) == project / "two" / "include" / "size.h"
    assert elsewhere("other/size.h", str(main)) is None


def test_nothing_is_taken_from_outside_or_in_place_of_the_toolkits_own(project, tmp_path_factory):
    outside = write(tmp_path_factory.mktemp("outside") / "secret.h", "int secret;\n")
    (project / "secret.h").symlink_to(outside)
    write(project / "old" / "vector_types.h", "struct float4 { int x; };\n")
    write(project / "old" / "string.h", "#error\n")
    main = write(project / "src" / "a.cu", '#include "secret.h"\n#include "vector_types.h"\n#include <string.h>\n'
                 "__global__ void k(float4* p) { p[0].x = 1; }\n")  # fmt: skip
    assert "secret;" not in device_slice(read(main), ["k"]).text
    assert "struct float4" not in device_slice(read(main), ["k"]).text


def test_without_a_marked_project_nothing_is_looked_for(tmp_path):
    write(tmp_path / "a" / "size.h", "#define SIZE 1\n")
    main = write(tmp_path / "b" / "a.cu", '#include "size.h"\n')
    # a folder above the temporary one may be a project's; this one is not found from b in any other way
    (tmp_path / "b" / ".git").mkdir()
    assert elsewhere("size.h", str(main)) is None


def test_a_header_is_read_as_the_file_that_includes_it_sees_it(project, nvrtc):
    header = write(project / "src" / "k.cuh", KERNEL)
    write(project / "src" / "main.cu", "#define SCALE 3\n__device__ float helper(int x) { return x; }\n"
          '#include "k.cuh"\nint main() { k<double><<<1, 1>>>(0); k<float><<<1, 1>>>(0); }\n')  # fmt: skip
    document = read(header)
    assert kernel_instances(document, "k") == ("k<double>", "k<float>")
    part = device_slice(document, ["k"])
    assert part.names == ("k<double>",)
    assert part.path == str(header)
    assert part.context == str(project / "src" / "main.cu")
    assert compiles(part)
    # what is being edited counts, not what is on disk; errors stand on its lines
    edited = parse(KERNEL.replace("SCALE", "MISTAKE").encode(), str(header))
    failure = compile_slice(device_slice(edited, ["k"]), Options())
    assert [(d.file, d.line) for d in failure.diagnostics if d.severity == "error"] == [(str(header), 1)]


def test_includers_through_headers_and_cycles(project):
    low = write(project / "low.cuh", '#include "high.cuh"\n')
    write(project / "high.cuh", '#include "low.cuh"\n')
    write(project / "a" / "main.cu", '#include "../high.cuh"\n')
    write(project / "b" / "other.cu", '#include "unrelated.cuh"\n')
    write(project / "c" / "low.cuh", "")
    write(project / "c" / "own.cu", '#include "low.cuh"\n')  # its own, not the one above
    assert includers(str(low)) == (project / "a" / "main.cu",)


def test_a_file_that_no_longer_includes_it_is_forgotten(project, monkeypatch):
    header = write(project / "k.cuh", KERNEL)
    main = write(project / "main.cu", '#include "k.cuh"\n')
    assert includers(str(header)) == (main,)
    monkeypatch.setattr("agent.source.workspace._listings", {})
    main.write_text("// nothing here\n")
    assert includers(str(header)) == ()
