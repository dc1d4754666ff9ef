"""What a file says to its kernels: reading only what was edited gives what reading everything gives."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.analysis import file
from agent.analysis.file import FileFacts, file_facts, mentions
from agent.source.document import parse

ITEMS = [
    b"#define N 4\n",
    b"#define M (N * 2)\n",
    b"#define SQUARE(x) ((x) * (x))\n",
    b"const int K = N + 1;\n",
    b"__constant__ float table[16];\n",
    b"static const float weights[2] = {1.0f, 2.0f};\n",
    b"__device__ void take(float& x) { x = 1; }\n",
    b"__device__ int twice(int x) { return 2 * x; }\n",
    b"namespace a {\nconst int Q = 3;\n__device__ void change(int& x) { x = 1; }\n}\n",
    b"#if N\nconstexpr int R = 9;\n#endif\n",
    b"__global__ void k(float* x) { x[threadIdx.x] = 1; }\n",
    b"// a remark\n",
    b"enum { ONE = 1, TWO };\n",
]
WORDS = [b"const", b"enum { ONE", b"x) ", b"7", b"a remark"]
edits = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9), st.sampled_from([*ITEMS, b"7", b"x", b"{", b" ", b"&"])))


def parts(facts: FileFacts) -> tuple[object, ...]:
    return (facts.constants, facts.takers, facts.arrays, facts.fixed, facts.functions, facts.formulas)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(ITEMS), min_size=1, max_size=8).map(b"".join), edits)
def test_facts_after_edits_are_those_of_a_file_never_seen(text, changes):
    document = parse(text)
    file_facts(document)
    for where, gone, new in changes:
        at = int(where * len(text))
        text = text[:at] + new + text[at + gone :]
        document = parse(text, "", document)
        found = file_facts(document)
        for word in WORDS:
            assert mentions(document, word) == (word in text)
        file._readings.clear()
        file._seen.clear()
        assert parts(found) == parts(file_facts(parse(text)))


def test_an_edit_inside_a_function_leaves_the_facts_the_same_value():
    text = b"".join(ITEMS)
    old = parse(text)
    new = parse(text.replace(b"2 * x", b"2 * x + 0 * x").replace(b"= 1; }\n}", b"= 2; }\n}"), "", old)
    edited = parse(text.replace(b"x[threadIdx.x] = 1", b"x[threadIdx.x] = 12"), "", old)
    before = file_facts(old)
    assert file_facts(edited) is before
    assert parts(file_facts(new)) != parts(before), "the body of a function that is one expression counts"


def test_the_same_text_read_in_another_way_beside_a_parse_error_is_another_item():
    sound = b"int a;\n#if N\nconstexpr int R = 9;\n#endif\n#define M 2\n"
    broken = b"enum { ONE #if N\nconstexpr int R = 9;\n#endif\n#define SQUARE(x) ((x) * (x__global__ void k() {}\n"
    for before, after in ((sound, broken), (broken, sound)):
        file._readings.clear()
        file._seen.clear()
        file_facts(parse(before))
        found = file_facts(parse(after))
        file._readings.clear()
        file._seen.clear()
        assert parts(found) == parts(file_facts(parse(after)))
