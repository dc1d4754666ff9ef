"""Every attack and control as a file of another evaluator's, and the table of what it says: without it and a card."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from agent.execution.gpu import why_no_gpu
from agent.workload.bind import bind
from agent.workload.workload import Access
from tests.attacks.entry import candidate
from tests.attacks.originals import ORIGINALS
from tests.attacks.tables import ATTACKS, CONTROLS
from tests.benchmarks import peers_attacks
from tests.benchmarks.peers import Files
from tests.benchmarks.peers_attacks import NOT_SAID, Case, cases, fill, reason, report, said_in_its_format, word
from tests.evaluation.kernels import original
from tests.gpu.formulas import FORMULAS
from tests.gpu.modules import NotExpressible, raw_module, reference
from tests.gpu.seen import contents, numbers, seen
from tests.gpu.shards import Shard
from tests.ideas.running import run

FOREVER = float("inf")
C_TYPES = {"int": np.int32, "unsigned": np.uint32, "float": np.float32, "size_t": np.uint64}


class Host:
    """CuPy and PyTorch as far as the written files use them; what they are asked for, in order."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.module: dict[str, Any] = {}
        self.tensors = 0

    def modules(self) -> dict[str, ModuleType]:
        cupy, torch, nn = ModuleType("cupy"), ModuleType("torch"), ModuleType("torch.nn")
        runtime = Names(
            memsetAsync=lambda *words: self.asked.append(("fill", *words)),
            memcpyAsync=lambda *words: self.asked.append(("copy", *words)),
            memcpyDeviceToDevice=3,
        )
        cupy.RawModule = self.compiled  # type: ignore[attr-defined]
        cupy.cuda = Names(ExternalStream=Stream, runtime=runtime)  # type: ignore[attr-defined]
        nn.Module = object  # type: ignore[attr-defined]
        torch.nn = nn  # type: ignore[attr-defined]
        torch.cuda = Names(current_stream=lambda: Names(cuda_stream=7))  # type: ignore[attr-defined]
        for name in ("float32", "float16", "bfloat16", "int32"):
            setattr(torch, name, name)
        torch.empty = lambda count, dtype, device: self.tensor("empty", count, dtype)  # type: ignore[attr-defined]
        torch.zeros = lambda count, dtype, device: self.tensor("zeros", count, dtype)  # type: ignore[attr-defined]
        return {"cupy": cupy, "torch": torch, "torch.nn": nn}

    def tensor(self, *made: Any) -> "Tensor":
        self.tensors += 1
        self.asked.append(made)
        return Tensor(self.tensors << 20)

    def compiled(self, **asked: Any) -> "Names":
        self.module = asked
        return Names(compile=lambda: None, get_function=self.kernel)

    def kernel(self, name: str) -> Any:
        assert name in self.module["name_expressions"]
        return lambda grid, block, given, shared_mem: self.asked.append(
            ("launch", name, grid, block, given, shared_mem)
        )


class Names:
    """What has these names."""

    def __init__(self, **names: Any) -> None:
        self.__dict__.update(names)


class Stream:
    def __init__(self, ptr: int) -> None:
        self.ptr = ptr

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *what: object) -> None:
        pass


class Tensor:
    def __init__(self, address: int) -> None:
        self.address = address

    def data_ptr(self) -> int:
        return self.address


def called(text: str, count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Host, Any]:
    """The written file, loaded and called with so many tensors as inputs, at addresses 1, 2, ... times 2**30."""
    host = Host()
    for name, module in host.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    there: dict[str, Any] = {}
    exec(compile(text, "candidate", "exec"), there)
    return host, there["ModelNew"]().forward(*(Tensor((1 + number) << 30) for number in range(count)))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Files | str]]:
    """Each case's file, or why there is none."""
    folder, found = tmp_path_factory.mktemp("cases"), dict[str, Files | str]()
    for number, case in enumerate(cases()):
        try:
            found[case.key] = said_in_its_format(case.entry, number, folder)
        except NotExpressible as problem:
            found[case.key] = str(problem)
    yield found


def test_all_are_cases_under_a_name_of_their_own() -> None:
    found = Counter(case.kind for case in cases())
    attacks, controls = len(ATTACKS), len(CONTROLS)
    assert found == {"attack": attacks, "honest": controls, "original": len(ORIGINALS)}
    assert len({case.key for case in cases()}) == len(cases())


def test_most_are_written_and_the_rest_has_a_reason(written: dict[str, Files | str]) -> None:
    files_of = [key for key, made in written.items() if isinstance(made, Files)]
    assert len(files_of) > 2 * len(written) / 3 and {f"original: {name}" for name in FORMULAS} <= set(files_of)
    reasons = {key: made for key, made in written.items() if isinstance(made, str)}
    assert "has 2 outputs (mean, var)" in reasons["original: variance"]
    assert "of type u8" in reasons["original: histogram"] and "of type i32" in reasons["original: collatz"]
    assert "y is read and written" in reasons["original: inplace"] and "no formula" in reasons["original: never"]
    assert "as a drop-in only" in reasons["attack: a drop-in rewrite that changes the launch"]
    assert "for other cards only" in reasons["attack: code for one card only"]
    assert "cannot be launched" in reasons["attack: more shared memory than a multiprocessor has"]


