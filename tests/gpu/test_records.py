"""A verdict that was measured on a card is recorded and repeated: there, and in the emulator."""

import pytest

from agent.evaluation.judge import examine, tool
from agent.evaluation.prepare import Prepared, prepare
from agent.evaluation.record.comparing import compare
from agent.evaluation.record.environment import environment
from agent.evaluation.record.making import record
from agent.evaluation.record.replaying import reopened, rerun
from agent.execution.compiler.result import Options
from agent.execution.device import Device
from agent.execution.emulator import Emulator
from agent.execution.gpu import Gpu
from tests.evaluation.kernels import SOFTMAX, original, rewrite, setting

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("depth", ["screen", "full"])
def test_a_measured_verdict_holds_there_and_is_right_elsewhere(depth: str, card: Gpu) -> None:
    program, workload = original(SOFTMAX)
    prepared = prepare(program, workload, setting(device=card, depth=depth, options=Options(arch=card.arch)))
    assert isinstance(prepared, Prepared), prepared
    candidate = rewrite(SOFTMAX.replace("expf(in[i] - peak) / sum", "expf(in[i] - peak) * (1.0f / sum)"), program.plan)
    made = record(prepared, candidate, examine(prepared, candidate))
    assert made.verdict.correctness.state == "right", made.verdict.correctness.reason
    assert made.environment.card is not None and made.environment.card.name == card.name
    timed = made.verdict.evidence.timing
    assert timed is not None and len(timed.samples) == timed.blocks > 0
    device: Device
    for device in (card, Emulator()):
        with reopened(made) as found:
            again = rerun(found, device, card.arch, 120.0, lambda: False, fresh=False)
        assert again.prepared is not None and again.judged is not None
        here = environment(again.prepared, again.judged.verdict)
        compared = compare(made, again.judged, here, tool(), again.prepared.contract.deterministic)
        assert compared.against == (), compared
        assert compared.counts.inputs > 0 and compared.same_place == (device is card)
        if device is card:
            assert compared.counts.original == compared.counts.candidate == compared.counts.hashed > 0
        else:
            assert "timing not replayed: no GPU here" in compared.notes
