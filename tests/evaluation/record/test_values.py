"""A record as JSON and back: nothing is lost, and types are exact."""

import json
import math

import jsonschema
import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.evaluation.ran import Ran, Seen
from agent.evaluation.record.files import seal
from agent.evaluation.record.form import Record
from agent.evaluation.record.values import RecordError, opened, plain
from agent.evaluation.verdict import Speed, Timing, Verdict
from agent.execution.device import Fault
from agent.workload.expression import Expression
from agent.workload.plan import Copy, Fill, Launch, Plan, Repeat, Scratch, Swap
from agent.workload.workload import Buffer, Comparator, Constant, Domain, Size, Workload
from cuda_lsp.terminal.record_schema import record_schema
from tests.evaluation.record.samples import get, golden, leaves, put

_OPERATORS = ["+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "<", "<=", "==", "!=", "&&", "||"]
_names = st.from_regex(r"[a-z_]\w{0,6}", fullmatch=True, alphabet=st.characters(max_codepoint=127))
_atoms = _names | st.integers(0, 2**40).map(str) | st.sampled_from(["1.5", "2.5f", "0x10", "1e-3", "sizeof(float)"])
_texts = st.recursive(
    _atoms,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(_OPERATORS), inner).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} ? {parts[1]} : {parts[2]})"),
        inner.map(lambda text: f"-{text}"),
        inner.map(lambda text: f"(int){text}"),
    ),
    max_leaves=6,
)
expressions = _texts.map(Expression.parse)
_records = st.dictionaries(_names, expressions, max_size=2).map(
    lambda held: Expression("record", tuple(held.values()), ",".join(held) or None)
)
_floats = st.floats(allow_nan=False)
_three = st.tuples(expressions, expressions, expressions)
_simple = (
    st.builds(Launch, _names, _three, _three, expressions, st.lists(expressions | _records, max_size=3).map(tuple))
    | st.builds(Swap, _names, _names)
    | st.builds(Fill, _names, st.integers(0, 255))
    | st.builds(Copy, _names, _names)
)
_steps = st.recursive(
    _simple,
    lambda inner: st.builds(
        Repeat, st.lists(inner, max_size=2).map(tuple), st.none() | expressions, st.none() | _names,
        st.none() | expressions, st.none() | expressions, st.none() | expressions,
    ),
    max_leaves=4,
)  # fmt: skip
plans = st.builds(
    Plan,
    st.lists(_steps, max_size=3).map(tuple),
    st.lists(st.builds(Scratch, _names, _names, expressions, st.booleans()), max_size=2).map(tuple),
    st.lists(st.tuples(_names, expressions), max_size=2).map(tuple),
)


_limits = st.none() | expressions
_domains = st.builds(Domain, st.text(max_size=4), _limits, _limits)
_buffers = st.builds(Buffer, extent=expressions, domain=_domains)
_comparators = st.builds(Comparator, tolerance=st.none() | _floats)
_constants = st.builds(Constant, value=expressions)

workloads = st.builds(
    Workload,
    kernel=st.text(max_size=5),
    sizes=st.lists(st.builds(Size), max_size=2).map(tuple),
    constants=st.lists(_constants, max_size=2).map(tuple),
    buffers=st.lists(_buffers, max_size=2).map(tuple),
    plan=plans,
    comparators=st.lists(st.tuples(_names, st.builds(Comparator, tolerance=st.none() | _floats)), max_size=2).map(
        tuple
    ),
    lossy=st.booleans(),
    flags=st.lists(st.text(max_size=3), max_size=2).map(tuple),
    notes=st.lists(st.text(max_size=3), max_size=2).map(tuple),
)
_seen = st.builds(
    Seen, st.text(max_size=3), st.text(max_size=3), st.text(max_size=3), st.text(max_size=3), st.text(max_size=3),
    st.dictionaries(st.text(max_size=3), _floats, max_size=2),
)  # fmt: skip
runs = st.builds(
    Ran, st.text(max_size=5), st.text(max_size=5), st.text(max_size=5), st.lists(_seen, max_size=2).map(tuple),
    st.lists(_floats, max_size=2).map(tuple), st.booleans(),
)  # fmt: skip
_SLOW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def _there_and_back(record: Record) -> Record:
    data = json.loads(json.dumps(plain(record), allow_nan=False))
    jsonschema.validate({**data, "digest": seal(data)}, record_schema())
    return opened(data)


@_SLOW
@given(workloads, plans, st.lists(runs, max_size=2).map(tuple))
def test_programs_and_runs_come_back_as_they_were(workload: Workload, plan: Plan, ran: tuple[Ran, ...]) -> None:
    record = evolve(opened(golden()), workload=workload, plan=plan, runs=ran)
    assert _there_and_back(record) == record


@_SLOW
@given(st.builds(Speed), st.none() | st.builds(Timing), st.none() | st.builds(Fault), st.lists(st.text(), max_size=2))
def test_verdicts_come_back_as_they_were(
    speed: Speed, timing: Timing | None, fault: Fault | None, unchecked: list[str]
) -> None:
    record = opened(golden())
    verdict: Verdict = evolve(
        record.verdict,
        speed=speed,
        correctness=evolve(record.verdict.correctness, fault=fault),
        evidence=evolve(record.verdict.evidence, timing=timing, not_checked=tuple(unchecked)),
    )
    record = evolve(record, verdict=verdict)
    assert plain(_there_and_back(record)) == plain(record)  # NaN equals nothing but its word


def test_what_is_no_number_in_json_is_a_string() -> None:
    record = opened(golden())
    record = evolve(record, verdict=evolve(record.verdict, speed=Speed("estimated", math.inf, -math.inf, math.nan)))
    told = plain(record)["verdict"]["speed"]
    assert (told["ratio"], told["low"], told["high"]) == ("inf", "-inf", "nan")
    back = opened(json.loads(json.dumps(plain(record), allow_nan=False))).verdict.speed
    assert (back.ratio, back.low) == (math.inf, -math.inf)
    assert back.high is not None and math.isnan(back.high)


_LEAVES = list(leaves(golden()))
_WRONG = [None, True, 7, 1.5, "word", [], {}, [1], {"a": 1}]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(_LEAVES), st.sampled_from(_WRONG))
def test_another_type_is_never_taken_for_the_right_one(path: tuple[object, ...], value: object) -> None:
    """It is refused by name, or it was as good as what stood there (a field that may be empty, a whole number)."""
    data = put(golden(), path, value)
    try:
        record = opened(data)
    except RecordError:
        return
    kept = get(plain(record), path) if path[0] in plain(record) else value
    assert kept == value


@pytest.mark.parametrize("schema", [None, "1", True, 0, 2, -1, 1.0])
def test_other_versions_are_refused(schema: object) -> None:
    with pytest.raises(RecordError, match="schema"):
        opened({**golden(), "schema": schema})


def test_a_field_that_a_later_version_adds_is_passed_over() -> None:
    assert opened({**golden(), "later": [1]}) == opened(golden())


def test_a_field_that_is_missing_is_named() -> None:
    data = golden()
    del data["settings"]["depth"]
    with pytest.raises(RecordError, match=r"depth"):
        opened(data)
