"""What is written for another evaluator, without it and without a card."""

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from agent.workload.bind import bind
from tests.attacks.entry import Attack, Control
from tests.attacks.originals import ORIGINALS
from tests.benchmarks import peers
from tests.benchmarks.peers import CHOSEN, chosen, files
from tests.evaluation.kernels import original
from tests.gpu import kernelbench
from tests.gpu.modules import NotExpressible, model_new, reference


def test_the_candidates_are_attacks_and_controls_by_name() -> None:
    found = chosen(len(CHOSEN))
    assert [one.name for one in found] == list(CHOSEN)
    assert sum(isinstance(one, Control) for one in found) == 3 and isinstance(chosen(2)[1], Attack)


@pytest.mark.parametrize("number", range(len(CHOSEN)), ids=CHOSEN)
def test_each_is_written_as_a_file_of_its_format(number: int, tmp_path: Path) -> None:
    made = files(chosen(len(CHOSEN))[number], number, tmp_path)
    loaded: list[dict[str, str]] = []
    here = _torch(loaded)
    exec(compile(made.candidate.read_text(), "candidate", "exec"), here)
    exec(compile(made.reference.read_text(), "reference", "exec"), here)
    (asked,) = loaded
    assert asked["name"] == f"candidate{number}" and asked["cpp_sources"] == "torch::Tensor answer(torch::Tensor x_);"
    assert "<<<dim3(" in asked["cuda_sources"] and "return y_;" in asked["cuda_sources"]
    assert here["ModelNew"].forward and here["Model"].forward and here["get_init_inputs"]() == []


def _torch(loaded: list[dict[str, str]]) -> dict[str, object]:
    """Names under which the files find what they import."""
    names = ("torch", "torch.nn", "torch.utils", "torch.utils.cpp_extension")
    modules = {name: ModuleType(name) for name in names}
    modules["torch.nn"].Module = object  # type: ignore[attr-defined]
    modules["torch"].nn = modules["torch.nn"]  # type: ignore[attr-defined]
    modules["torch.utils.cpp_extension"].load_inline = lambda **asked: loaded.append(asked)  # type: ignore[attr-defined]

    def find(name: str, *more: object) -> ModuleType:
        return modules["torch.utils.cpp_extension" if name.endswith("cpp_extension") else "torch"]

    return {"__builtins__": {**__builtins__, "__import__": find}}  # type: ignore[dict-item]


def test_a_plan_of_several_steps_with_scratch_is_written_in_order() -> None:
    text = ORIGINALS["scale"].replace(
        "//   launch   scale<<<(n + 255) / 256, 256>>>(x, y, n)",
        "//   scratch  t: f32[n] zeroed\n//   launch   scale<<<(n + 255) / 256, 256>>>(x, t, n)\n"
        "//   copy     y t\n//   fill     t 3",
    )
    program, workload = original(text)
    made = model_new(text, bind(workload, program.plan, None, program.document), "k")
    order = ["t_ = torch::zeros({40000}", "Pointer{t.at + 0}, 40000)", "cudaMemcpyAsync(y.at, t.at, 160000",
             "cudaMemsetAsync(t.at, 3, 160000)", "return y_;"]  # fmt: skip
    places = [made.index(words) for words in order]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ["variance", "histogram", "inplace"])
def test_what_cannot_be_said_is_not_written(name: str) -> None:
    program, workload = original(ORIGINALS[name])
    with pytest.raises(NotExpressible):
        model_new("", bind(workload, program.plan, None, program.document), "k")


def test_the_reference_makes_inputs_of_the_declared_sizes() -> None:
    program, workload = original(ORIGINALS["rowsum"])
    made = reference("x.view(100, 1000).sum(1)", bind(workload, program.plan, None, program.document))
    assert "return [torch.randn(100000)]" in made and "def forward(self, x):\n        return x.view(100" in made


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    card = object()
    monkeypatch.setattr(kernelbench, "NEEDED", ("json", "no_such_module"))
    assert "CUDA_LSP_KERNELBENCH must name" in peers.problem("", card)  # type: ignore[arg-type]
    (tmp_path / "src" / "kernelbench").mkdir(parents=True)
    (tmp_path / "src" / "kernelbench" / "eval.py").write_text("")
    assert "no_such_module" in peers.problem(str(tmp_path), card)  # type: ignore[arg-type]


EVALUATOR = """
from dotenv import load_dotenv
from openai import OpenAI
from litellm import completion
load_dotenv()

class Found:
    compiled, correctness, runtime, metadata = True, True, 0.5, {"device": "cuda:0", "trials": "(5 / 5)"}

def eval_kernel_against_ref(reference, candidate, **more):
    print("what it prints is in nobody's way")
    assert (reference, candidate, more["num_correct_trials"], more["num_perf_trials"]) == ("R", "C", 5, 100)
    assert more["precision"] == "half"
    return Found()
"""


def test_its_answer_is_one_line_whatever_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "src" / "kernelbench"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "eval.py").write_text(EVALUATOR)
    for name, text in (("reference", "R"), ("candidate", "C")):
        (tmp_path / name).write_text(text)
    torch = ModuleType("torch")
    torch.device, torch.float16 = str, "half"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", "")
    monkeypatch.setenv("CUPY_CACHE_DIR", "")
    for name in (*kernelbench.CLIENTS, "kernelbench", "kernelbench.eval"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    given = [str(tmp_path / name) for name in ("reference", "candidate")]
    kernelbench.main(str(tmp_path), "judge", *given, str(tmp_path), "float16")
    told = json.loads(capsys.readouterr().out)
    assert told["compiled"] and told["correct"] and told["why"] == {"trials": "(5 / 5)"} and told["seconds"] >= 0
    for name in (*kernelbench.CLIENTS, "kernelbench", "kernelbench.eval"):
        monkeypatch.delitem(sys.modules, name, raising=False)