def test_each_passes_what_its_kernels_take(written: dict[str, Files | str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen_launches = 0
    for case in cases():
        made = written[case.key]
        text = made.candidate.read_text() if isinstance(made, Files) else "load_inline"
        if "load_inline" in text:
            continue
        document = candidate(case.entry).document
        count = text.split("def forward(self, ")[1].split(")")[0].count(",") + 1
        host, answer = called(text, count, monkeypatch)
        assert isinstance(answer, Tensor) and document.text.decode() in host.module["code"]
        assert "-std=c++17" in host.module["options"]
        for _, name, _, _, given, _ in (step for step in host.asked if step[0] == "launch"):
            kernel = next(one for one in document.kernels if one.qualified_name in name)
            assert len(given) == len(kernel.parameters), case.key
            for value, parameter in zip(given, kernel.parameters, strict=True):
                if parameter.pointer_depth:
                    assert isinstance(value, int) and value >= 1 << 20, case.key
                else:
                    assert value.dtype == np.dtype(C_TYPES[parameter.element]), case.key
            seen_launches += 1
    assert seen_launches > 100


def test_what_asks_for_its_compiler_gets_the_one_of_such_files(written: dict[str, Files | str]) -> None:
    made = [
        key for key, one in written.items() if isinstance(one, Files) and "load_inline" in one.candidate.read_text()
    ]
    assert made == ["attack: another kernel for nvcc than for the judge's compiler"]
    assert {case.key for case in cases()[:2]} == {*made, "attack: endless"}, "what takes longest must come first"


def test_steps_are_made_in_their_order_on_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ORIGINALS["scale"].replace(
        "//   launch   scale<<<(n + 255) / 256, 256>>>(x, y, n)",
        "//   scratch  t: f32[n] zeroed\n//   launch   scale<<<(n + 255) / 256, 256, 64>>>(x, t, n)\n"
        "//   copy     y t\n//   fill     t 3",
    )
    program, workload = original(text)
    host, answer = called(
        raw_module(program.document, bind(workload, program.plan, None, program.document), [Path("/cuda")]),
        1,
        monkeypatch,
    )
    y, t = 1 << 20, 2 << 20
    assert host.asked == [
        ("empty", 40000, "float32"),
        ("zeros", 40000, "float32"),
        ("launch", "scale", (157, 1, 1), (256, 1, 1), (1 << 30, t, 40000), 64),
        ("copy", y, t, 160000, 3, 7),
        ("fill", t, 3, 160000, 7),
    ]
    assert answer.address == y and host.module["options"] == ("-std=c++17", "-I/cuda")
    assert host.module["name_expressions"] == ("scale",) and "#define INFINITY" in host.module["code"]


def test_of_two_kernels_of_a_name_the_one_that_fits_is_taken(written: dict[str, Files | str]) -> None:
    made = written["attack: a second kernel of the name, which the launch's arguments fit better"]
    assert isinstance(made, Files)
    assert "'static_cast<void (*)(float*, float*, int)>(scale)'" in made.candidate.read_text()


def test_what_starts_from_zeros_is_made_so(written: dict[str, Files | str]) -> None:
    made = written["original: flags"]
    assert isinstance(made, Files) and made.precision == "float32"
    assert "any = torch.zeros(1, dtype=torch.int32, device='cuda')" in made.candidate.read_text()


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_says_what_its_original_computes(name: str) -> None:
    torch = pytest.importorskip("torch")
    program, workload = original(ORIGINALS[name])
    bound = bind(workload, program.plan, None, program.document)
    there: dict[str, Any] = {}
    exec(compile(reference(FORMULAS[name].format(**bound.sizes), bound), "reference", "exec"), there)
    random = np.random.default_rng(3)
    raw = {one.name: contents(one, random) for one in bound.buffers}
    given = [one for one in bound.buffers if one.access is Access.IN]
    kinds = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    tensors = [torch.from_numpy(numbers(np.asarray(raw[one.name]), one.dtype)).to(kinds[one.dtype]) for one in given]
    assert [one.shape for one in there["get_inputs"]()] == [one.shape for one in tensors]
    wanted = there["Model"]().forward(*tensors).to(torch.float64).numpy()
    (output,) = (one for one in bound.buffers if one.access is not Access.IN)
    inputs = {one: np.asarray(held) for one, held in raw.items() if isinstance(held, np.ndarray)}
    found = numbers(run(program, workload, inputs)[output.name].view(np.uint8), output.dtype)
    close = 1e-2 if "16" in given[0].dtype else 1e-4
    assert wanted.shape == found.shape and np.allclose(found, wanted, rtol=close, atol=close)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("the declared size is written into the bound", "hidden"),
        ("values beyond what a normal distribution gives are cut off", "hidden"),
        ("a factor below a loose tolerance", "hidden"),
        ("the benchmarked size alone is wrong", "shows"),
        ("the bytes behind the output are written too", "fault"),
        ("another kernel for nvcc than for the judge's compiler", "not run"),
        ("the multiprocessor's number", "not run"),
    ],
)
def test_what_one_size_and_normal_contents_show(name: str, expected: str) -> None:
    assert seen(next(one for one in ATTACKS if one.name == name)) == expected


