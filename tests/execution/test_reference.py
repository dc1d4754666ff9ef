"""A PyTorch function of the user's in a process of its own: what it gets, what it may give, and how it may fail."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from agent.execution.children import reference_messages as say
from agent.execution.children.reference import called, opened, timed
from agent.execution.reference import TorchReference
from agent.workload.workload import Reference

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed: make test TORCH=torch==2.13.0"
)

SOURCE = """
import os
import torch

def softmax(x, rows, cols):
    assert x.dtype == torch.float64 and x.dim() == 1
    return torch.softmax(x.view(rows, cols), dim=1)

def two(x, scale=2.0):
    return x * scale, {"a": 1}["a"] + x

def named(x, y):
    return {"y": x + y}

def asks(x, nothing):
    return x

def raises(x):
    raise ValueError("no good\\nin two lines")

def short(x):
    return x[1:]

def text(x):
    return "x"

def ends(x):
    os._exit(7)

def sleeps(x):
    import time
    time.sleep(600)

def keys(x):
    return x * len([name for name in os.environ if name.endswith("_API_KEY")])

class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x.view(-1, 4))

def deep(x):
    return [inner(one) for one in (x,)][0]

def inner(x):
    return x.view(5, 7)

def beside(x):
    import beside
    return beside.helper(x)

number = 5
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("refs")
    (made / "refs.py").write_text(SOURCE)
    (made / "broken.py").write_text("def f(:\n")
    (made / "beside.py").write_text("def helper(x):\n    return {}['gone']\n")
    (made / "late.py").write_text("import math\n\nmath.sqrt(-1)\n")
    return made


@pytest.fixture
def open_(folder: Path) -> Iterator[object]:
    made: list[TorchReference] = []

    def opened(name: str, path: str = "refs.py") -> TorchReference:
        made.append(TorchReference(Reference(path, name), folder))
        return made[-1]

    yield opened
    for one in made:
        one.close()


X = np.linspace(-3, 5, 24).astype(np.float32)


def test_it_computes_in_float64(open_) -> None:
    found = open_("softmax").answer({"x": X}, {"rows": 4, "cols": 6}, {"y": 24})
    wide = np.exp(X.astype(np.longdouble).reshape(4, 6))
    expected = (wide / wide.sum(axis=1, keepdims=True)).reshape(-1)
    np.testing.assert_allclose(found["y"], expected.astype(np.float64), rtol=1e-14)


def test_it_stays_loaded_and_says_its_version(open_) -> None:
    one = open_("two")
    for scale in (3, 0.5):
        found = one.answer({"x": X}, {"scale": scale, "unused": 1}, {"a": 24, "b": 24})
        np.testing.assert_array_equal(found["a"], X.astype(np.float64) * scale)
        np.testing.assert_array_equal(found["b"], X.astype(np.float64) + 1)
    assert one.version[0].isdigit()


def answered(folder: Path, name: str, outputs: dict[str, int], **tensors: np.ndarray) -> dict[str, np.ndarray]:
    """In this very process, which is quicker."""
    made, function = opened(say.Open(str(folder / "refs.py"), name))
    assert not made.problem
    given = tuple(say.Tensor(key, one.dtype.str, one.tobytes()) for key, one in tensors.items())
    found = called(function, say.Call(given, {}, tuple(outputs.items())))
    assert not found.problem
    return {one.name: np.frombuffer(one.data, one.dtype) for one in found.outputs}


def test_results_by_name_and_whole_numbers(folder: Path) -> None:
    found = answered(folder, "named", {"y": 24, "other": 3}, x=X, y=np.arange(24, dtype=np.int32))
    np.testing.assert_array_equal(found["y"], X.astype(np.float64) + np.arange(24))
    assert set(found) == {"y"}, "what it does not give is not made up"


