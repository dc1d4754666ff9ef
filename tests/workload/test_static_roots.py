"""What numbers that a program starts from are called: each its own name, and the same number the same one."""

from hypothesis import given
from hypothesis import strategies as st

from agent.source.document import parse
from agent.workload.static.state import Facts
from agent.workload.static.unit import alone
from agent.workload.workload import Origin

Said = tuple[str, int, int]


def plainly(taken: dict[str, Said], said: Said) -> str:
    """The first of ``n``, ``n_2``, ``n_3``, ... that is free, or that is this very number."""
    turn, name = 1, said[0]
    while taken.setdefault(name, said) != said:
        turn += 1
        name = f"{said[0]}_{turn}"
    return name


steps = st.lists(
    st.one_of(st.tuples(st.sampled_from(["n", "m"]), st.integers(1, 3), st.integers(1, 3)), st.booleans()), max_size=40
)


@given(steps)
def test_a_number_gets_the_first_free_name_and_the_same_one_again_also_where_a_reading_was_taken_back(
    told: list[Said | bool],
) -> None:
    facts = Facts(alone(parse(b"int main() {}", "t.cu")), frozenset())
    taken: dict[str, Said] = {}
    kept = (facts.mark(), dict(taken))
    for one in told:
        if one is True:
            kept = (facts.mark(), dict(taken))
        elif one is False:
            facts.back_to(kept[0])
            taken = dict(kept[1])
            kept = (facts.mark(), dict(taken))
        else:
            name, value, line = one
            found = facts.root(name, value, Origin("literal", line))
            assert found.expression.names == {plainly(taken, one)}
