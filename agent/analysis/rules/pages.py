"""The rules' page of documentation, made from the registry:
``python -m agent.analysis.rules.pages > docs/rules.md``."""

import sys

from agent.analysis.rules.checking import check
from agent.analysis.rules.finding import Finding
from agent.analysis.rules.registry import Rule, rules
from agent.analysis.rules.selection import EVERYTHING
from agent.source.document import parse

HEAD = """\
# Hints

What `cuda-lsp` says about a kernel while it is typed, and about the host functions around it. Each rule is one file in
`agent/analysis/rules/catalog/`; this page is made from them (`python -m agent.analysis.rules.pages > docs/rules.md`),
and the examples are the rules' tests.

A rule is silent on what it does not know: an index that cannot be followed, a block that the file does not show, a
condition on loaded data. Sectors, passes over shared memory and races are not guessed from strides; they are counted
by evaluating the index for each thread. Where no launch is in sight, a kernel that uses `threadIdx.x` alone is taken
to run in blocks of 256, and one that uses `threadIdx.y` too is looked at with several usual blocks, of which the
kindest is reported. A length of a row that is not known is taken to be large. What a compiler must load again is
decided by `__restrict__` alone: CUDA's compilers do not tell pointers apart by their types. In a function of the host
only variables are followed that it declares once itself. Kernels with a parse error and HIP files get no hints.

Rules marked "off" run where they are selected: they state what is true of most code, or matter to few.

## Counted

Where an index passes through what no rule follows, a run tells: in the editor after a pause, and with
`cuda-lsp hints --count`, a kernel is compiled and run small in the emulator. A line of it on which a warp with 8 lanes
or more at work needs at least twice the sectors of global memory that 32 lanes side by side would, or twice the passes
over shared memory, and which none of M1 to M5, S1 and S2 names, is then a finding of M1, S1 (arrays of several
dimensions) or S2, one for each array, that says what was counted and at which size: `counted at n=4096: 32 sectors a
request, 4 would do`. It is selected, ignored and silenced as those are; a line on which any of M1 to M5 (S1 and S2) is
silenced stays silent. It holds for the text that was counted, goes away with the first key in the kernel, and comes
again when that was counted anew.

Silent where numbers that nobody stated decide: lanes that are spread by loaded data, and templates over numbers that
the file does not tell; and on a launch that was made up, lanes whose places are multiplied or divided by a parameter
whose value was made up too, and rows of a block that the file does not tell. There the kernel is run on two more
launches, with other numbers and blocks: a line that is as bad on all of them is a finding that names them (`and as bad
at n=128 and at n=96`; of bytes behind a cast pointer not even then, as such a number may be the size of an element),
and one that is fine on any of them is none. Where a launch was made up the finding says "on a launch that was made up",
and is no warning but information. Lines of functions that a kernel calls get no such finding: what they cost depends on
who calls them (the editor shows their counts at the end of the line).

Where the kernel's own launch is known, counts also take back what a rule foretold and the run does not show.

## Silencing

A comment `// cuda-lsp: ignore[M1]` silences a rule on its line; alone on a line, on the next; above a kernel, in all
of it. Several ids are separated by commas, a letter stands for its family (`ignore[M]`), and `// cuda-lsp: ignore`
silences all. Rules are selected and ignored by id or letter; the longer name wins, and `ALL` stands for every rule.
"""


def page() -> str:
    """The whole page."""
    found = rules()
    table = "\n".join(
        f"| [{one.id}](#{one.id.lower()}-{one.name}) | {one.title} | {one.severity.value}"
        f"{'' if one.default else ', off'} | {one.cost.value} | {', '.join(ideas(one))} |"
        for one in found
    )
    head = "| id | what it finds | shown as | what is lost | idea |\n|---|---|---|---|---|"
    return "\n".join((HEAD, "## Rules", "", head, table, "", *(section(one) for one in found)))


def messages(rule: Rule, example: str) -> tuple[tuple[int, str], ...]:
    """(line, message) of each finding of a rule in an example."""
    return tuple((example.encode()[: one.span.start].count(b"\n") + 1, one.message) for one in _found(rule, example))


def _found(rule: Rule, example: str) -> list[Finding]:
    document = parse(example.encode(), "example.cu")
    found = (one for kernel in document.kernels for one in check(document, kernel, selection=EVERYTHING))
    return [one for one in found if one.rule == rule.id]


def ideas(rule: Rule) -> tuple[str, ...]:
    """The ideas of the catalogue that a rule names, in its examples too where that depends on what it finds."""
    named = [finding.fix for example in rule.fires for finding in _found(rule, example)]
    return tuple(dict.fromkeys(idea for idea in (rule.fix, *named) if idea is not None))


def section(rule: Rule) -> str:
    """The part of the page about one rule; a page of its own where only that is wanted."""
    silent = "\n".join(f"- {one}" for one in rule.silent_when)
    fires = "\n".join(_firing(rule, one) for one in rule.fires)
    quiet = "\n".join(f"```cuda\n{one.rstrip()}\n```\n" for one in rule.silent)
    links = " or ".join(f"[{idea}](ideas.md#{idea})" for idea in ideas(rule))
    fix = f"\nIdea of the catalogue that may mend it: {links}.\n" if links else ""
    return f"""\
## {rule.id} {rule.name}

**{rule.title}.** {rule.why} ({rule.severity.value}; what is lost: {rule.cost.value})
{fix}
Silent when

{silent}

Fires:

{fires}
Silent:

{quiet}"""


def _firing(rule: Rule, example: str) -> str:
    said = "\n".join(f"- line {line}: {message}" for line, message in messages(rule, example))
    return f"```cuda\n{example.rstrip()}\n```\n\n{said}\n"


if __name__ == "__main__":
    sys.stdout.write(page())
