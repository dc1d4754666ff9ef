"""Integers that do not fit their type in host code: sizes are what C makes of them, or are asked for."""

import ctypes

import pytest

from agent.source.document import parse
from agent.workload.bind import bind
from agent.workload.errors import NoWorkload
from agent.workload.static import infer

KERNEL = "__global__ void k(float* p, long n) { if (threadIdx.x < n) p[threadIdx.x] = 1; }\n"
LAUNCH = "float* p; cudaMalloc(&p, n * sizeof(float)); k<<<1, 64>>>(p, n);"


def count(body: str, before: str = "", answers: dict[str, int] | None = None, **sizes: int) -> int:
    """Elements of the buffer at the program's own sizes, or at those told."""
    document = parse(f"{KERNEL}{before}int main(int argc, char** argv) {{ {body} {LAUNCH} }}\n".encode())
    found = infer(document, document.kernel("k"), answers)
    values: dict[str, int | float] = {size.name: size.value for size in found.sizes} | sizes
    return int(found.buffers[0].extent.evaluate(values))


# The numbers on the right are those that a C++17 compiler for 64-bit Linux gives, worked out by hand.
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("uint16_t n = 66000;", 464),
        ("unsigned short n = 66000;", 464),
        ("int m = 66000; uint16_t n = m;", 464),
        ("const int m = 66000; const auto n = (uint16_t)m;", 464),
        ("auto n = static_cast<unsigned char>(300);", 44),
        ("int n = uint8_t(300);", 44),
        ("int n = 5; short s = (short)70000; n += s;", 4469),
        ("int n = 5; unsigned char c = 300; n += c;", 49),
        ("int n = 500; signed char c = 200; n += c;", 444),
        ("int n = 500; char c = 200; n += c;", 444),
        ("int n = 3; unsigned char bits = 250; bits += 10; n <<= bits;", 48),
        ("int n = 3; unsigned char bits = 255; bits++; bits++; n <<= bits;", 6),
        ("int n = 3; unsigned char bits = 1; n += --bits; n += --bits;", 258),
        ("int n = 4000; unsigned u = n - 7600; n = u >> 20;", 4095),
        ("int n = 7601; unsigned u = n - 7600; n = 9 + u;", 10),
        ("unsigned m = 5; unsigned d = m - 6; int n = d / 1000000;", 4294),
        ("unsigned m = 65536; unsigned n = m * m + 9;", 9),
        ("unsigned u = 0; int n = ~u >> 20;", 4095),
        ("unsigned u = 1; int n = -u >> 20;", 4095),
        ("size_t m = 1; m -= 2; int n = m >> 50;", 16383),
        ("unsigned long h = 14695981039346656037ul; h *= 1099511628211ul; int n = h >> 52;", 2806),
        ("int m = -1; unsigned one = 1; int n = m < one ? 7 : 8;", 8),
        ("bool b = 5; int n = 6 + b;", 7),
        ("int m = 5; bool b = m; int n = 6 + b;", 7),
        ("long m = 4294967300; int n = m;", 4),
        ("long n = 3000000000;", 3000000000),
        ("long m = 3000000000; long n = m * 2;", 6000000000),
        ("int m = 60000; long n = (long)m * m;", 3600000000),
        ("int m = 60000; size_t n = m * sizeof(double) * m;", 28800000000),
        ("int n; n = (uint8_t)260;", 4),
        ("auto c = (unsigned char)250; c += 10; int n = c;", 4),
        ("unsigned n = 10; for (unsigned i = n - 11; i > 4294967290u; i--) n++;", 15),
        ("int m = 3; int n = m - sizeof(int) > 0 ? 100 : 7;", 100),
        ("unsigned char c; int n = c = 260;", 4),
        ("int n = 0; unsigned char c = 0; for (int i = 0; i < 3; i++) c += 100; n = c;", 44),
        ("short a[2] = {(short)70000, 1}; int n = a[0];", 4464),
        ("unsigned char a[2]; a[0] = 300; int n = a[0];", 44),
        ("unsigned char a[2]; unsigned char* q = a; *q = 300; int n = a[0];", 44),
        ("double d = 300.5; int m = d; unsigned char n = m;", 44),
    ],
)
def test_a_size_is_what_its_type_holds(body: str, expected: int) -> None:
    assert count(body) == expected


