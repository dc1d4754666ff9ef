"""Findings in host functions: each shown once, in its place, silenced and selected like others."""

from collections.abc import Iterator

import pytest

from agent.analysis.rules import EVERYTHING, Finding, Selection, check, hosting
from agent.analysis.rules.finding import Hit
from agent.source.document import parse
from agent.source.edits import apply_edits

KERNELS = "__global__ void a(float* x) { x[0] = 1.0f; }\n__global__ void b(float* x) { x[1] = 1.0f; }\n"
HOST = "void run(float* x) {\n    b<<<1, 32>>>(x);\n    a<<<1, 32>>>(x);\n    cudaThreadSynchronize();\n}\n"
OTHER = "void again(float* x) {\n    a<<<1, 32>>>(x);\n    cudaThreadSynchronize();\n}\n"


def found(text: str, selection: Selection | None = None) -> list[tuple[str, Finding]]:
    document = parse(text.encode(), "test.cu")
    return [(k.name, one) for k in document.kernels for one in check(document, k, selection=selection)]


def test_a_finding_is_shown_with_the_first_kernel_that_the_function_launches() -> None:
    assert [(kernel, one.rule) for kernel, one in found(KERNELS + HOST)] == [("b", "L14")]
    both = found(KERNELS + HOST + OTHER)
    assert sorted((kernel, one.rule) for kernel, one in both) == [("a", "L14"), ("b", "L14")]
    assert len({one.span for _, one in both}) == 2


QUIET = "void finish() {\n    cudaThreadSynchronize();\n}\n"


def test_a_function_that_launches_nothing_belongs_to_the_first_kernel() -> None:
    assert [(kernel, one.rule) for kernel, one in found(KERNELS + QUIET)] == [("a", "L14")]
    assert sorted(kernel for kernel, _ in found(KERNELS + QUIET + HOST + "namespace n { " + QUIET + "}\n")) == [
        "a",
        "a",
        "b",
    ]
    assert found(QUIET) == []  # no kernel, no home
    assert found(KERNELS + QUIET.replace("void", "__device__ void")) == []


def test_a_finding_stands_where_the_call_stands() -> None:
    text = KERNELS + "// before\n" + HOST
    ((_, finding),) = found(text)
    assert text[finding.span.start : finding.span.end] == "cudaThreadSynchronize()"


def test_a_repair_is_put_into_its_place() -> None:
    text = KERNELS.replace("\n", "\r\n") + HOST.replace("\n", "\r\n")
    ((_, finding),) = found(text)
    assert finding.repair is not None
    mended = apply_edits(text.encode(), finding.repair.edits).decode()
    assert mended == text.replace("cudaThreadSynchronize", "cudaDeviceSynchronize")
    assert found(mended) == []


@pytest.mark.parametrize("comment", ["// cuda-lsp: ignore[L14]", "// cuda-lsp: ignore[L]", "// cuda-lsp: ignore"])
def test_comments_silence(comment: str) -> None:
    assert found(KERNELS + HOST.replace("ize();", f"ize();  {comment}")) == []
    # one above a kernel is about the kernel
    assert len(found(f"{comment}\n" + KERNELS.replace("\n__global__", f"\n{comment}\n__global__") + HOST)) == 1


def test_selection() -> None:
    assert found(KERNELS + HOST, Selection(ignore=("L14",))) == []
    assert {one.rule for _, one in found(KERNELS + HOST, EVERYTHING)} >= {"L5", "L14"}


def test_a_function_is_read_once_for_each_text(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    run = hosting._run
    monkeypatch.setattr(hosting, "_remembered", {})

    def counted(written: bytes) -> Iterator[Hit]:
        read.append(written)
        return run(written)

    monkeypatch.setattr(hosting, "_run", counted)
    found(KERNELS + HOST)
    found("// moved\n" + KERNELS.replace("1.0f", "2.0f") + HOST)
    assert read == [HOST.strip().encode()]
    found(KERNELS + HOST.replace("32", "64"))
    assert len(read) == 2


def test_what_does_not_parse_or_is_machine_made_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(KERNELS + HOST.replace("(x);\n    cuda", "(x;\n    cuda")) == []
    monkeypatch.setattr(hosting, "LARGEST", 20)
    assert found(KERNELS + HOST) == []
