"""Textures and surfaces in a directive: read, written back, bound, and refused where CUDA has none such."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.source.document import parse
from agent.workload.bind import bind
from agent.workload.binding import BoundLaunch, TextureArgument
from agent.workload.describe import arguments
from agent.workload.directive import format_directive, read_directive
from agent.workload.errors import WorkloadError
from agent.workload.expression import Expression
from agent.workload.settings import read_settings
from agent.workload.statements import read_statements
from agent.workload.texture_words import read_texture, texture_text
from agent.workload.textures import ADDRESSES, ARRAY, FILTERS, LINEAR, PITCHED, Texture
from agent.workload.workload import Origin

SOURCE = """
// cuda-lsp: workload
//   size     w = 40, h = 24
//   buffer   image: f32[w * h] in
//   buffer   out: u8x4[w * h] out
//   texture  shown: image(w, h, filter=linear, address=wrap:mirror, normalized)
//   surface  drawn: out(w, h)
//   launch   k<<<h, w>>>(shown, drawn, w)
__global__ void k(cudaTextureObject_t image, const cudaSurfaceObject_t out, int w) { }
"""


def stated(statements: str, launch: str = "k<<<1, 32>>>(t, s, 1)") -> list[object]:
    text = f"size n = 64\nbuffer a: f32[n] in\nbuffer b: u8[n] out\n{statements}\nlaunch {launch}"
    workload = read_statements(text, "k", Origin("directive", 1), 1)
    return list(bind(workload, workload.plan, None, parse(SOURCE.encode())).steps)


def test_a_directive_with_a_texture_is_read_written_and_read_again() -> None:
    document = parse(SOURCE.encode())
    workload = read_directive(document, document.kernel("k"))
    assert workload is not None
    assert [(one.name, one.buffer, one.surface) for one in workload.textures] == [
        ("shown", "image", False), ("drawn", "out", True),
    ]  # fmt: skip
    again = parse(format_directive(workload).encode() + SOURCE.encode().split(b"\n", 8)[-1])
    read = read_directive(again, again.kernel("k"))
    assert read is not None and read.textures == workload.textures


def test_one_line_for_people_names_the_views() -> None:
    document = parse(SOURCE.encode())
    workload = read_directive(document, document.kernel("k"))
    assert workload is not None
    assert arguments(workload) == (
        "image f32[w*h] in, out u8x4[w*h] out; "
        "texture shown: image(w, h, filter=linear, address=wrap:mirror, normalized), surface drawn: out(w, h); "
        "w=40 h=24"
    )


def test_a_launch_passes_the_view_at_concrete_sizes() -> None:
    document = parse(SOURCE.encode())
    workload = read_directive(document, document.kernel("k"))
    assert workload is not None
    (launch,) = bind(workload, workload.plan, {"w": 37}, document).steps
    assert isinstance(launch, BoundLaunch)
    shown, drawn, _ = launch.arguments
    assert isinstance(shown, TextureArgument) and isinstance(drawn, TextureArgument)
    assert (shown.view.extents, shown.view.pitch, shown.view.dtype) == ((37, 24), 37 * 4, "f32")
    assert shown.view.address == ("wrap", "mirror") and shown.view.normalized and shown.view.filter == "linear"
    assert (drawn.view.surface, drawn.view.dtype, drawn.view.nbytes) == (True, "u8x4", 37 * 24 * 4)


@pytest.mark.parametrize(
    ("statements", "told"),
    [
        ("texture t: a(n, 2)\nsurface s: b(n)", "64 x 2 texels of f32 need 512 bytes, `a` has 256"),
        ("texture t: a(n, type=f64)\nsurface s: b(n)", "no texels of type f64"),
        ("texture t: b(n, filter=linear)\nsurface s: b(n)", "interpolates floats only"),
        ("texture t: a(n, read=float)\nsurface s: b(n)", "only integers of 8 and 16 bits"),
        ("texture t: a(n, filter=cubic)\nsurface s: b(n)", "filter=nearest|linear"),
        ("texture t: a(n, address=repeat)\nsurface s: b(n)", "expected one of clamp"),
        ("texture t: a(n, address=wrap:clamp)\nsurface s: b(n)", "2 address modes for 1 extents"),
        ("texture t: a(n, mipmapped)\nsurface s: b(n)", "`mipmapped` has no value here"),
        ("texture t: a(n, linear, mipmapped)\nsurface s: b(n)", "`mipmapped` is no option"),
        ("texture t: a(8, 4, pitch=24)\nsurface s: b(n)", "multiple of 32"),
        ("texture t: a(8, 8, linear)\nsurface s: b(n)", "CUDA has none of linear memory with 2 extents"),
        ("texture t: a(1, 1, 1, 1)\nsurface s: b(n)", "one to three extents"),
        ("texture t: a(0)\nsurface s: b(n)", "0 texels; CUDA allows 1 to 131072"),
        ("texture t: c(n)\nsurface s: b(n)", "`c` is no buffer"),
        ("texture a: a(n)\nsurface s: b(n)", "`a` has a meaning already"),
        ("surface t: a(n)\nsurface s: b(n)", "is passed `t`, which is a `cudaSurfaceObject_t`"),
        ("surface s: b(n, normalized)", "no meaning for a surface"),
        ("texture t: a n\nsurface s: b(n)", "expected `name: buffer(width, height, ...)`"),
    ],
)
def test_what_cuda_has_not_is_refused_with_its_reason(statements: str, told: str) -> None:
    with pytest.raises(WorkloadError) as error:
        stated(statements)
    assert told in str(error.value)


def test_a_buffer_or_number_for_a_texture_is_answered_with_how_to_state_one() -> None:
    with pytest.raises(WorkloadError) as error:
        stated("surface s: b(n)", "k<<<1, 32>>>(a, s, 1)")
    assert "state what it shows, as in `texture image: image(width, height)`" in str(error.value)


@st.composite
def textures(draw: st.DrawFn) -> Texture:
    memory = draw(st.sampled_from((ARRAY, LINEAR, PITCHED)))
    count = {LINEAR: 1, PITCHED: 2}.get(memory) or draw(st.integers(1, 3))
    extents = tuple(Expression.parse(draw(st.sampled_from(("w", "h + 1", "8", "w * 2")))) for _ in range(count))
    if draw(st.booleans()):
        return Texture("s", "b", extents, True, draw(st.sampled_from(("", "u32"))))
    return Texture(
        "t", "b", extents, False, draw(st.sampled_from(("", "f32x4"))), memory,
        Expression.parse("w * 32") if memory == PITCHED else None, draw(st.booleans()),
        draw(st.sampled_from(FILTERS)), tuple(draw(st.lists(st.sampled_from(ADDRESSES), min_size=1, max_size=3))),
        draw(st.booleans()), draw(st.booleans()),
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(textures())
def test_every_texture_is_read_back_as_it_was_written(texture: Texture) -> None:
    _, _, text = texture_text(texture).partition("  ")
    assert read_texture(text.strip(), texture.surface) == texture


def test_settings_state_them_too(tmp_path: Path) -> None:
    (tmp_path / ".cuda-lsp.toml").write_text(
        '[workload.k]\nsizes = { n = 64 }\nbuffers = { a = "f32[n] in", b = "u8[n] out" }\n'
        'textures = { t = "a(n, linear)" }\nsurfaces = { s = "b(n)" }\nplan = "launch k<<<1, 32>>>(t, s, 1)"\n'
    )
    document = parse(SOURCE.encode())
    workload = read_settings(tmp_path).workload(document, document.kernel("k"))
    assert workload is not None
    assert [(one.name, one.memory, one.surface) for one in workload.textures] == [
        ("t", "linear", False), ("s", "array", True),
    ]  # fmt: skip


def test_an_extent_may_compare() -> None:
    made = read_texture("t: a(w < 8 ? 8 : w, h, layered)", False)
    assert [str(one) for one in made.extents] == ["w < 8 ? 8 : w", "h"] and made.layered


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet="ta:(),=<>?.w8 \n", max_size=30))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        read_statements(f"texture t: a({text}", "k", Origin("directive", 1), 1)
    except WorkloadError as error:
        assert error.message