@pytest.mark.parametrize(
    ("before", "body", "expected"),
    [
        ("int f(unsigned char c) { return c; }\n", "int n = f(300);", 44),
        ("int f(unsigned char c) { return c; }\n", "int m = 300; int n = f(m);", 44),
        ("unsigned char f(int c) { return c; }\n", "int n = f(300);", 44),
        ("unsigned char f(int c) { return c; }\n", "int m = 300; int n = f(m);", 44),
        ("auto f(int c) -> unsigned char { return c; }\n", "int n = f(300);", 44),
        ("template <class T> T f(int c) { return c; }\n", "int n = f<unsigned char>(300);", 44),
        ("", "auto f = [](int c) -> uint8_t { return c; }; int n = f(300);", 44),
        ("", "auto f = [](uint8_t c) { return c; }; int n = f(300);", 44),
        ("#define M 66000\n", "uint16_t n = M;", 464),
        ("typedef unsigned short half_word;\n", "half_word n = 66000;", 464),
        ("struct S { unsigned char c; };\n", "S s; s.c = 300; int n = s.c;", 44),
        ("struct S { unsigned char c; };\n", "S s{(unsigned char)300}; int n = s.c;", 44),
        ("struct S { unsigned char c = 1; };\n", "S s; s.c += 300; int n = s.c;", 45),
        ("struct S { unsigned char c; };\n", "S s; S* q = &s; q->c = 300; int n = s.c;", 44),
    ],
)
def test_a_value_is_narrowed_on_whichever_way_it_goes(before: str, body: str, expected: int) -> None:
    assert count(body, before) == expected


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("int m = 50000; int n = m * m;", "2500000000, which `int` does not hold"),
        ("int m = 50000; size_t n = m * m * sizeof(float);", "does not hold"),
        ("int m = 2147483647; int n = m + 1;", "does not hold"),
        ("int m = 2147483647; m++; int n = m;", "does not hold"),
        ("int n = 1 << 31;", "does not hold"),
        ("int m = 40; int n = 1 << m;", "a shift of 32 bits by 40"),
        ("int m = -1; int n = 1 << m;", "a shift of 32 bits by -1"),
    ],
)
def test_what_c_leaves_undefined_is_asked(body: str, words: str) -> None:
    with pytest.raises(NoWorkload, match=words):
        count(body)


@pytest.mark.parametrize("told", [7600, 7599, 4000, 7601, 2000000])
def test_what_wraps_at_the_program_s_own_size_is_right_at_others(told: int) -> None:
    body = "int m = 4000; unsigned u = m - 7600; size_t n = (u >> 20) + m;"
    assert count(body, m=told) == (ctypes.c_uint32(told - 7600).value >> 20) + told


@pytest.mark.parametrize("told", [70000, 66000, 32767, 32768, 1])
def test_a_narrowed_size_is_right_at_others(told: int) -> None:
    assert count("int m = 70000; short s = m; int n = m + s;", m=told) == told + ctypes.c_int16(told).value


def test_an_answer_is_narrowed_as_the_program_does() -> None:
    assert count("int m = atoi(argv[1]); uint8_t c = m; int n = m + c;", answers={"m": 300}) == 344


def test_bytes_that_wrapped_are_no_whole_elements() -> None:
    document = parse(
        f"{KERNEL}int main() {{ unsigned n = 1u << 31; unsigned bytes = (n + 8) * 4; float* p;"
        " cudaMalloc(&p, bytes); k<<<1, 64>>>(p, 8); }}\n".replace("}}", "}").encode()
    )
    found = infer(document, document.kernel("k"))
    assert int(found.buffers[0].extent.evaluate({size.name: size.value for size in found.sizes})) == 8


def test_what_fits_stays_as_it_is_written() -> None:
    document = parse(f"{KERNEL}int main() {{ uint16_t n = 1000; {LAUNCH} }}\n".encode())
    found = infer(document, document.kernel("k"))
    assert str(found.buffers[0].extent) == "n"
    assert [size.value for size in found.sizes] == [1000]


@pytest.mark.parametrize(
    ("loop", "launches"),
    [
        ("for (unsigned char s = 0; s < 200; s++) STEP", 200),
        ("for (short s = 0; s <= 300; ++s) STEP", 301),
        ("for (unsigned char s = 1; s < 100; s *= 2) STEP", 7),
        # in C these never end: what comes first is all that is certain
        ("for (unsigned char s = 0; s < 300; s++) STEP", 1),
        ("int m = 40000; for (short s = 0; s < m; s++) STEP", 1),
        ("for (signed char s = 0; s <= 127; s++) STEP", 1),
    ],
)
def test_a_narrow_counter_counts_no_further_than_its_type(loop: str, launches: int) -> None:
    body = loop.replace("STEP", "k<<<1, 64>>>(p, s);")
    document = parse(f"{KERNEL}int main() {{ float* p; cudaMalloc(&p, 256); {body} }}\n".encode())
    found = infer(document, document.kernel("k"))
    assert len(bind(found, found.plan, None, document).steps) == launches


def test_a_narrow_counter_that_turns_back_is_no_longer_loop() -> None:
    """1, 2, 4, ... 128, and then 0 for ever."""
    body = "for (unsigned char s = 1; s < 200; s *= 2) k<<<1, 64>>>(p, s);"
    document = parse(f"{KERNEL}int main() {{ float* p; cudaMalloc(&p, 256); {body} }}\n".encode())
    with pytest.raises(NoWorkload, match="unrolls to more than"):
        infer(document, document.kernel("k"))
