"""Which lines are written, and that no other line changes."""

from hypothesis import given
from hypothesis import strategies as st

from agent.search.formatting.lines import only_in, says_the_same, written
from agent.source.edits import Edit, apply_edits
from agent.source.span import Span

LINES = st.lists(st.sampled_from(["", "a", "b;", "c {", "}", "  d"]), max_size=12)


def joined(lines: list[str]) -> bytes:
    return "\n".join(lines).encode()


def test_stretches_are_told_by_their_first_and_last_line() -> None:
    assert written(b"a\nb\nc\nd\n", b"a\nx\ny\nc\nd\nz\n") == [(2, 3), (6, 6)]
    assert written(b"a\nb\nc", b"a\nc") == [] and written(b"", b"") == []


@given(LINES, LINES)
def test_the_lines_that_are_not_written_are_those_of_the_base(base: list[str], text: list[str]) -> None:
    ours = {line for first, last in written(joined(base), joined(text)) for line in range(first, last + 1)}
    theirs = [line for number, line in enumerate(text or [""], 1) if number not in ours]
    rest = iter(base or [""])
    assert all(line in rest for line in theirs), "in the base's order"


@given(LINES, LINES, st.data())
def test_whatever_a_tool_asks_for_other_lines_stay(base: list[str], text: list[str], data: st.DataObject) -> None:
    whole = joined(text)
    lines = written(joined(base), whole)
    ours = {line for first, last in lines for line in range(first, last + 1)}
    theirs = [line for number, line in enumerate(whole.decode().split("\n"), 1) if number not in ours]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    new = st.sampled_from([b"", b"\n", b"\n  ", b" ", b"x\n", b"\nx", b"\r\n"])
    edits = [Edit(Span(a, b), data.draw(new)) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    made = apply_edits(whole, only_in(lines, whole, edits)).decode().split("\n")
    rest = iter(made)
    assert all(line in rest for line in theirs)
    if not lines:
        assert made == whole.decode().split("\n")


def edit(text: bytes, near: bytes, old: bytes, new: bytes) -> Edit:
    """``new`` in the place of the ``old`` that ``near`` begins with."""
    start = text.index(near)
    return Edit(Span(start, start + len(old)), new)


def test_only_lines_of_the_rewrite_take_what_the_tool_asks_for() -> None:
    text = b"int  a;\nint  b;\n  int  c;\nint  d;"
    above, joins = edit(text, b"  a", b"  ", b" "), edit(text, b"\nint  b", b"\n", b" ")
    indent, inside = edit(text, b"\n  int", b"\n  ", b"\n"), edit(text, b"  c", b"  ", b" ")
    below = edit(text, b"\nint  d", b"\n", b"\n  ")
    assert only_in([(3, 3)], text, [above, indent, inside, below]) == [indent, inside]
    assert only_in([(2, 2)], text, [joins, indent]) == []
    every = [above, joins, indent, inside, below]
    assert only_in([(1, 4)], text, every) == every


def test_what_comes_between_lines_of_others_takes_nothing_of_them() -> None:
    text = b"a;\nb;  \nc;\n"
    assert only_in([(1, 1)], text, [Edit(Span(3, 3), b"}"), Edit(Span(2, 3), b"")]) == []
    assert only_in([(1, 1)], text, [Edit(Span(2, 2), b"\n}")]) == [Edit(Span(2, 2), b"\n}")]
    assert only_in([], text, [Edit(Span(2, 3), b"\n"), Edit(Span(2, 3), b"\r\n")]) == []
    blanks = edit(text, b"  \nc", b"  \n", b"\n  ")
    assert only_in([(3, 3)], text, [blanks]) == [], "trailing blanks of another line"
    assert only_in([(2, 3)], text, [blanks]) == [blanks]


def test_layout_brackets_and_comments_are_no_words() -> None:
    text = b'#define  A 1\nif (x) y = f(a,b);  // why\nconst char* s = "x y";\n'
    assert says_the_same(text, b'#define A 1\nif (x) {\n  y = f(a, b);\n}\n// why\nchar const *s = "x y";\n')
    assert not says_the_same(text, text.replace(b"y = f", b"y = g"))
    assert not says_the_same(text, text.replace(b"A 1", b"A 2"))
    assert not says_the_same(text, text.replace(b"f(a,b)", b"f(a)"))
    assert not says_the_same(text, text.replace(b"if (x)", b"if (x) {"))