def test_a_module_takes_its_weights_from_buffers(folder: Path) -> None:
    rng = np.random.default_rng(5)
    weight, bias = rng.normal(size=(3, 4)).astype(np.float32), rng.normal(size=3).astype(np.float32)
    found = answered(folder, "Linear", {"y": 18}, x=X, layer_weight=weight.reshape(-1), layer_bias=bias)
    expected = X.astype(np.float64).reshape(6, 4) @ weight.astype(np.float64).T + bias
    np.testing.assert_allclose(found["y"], expected.reshape(-1), rtol=1e-13)


def line_of(piece: str) -> int:
    return SOURCE[: SOURCE.index(piece)].count("\n") + 1


FAILS = {
    "asks": "its parameter nothing is no buffer, size or constant of the workload: n, x",
    "raises": f"refs.py, line {line_of('raise ValueError')} in raises: ValueError: no good",
    "deep": f"refs.py, line {line_of('x.view(5, 7)')} in inner: RuntimeError: shape '[5, 7]' is invalid",
    "beside": "beside.py, line 2 in helper: KeyError: 'gone'",
    "short": "its result y has 23 elements, the buffer 24",
    "text": "it gives str; a tensor, several, or a dictionary of them is wanted",
    "two": "it gives 2 results; the workload has 1 outputs",
    "Linear": "the module's layer.weight has no buffer: one called layer_weight would be it",
    "number": "refs.py has no function or module called number",
    "missing": "refs.py has no function or module called missing",
}


@pytest.mark.parametrize("name", FAILS)
def test_what_goes_wrong_is_said(folder: Path, name: str) -> None:
    made, function = opened(say.Open(str(folder / "refs.py"), name))
    call = say.Call((say.Tensor("x", "<f4", X.tobytes()),), {"n": 24}, (("y", 24),))
    problem = made.problem or called(function, call).problem
    assert FAILS[name] in problem and "\n" not in problem


def test_files_that_cannot_be_loaded(folder: Path) -> None:
    assert "no such file" in opened(say.Open(str(folder / "none.py"), "f"))[0].problem
    late = opened(say.Open(str(folder / "late.py"), "f"))[0].problem
    assert late == "late.py cannot be loaded: late.py, line 3: ValueError: math domain error"
    assert "broken.py cannot be loaded: SyntaxError" in opened(say.Open(str(folder / "broken.py"), "f"))[0].problem


def test_a_process_that_ends_is_started_again(open_) -> None:
    one = open_("ends")
    for _ in range(2):
        assert "ended its process" in one.answer({"x": X}, {}, {"y": 24})


def test_no_key_reaches_it(open_, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "CUDA_LSP_API_KEY", "secret")
    found = open_("keys").answer({"x": X}, {}, {"y": 24})
    assert not found["y"].any()


def test_it_is_waited_for_as_long_as_allowed(open_) -> None:
    found = open_("sleeps").answer({"x": X}, {}, {"y": 24}, seconds=0.5)
    assert found == "refs.py:sleeps did not answer within 0.5 s"


def test_too_large_and_cancelled(open_, monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_("softmax").answer({"x": X}, {}, {"y": 24}, cancelled=lambda: True) == "cancelled"
    monkeypatch.setattr("agent.execution.reference.MOST_BYTES", 64)
    assert "too much" in open_("softmax").answer({"x": X}, {}, {"y": 24})


def test_without_a_card_it_is_not_timed(folder: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a card: tests/gpu times it")
    _, function = opened(say.Open(str(folder / "refs.py"), "two"))
    found = timed(function, say.Time((say.Tensor("x", "<f4", X.tobytes()),), {}, False, 3, 1 << 20))
    assert "sees no card" in found.problem and not found.seconds


@pytest.mark.gpu
@pytest.mark.parametrize("compiled", [False, True])
def test_it_is_timed_on_a_card(open_, compiled: bool) -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no card here")
    found = open_("two").times({"x": ("<f4", X.tobytes())}, {"scale": 2.0}, compiled, 1 << 20)
    assert isinstance(found, tuple) and all(0 < seconds < 1 for seconds in found), found