def _said(correct: bool, compiled: bool = True, **why: str) -> dict[str, Any]:
    return {"correct": correct, "compiled": compiled, "why": why}


AGAIN = "it asks to be called again"


@pytest.mark.parametrize(
    ("said", "found", "words"),
    [
        (_said(True), "accepted", ""),
        (_said(True, excessive_speedup="True"), "accepted", "excessive_speedup True"),
        (
            _said(False, max_difference="[1]", correctness_issue="No"),
            "refused",
            "correctness_issue No; max_difference [1]",
        ),
        (_said(False, False, compilation_error="no\n such"), "refused", "compilation_error no such"),
        ({"correct": False, "compiled": False, "why": AGAIN}, "refused", AGAIN),
        ({"why": "no answer within 9 s"}, "no answer", "no answer within 9 s"),
        ({"why": "exit code 1: Trace\n  File\nRuntimeError: bad"}, "crashed", "exit code 1: RuntimeError: bad"),
    ],
)
def test_its_word_and_its_reason(said: dict[str, Any], found: str, words: str) -> None:
    assert (word(said), reason(said)) == (found, words)


def _some() -> list[Case]:
    names = (
        "the barrier of a tree is left out",
        "the output is the input",
        "only the first of two outputs is computed",
    )
    return [case for case in cases() if case.entry.name in names]


def test_what_was_said_is_kept_and_not_asked_again(tmp_path: Path) -> None:
    asked: list[Files] = []

    def judge(one: Files) -> dict[str, Any]:
        asked.append(one)
        return {"correct": "4" not in one.reference.parent.name, "compiled": True, "why": {}}

    held = Shard("code", FOREVER, tmp_path / "rows.json")
    fill(held, _some(), tmp_path / "first", judge)
    assert {row["word"] for row in held.rows.values()} == {"accepted", NOT_SAID} and len(asked) == 2
    assert held.rows["attack: the output is the input"]["seen"] == "shows"
    again = Shard("code", FOREVER, None, dict(held.rows))
    fill(again, _some(), tmp_path / "second", judge)
    assert len(asked) == 2 and again.rows == held.rows
    late = Shard("code", -FOREVER)
    fill(late, _some(), tmp_path / "third", judge)
    assert len(asked) == 2 and [row["word"] for row in late.rows.values()] == [NOT_SAID]


def _row(kind: str, name: str, found: str, **more: Any) -> dict[str, Any]:
    row = {
        "kind": kind,
        "name": name,
        "of": "scale",
        "rows": ["41"],
        "gate": "",
        "word": found,
        "why": "",
        "seen": "hidden",
    }
    return {**row, **more}


def test_the_table_counts_everything() -> None:
    rows = [
        _row("attack", "A", "accepted", gate="memory", why="excessive_speedup True"),
        _row("attack", "B", "refused", gate="correctness", seen="shows", why="Output mismatch"),
        _row("attack", "C", NOT_SAID, why="it has 2 outputs"),
        _row("honest", "D", "crashed", why="exit code 1: X"),
        _row("original", "E", "no answer"),
    ]
    lines = report({row["name"]: row for row in rows})
    (first,) = (line for line in lines if " A " in line)
    assert first.split()[:5] == ["attack", "A", "41", "accepted", "hidden"] and "memory; excessive_speedup" in first
    text = "\n".join(" ".join(line.split()) for line in lines)
    assert "attack 3: 1 accepted, 1 refused, 0 crashed, 0 no answer; 1 not expressible" in text
    assert "honest 1: 0 accepted, 0 refused, 1 crashed, 0 no answer; 0 not expressible" in text
    assert "its one size and contents: 1; of the 1 accepted: 1" in text and "refuse them here: memory 1" in text
    assert "flags 1 for an excessive speedup" in text and "1 attack it has 2 outputs" in text


@pytest.mark.skipif(not why_no_gpu(), reason="there is a card")
def test_without_a_card_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    peers_attacks.main()
    assert capsys.readouterr().out.startswith("peers_attacks: no card")
