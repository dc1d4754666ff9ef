"""Reading only what was edited gives what reading everything gives; between keystrokes it gives at least the rest."""

import itertools
import os
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.source.document import Document, parse
from agent.source.incremental import advance
from agent.source.line_ends import with_newlines
from tests.source.sessions import TYPED, anything, function, known
from tests.source.strategies import clean_texts, pieces, texts
from tests.source.test_parsing import assert_same

typed = st.one_of(st.sampled_from(TYPED), pieces)
edit = st.tuples(st.floats(0, 1), st.sampled_from([0, 0, 0, 1, 2, 9]), typed)


def edited(text: bytes, change: tuple[float, int, bytes]) -> bytes:
    at = int(change[0] * len(text))
    return text[:at] + change[2] + text[at + change[1] :]


def assert_same_values(found: Document, scratch: Document) -> None:
    assert_same(found, scratch)
    assert found.blanked == scratch.blanked
    assert found.macros == scratch.macros
    assert found.state.code == scratch.state.code
    assert found.state.bodies == scratch.state.bodies
    assert found.state.cuts == scratch.state.cuts


@settings(max_examples=400, deadline=None)
@given(clean_texts, edit, edit)
def test_the_next_state_is_that_of_reading_everything(text, first, second):
    document = parse(text)
    for change in (first, second):
        new = edited(document.text, change)
        following = parse(new, "", document)
        assert_same_values(following, parse(new))
        document = following


@settings(max_examples=400, deadline=None)
@given(st.one_of(clean_texts, texts), st.lists(edit, min_size=1, max_size=3))
def test_a_hasty_parse_is_exact_or_says_that_it_may_not_be(text, changes):
    document, new = parse(text), text
    for change in changes:
        new = edited(new, change)
    hasty, scratch = parse(new, "", document, hasty=True), parse(new)
    assert hasty.text == with_newlines(new)
    for found in (*hasty.kernels, *hasty.launches):
        assert 0 <= found.span.start <= found.span.end <= len(new)
    if not hasty.hasty:
        assert_same_values(hasty, scratch)


def test_an_edit_in_one_of_many_functions_reads_only_that_one():
    text = b"".join(map(function, range(50)))
    old = parse(text)
    new = text.replace(b"x[i] += 20;", b"int j = 2;\n  x[j] += 20;")
    assert advance(old.state, new) is not None
    document = parse(new, "", old)
    assert_same_values(document, parse(new))
    assert document.kernels[7] is old.kernels[7], "in front of the edit nothing is made anew"
    assert [k.line for k in document.kernels[20:22]] == [old.kernels[20].line, old.kernels[21].line + 1]


def test_renaming_a_namespace_renames_all_kernels_in_it():
    old = parse(b"namespace one {\n" + function(1) + function(2) + b"}\n")
    new = parse(old.text.replace(b"one", b"other"), "", old)
    assert [k.qualified_name for k in new.kernels] == ["other::k1", "other::k2"]


def test_a_new_macro_reaches_functions_far_away():
    old = parse(b"int first() { return 0; }\nHD int f() { return 1; }\n")
    new = parse(b"#define HD __device__\n" + old.text, "", old)
    assert [blank.name for blank in new.blanks] == ["HD"]


def test_an_open_bracket_damages_the_kernel_under_the_cursor_and_no_other():
    text = b"".join(map(function, range(5)))
    old = parse(text)
    new = text.replace(b"x[i] += 2;", b"if (i) {\n  x[i] += 2;")
    hasty = parse(new, "", old, hasty=True)
    assert hasty.hasty
    assert [kernel.name for kernel in hasty.kernels if kernel.damage] == ["k2"]
    assert [kernel.line for kernel in hasty.kernels] == [1, 5, 9, 14, 18]
    closed = parse(new.replace(b"+= 2;", b"+= 2; }"), "", old, hasty=True)
    assert not closed.hasty
    assert_same_values(closed, parse(closed.text))


def test_edits_far_apart_leave_the_kernels_and_launches_between_them_known():
    """As an undo and a line at the top within one pause do; the macro between keeps the stretch from being read."""
    start = b"#define N 4\n" + b"".join(map(function, range(4))) + b"void run(float* x) {\n  k1<<<1, 32>>>(x, 4);\n}\n"
    end = b"int main() { return 0; }\n"
    old = parse(start + end)
    new = b"// \xc3\xa9 above\n" + start + end.replace(b"0;", b"1;  // below")
    hasty, scratch = parse(new, "", old, hasty=True), parse(new)
    assert hasty.hasty
    assert tuple(hasty.kernels) == tuple(scratch.kernels) and tuple(hasty.launches) == tuple(scratch.launches)
    changed = new.replace(b"x[i] += 2;", b"x[i] += 7;")
    assert [kernel.name for kernel in parse(changed, "", old, hasty=True).kernels] == ["k0", "k1", "k3"]


def test_a_statement_without_its_end_damages_only_its_kernel():
    text = b"".join(map(function, range(5)))
    hasty = parse(text.replace(b"x[i] += 2;", b"x[i] += 2; float y = "), "", parse(text), hasty=True)
    assert [kernel.name for kernel in hasty.kernels if kernel.damage] == ["k2"]


EDITS = int(os.environ.get("CUDA_LSP_EDITS", "1200"))


def test_a_long_session_stays_equal_to_a_parse_from_scratch():
    """One document, edited again and again, as an editor does; ``CUDA_LSP_EDITS`` says how often."""
    start = b"".join(map(function, range(6))) + b"void run(float* x) {\n  k1<<<1, 32>>>(x, 4);\n}\n"
    document = parse(start)
    for text in itertools.islice(anything(start, TYPED, random.Random(7)), EDITS):
        document, wrong = known(document, text)
        assert not wrong, f"{wrong} of {text!r}"


def test_what_an_edit_moves_is_made_when_it_is_asked_for():
    text = b"".join(map(function, range(4))) + b"void run(float* x) {\n  k1<<<1, 32>>>(x, 4);\n}\n"
    old = parse(text)
    document = parse(text.replace(b"x[i] += 1;", b"x[i] += 1;\n  x[i] += 5;"), "", old)
    assert list(document.kernels.as_read)[3] is list(old.kernels.as_read)[3]
    assert document.kernels[3].line == old.kernels[3].line + 1
    assert document.kernels[-1] == document.kernels[3] and document.kernels[2:] == tuple(document.kernels)[2:]
    assert document.launches[0].line == old.launches[0].line + 1
    assert document.text[document.kernels.start(3) : document.kernels.end(3)] == function(3).strip()
    second, third = document.kernels.start(2), document.kernels.start(3)
    assert [kernel.name for kernel in document.kernels.touching(second, third)] == ["k2", "k3"]
    assert not document.kernels.touching(len(document.text), len(document.text))


_GROUPS = [
    b"#if A\n",
    b"#ifdef B\n",
    b"#else\n",
    b"#endif\n",
    b"if (x)\n",
    b"\n#if 0\n, int t\n#endif\n",
    b"#define A 1\n",
]


def test_edits_around_groups_that_cut_constructs():
    start = b"".join(
        function(number) + b"#ifdef B\n__device__\n#endif\nint f%d(int a\n#if A\n, int b\n#endif\n) {\n"
        b"#if A\n  if (a)\n#endif\n  return 1;\n}\n" % number
        for number in range(6)
    )  # fmt: skip
    dice = random.Random(7)
    document = parse(start)
    for text in itertools.islice(anything(start, [*TYPED, *_GROUPS], dice), 400):
        document, wrong = known(document, text)
        assert not wrong, (wrong, text)
