"""Random kernels with nested, divergent control flow, against the same program run thread by thread in Python."""

import importlib.util
from collections.abc import Callable

import numpy as np
from attrs import frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.execution.emulator.building import build, launch, run

MASK = 0xFFFFFFFF
NAMES = ("a", "b", "c", "d")
THREADS, BLOCKS = 48, 3
COMPILES = importlib.util.find_spec("llvmlite") is not None


class Break(Exception):
    pass


class Continue(Exception):
    pass


State = dict[str, int]


@frozen
class Piece:
    """A statement as CUDA text and as a function on one thread's variables."""

    text: str
    run: Callable[[State], None]


@frozen
class Value:
    text: str
    of: Callable[[State], int]


@st.composite
def values(draw: st.DrawFn, depth: int = 0) -> Value:
    kind = draw(st.sampled_from(["name", "name", "number", "binary", "binary"] if depth < 2 else ["name", "number"]))
    if kind == "name":
        name = draw(st.sampled_from((*NAMES, "t", "g")))
        return Value(name, lambda state: state[name])
    if kind == "number":
        number = draw(st.sampled_from([0, 1, 2, 3, 5, 7, 31, 32, 97, 0x55555555]))
        return Value(f"{number}u", lambda state: number)
    left, right = draw(values(depth + 1)), draw(values(depth + 1))
    sign, function = draw(
        st.sampled_from(
            [
                ("+", lambda x, y: (x + y) & MASK),
                ("-", lambda x, y: (x - y) & MASK),
                ("*", lambda x, y: (x * y) & MASK),
                ("^", lambda x, y: x ^ y),
                ("&", lambda x, y: x & y),
                ("<", lambda x, y: int(x < y)),
            ]
        )
    )
    return Value(f"({left.text} {sign} {right.text})", lambda state: function(left.of(state), right.of(state)))


@st.composite
def assignments(draw: st.DrawFn) -> Piece:
    name, value = draw(st.sampled_from(NAMES)), draw(values())

    def go(state: State) -> None:
        state[name] = value.of(state)

    return Piece(f"{name} = {value.text};", go)


@st.composite
def blocks(draw: st.DrawFn, depth: int, looping: bool) -> Piece:
    return joined(draw(st.lists(pieces(depth, looping), min_size=1, max_size=3)))


def joined(parts: list[Piece]) -> Piece:
    def go(state: State) -> None:
        for part in parts:
            part.run(state)

    return Piece(" ".join(part.text for part in parts), go)


@st.composite
def branches(draw: st.DrawFn, depth: int, looping: bool) -> Piece:
    condition, yes = draw(values()), draw(blocks(depth + 1, looping))
    no = draw(blocks(depth + 1, looping))
    modulus = draw(st.sampled_from([2, 3, 7]))

    def go(state: State) -> None:
        (yes if condition.of(state) % modulus else no).run(state)

    return Piece(f"if ({condition.text} % {modulus}u) {{ {yes.text} }} else {{ {no.text} }}", go)


@st.composite
def loops(draw: st.DrawFn, depth: int) -> Piece:
    count, body, name = draw(values()), draw(blocks(depth + 1, True)), f"i{depth}_{draw(st.integers(0, 10**6))}"
    most = draw(st.sampled_from([1, 3, 6]))

    def go(state: State) -> None:
        for _ in range(count.of(state) % most):
            try:
                body.run(state)
            except Continue:
                continue
            except Break:
                break

    times = f"{name}_n = {count.text} % {most}u"
    return Piece(f"for (unsigned {name} = 0, {times}; {name} < {name}_n; {name}++) {{ {body.text} }}", go)


@st.composite
def leaps(draw: st.DrawFn) -> Piece:
    condition, kind = draw(values()), draw(st.sampled_from(["break", "continue"]))

    def go(state: State) -> None:
        if condition.of(state) % 3 == 0:
            raise Break if kind == "break" else Continue

    return Piece(f"if ({condition.text} % 3u == 0) {kind};", go)


def pieces(depth: int, looping: bool) -> st.SearchStrategy[Piece]:
    choices = [assignments(), assignments()]
    if depth < 3:
        choices += [branches(depth, looping), loops(depth)]
    if looping:
        choices.append(leaps())
    return st.one_of(choices)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(blocks(0, False), min_size=1, max_size=3), st.sampled_from([(), ("-G",)]))
def test_random_programs_do_what_each_thread_alone_would(parts: list[Piece], options: tuple[str, ...]) -> None:
    # between the parts all threads exchange a variable over a barrier
    exchange = "s[t] = a; __syncthreads(); b ^= s[(t + 1) % blockDim.x]; __syncthreads(); "
    text = exchange.join(part.text + "\n" for part in parts)
    source = f"""extern "C" __global__ void k(unsigned* y) {{
        __shared__ unsigned s[{THREADS}];
        unsigned t = threadIdx.x, g = blockIdx.x, a = t * 3, b = g + 1, c = 7, d = t ^ g;
        {text}
        unsigned i = (g * blockDim.x + t) * 4; y[i] = a; y[i + 1] = b; y[i + 2] = c; y[i + 3] = d; }}"""
    found = [
        run(
            build(source, *options),
            launch("k", BLOCKS, THREADS, "y"),
            {"y": np.zeros((BLOCKS, THREADS, 4), np.uint32)},
            checks=frozenset({"races", "initialised", "barriers"}),
            back_end=back_end,
        )
        for back_end in ("numpy", "compiled")
    ]
    (answer, out), (compiled, also) = found
    assert answer.status == "ok", answer
    assert compiled.status == "ok" and compiled.thread_instructions == answer.thread_instructions, compiled
    assert compiled.compiled == (("k",) if COMPILES else ())
    np.testing.assert_array_equal(also["y"], out["y"], err_msg=source)
    for g in range(BLOCKS):
        states = [{"t": t, "g": g, "a": t * 3, "b": g + 1, "c": 7, "d": t ^ g} for t in range(THREADS)]
        for number, part in enumerate(parts):
            if number:
                shared = [state["a"] for state in states]
                for t, state in enumerate(states):
                    state["b"] ^= shared[(t + 1) % THREADS]
            for state in states:
                part.run(state)
        wanted = np.array([[state[name] for name in NAMES] for state in states], np.uint32)
        np.testing.assert_array_equal(out["y"][g], wanted, err_msg=source)
