"""``verify --replay``: a proof record repeated on this machine, and what of it holds."""

from agent.evaluation.judge import Judged, tool
from agent.evaluation.prepare import Prepared
from agent.evaluation.record import Record, RecordError, read
from agent.evaluation.record.comparing import Replayed, compare, replayed
from agent.evaluation.record.environment import environment
from agent.evaluation.record.replaying import Reopened, reopened, rerun
from agent.execution.gpu import Gpu
from cuda_lsp.terminal.exits import CommandError, Exit
from cuda_lsp.terminal.interrupt import stoppable
from cuda_lsp.terminal.opening import open_device
from cuda_lsp.terminal.output import Screen
from cuda_lsp.terminal.render import line, verdict_text

_SHOWN = 6


def replay(path: str, device: str, seconds: float, screen: Screen) -> Replayed:
    """Repeat the record in ``path``: with its own numbers, then with fresh ones. Raises CommandError."""
    try:
        record = read(path)
        screen.say(line("record", f"{record.kernel}, {record.settings.depth} verdict of {record.tool}, {record.made}"))
        with reopened(record) as found:
            return _both(found, record, device, seconds, screen)
    except RecordError as error:
        raise CommandError(Exit.INPUT, str(error)) from error


def _both(found: Reopened, record: Record, device: str, seconds: float, screen: Screen) -> Replayed:
    runner = open_device(device)
    arch = runner.arch if isinstance(runner, Gpu) else record.settings.arch
    with screen, stoppable(lambda: screen.note("stopping at the next safe point")) as cancelled:

        def once(fresh: bool) -> tuple[Prepared, Judged]:
            again = rerun(found, runner, arch, seconds, cancelled, fresh)
            if cancelled():
                raise CommandError(Exit.INTERRUPTED, "interrupted: the record was not replayed")
            if again.failure is not None:
                code = Exit.MACHINE if again.failure.kind == "unavailable" else Exit.INPUT
                raise CommandError(code, f"the record's original cannot be run here: {again.failure.message}")
            assert again.prepared is not None
            if again.judged is None:
                summary = again.prepared.contract.summary
                raise CommandError(Exit.BROKEN, f"the record's original breaks its own contract here: {summary}")
            return again.prepared, again.judged

        prepared, judged = once(fresh=False)
        screen.say(line("then", verdict_text(record.verdict)))
        screen.say(line("repeated", verdict_text(judged.verdict)))
        here = environment(prepared, judged.verdict)
        compared = compare(record, judged, here, tool(), prepared.contract.deterministic)
        _, fresh = once(fresh=True)
        screen.say(line("fresh", verdict_text(fresh.verdict)))
        return replayed(record, judged, fresh, compared)


def replay_lines(found: Replayed) -> list[str]:
    """What the two runs had in common, what differs here, and whether the record holds."""
    counts = found.compared.counts
    lines = [
        line("inputs", f"{counts.inputs} of {counts.runs} runs had the same contents"),
        line("outputs", _outputs(found)),
        *(line("note", note) for note in found.compared.notes),
    ]
    differing = found.compared.environment
    shown = [f"{what}: {then} then, {now} now" for what, then, now in differing[:_SHOWN]]
    if len(differing) > _SHOWN:
        shown.append(f"and {len(differing) - _SHOWN} more (--json)")
    lines += [line("elsewhere", text) for text in shown]
    if found.confirmed:
        return [*lines, line("result", "the record is confirmed here")]
    return [*lines, *(line("against", text) for text in found.against), line("result", "the record is not confirmed")]


def _outputs(found: Replayed) -> str:
    counts = found.compared.counts
    if not counts.hashed:
        return "none were hashed on both sides"
    same = f"{counts.original} of the original's and {counts.candidate} of the rewrite's"
    where = "" if found.compared.same_place else " (another device or compiler: no claim)"
    return f"of {counts.hashed}, {same} have the same bits{where}"
