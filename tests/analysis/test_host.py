"""Where the buffers of a host function lie, and what its calls are; expected values by hand."""

import pytest

from agent.analysis.host import LAUNCH, HostFunction, host_function
from agent.analysis.syntax import descendants
from agent.source.document import parse


def host(body: str) -> HostFunction:
    document = parse(f"void run(float* given, int n) {{\n{body}\n}}\n".encode())
    return host_function(next(descendants(document.tree.root_node, "function_definition")))


PLACES = {
    "float* p; cudaMalloc(&p, 4);": "device",
    "float* p; cudaMalloc((void**)&p, 4);": "device",
    "float* p = nullptr; CHECK(cudaMalloc(reinterpret_cast<void**>(&p), 4));": "device",
    "float *q, *p; cudaMallocManaged(&p, 4);": "managed",
    "float* p; cudaMallocHost(&p, 4);": "pinned",
    "float* p = (float*)malloc(4);": "pageable",
    "float* p; p = static_cast<float*>(malloc(4));": "pageable",
    "auto p = new float[n];": "pageable",
    "std::vector<float> p(n);": "pageable",
    "float p[8];": "stack",
    "float* p; if (n) cudaMalloc(&p, 4); else p = (float*)malloc(4);": "",
    "float* p = given;": "",
    "float* p; make(&p);": "",
    "float* p = (float*)malloc(4); p = given;": "",
    "float* p = (float*)malloc(4); p += n;": "",
    "float p[8]; { float* p = given; }": "",
    "float p = 1.0f;": "",
}


@pytest.mark.parametrize("body", PLACES)
def test_where_a_buffer_lies(body: str) -> None:
    found = host(f"{body} use(p);")
    (use,) = found.named("use")
    assert found.place(use.given[0]) == PLACES[body]


@pytest.mark.parametrize(
    ("argument", "place"),
    [
        ("p + n", "device"),
        ("&p[n]", "device"),
        ("(const void*)p", "device"),
        ("reinterpret_cast<char*>(p)", "device"),
        ("v.data()", "pageable"),
        ("v.data() + n", "pageable"),
        ("p[0]", ""),
        ("*p", ""),
        ("n + p", ""),
        ("v.size()", ""),
        ("given", ""),
        ("&p", ""),
    ],
)
def test_what_an_argument_points_into(argument: str, place: str) -> None:
    found = host(f"float* p; cudaMalloc(&p, 4); std::vector<float> v(n); cudaMemcpy(0, {argument}, 4, kind);")
    (copy,) = found.named("cudaMemcpy")
    assert found.place(copy.given[1]) == place


def test_calls_stand_in_order_with_their_loops() -> None:
    found = host(
        "for (int k = first(); k < n; ++k) { while (n) k<<<1, 2>>>(given); CHECK(cudaFree(given)); }\n"
        "do { once(); } while (0);\n last();"
    )
    assert [(call.name, len(call.loops), call.discarded) for call in found.calls] == [
        ("first", 0, False),
        (LAUNCH, 2, True),
        ("CHECK", 1, True),
        ("cudaFree", 1, False),
        ("once", 0, True),
        ("last", 0, True),
    ]


def test_sizes_are_those_that_were_asked_for_once() -> None:
    found = host("float *a, *b; cudaMalloc(&a, n * sizeof(float)); cudaMalloc(&b, 4); cudaMalloc(&b, 8);")
    assert found.sizes == {"a": "n*sizeof(float)"}
