"""The catalogue's page of documentation, made from the registry: ``python -m agent.ideas.pages > docs/ideas.md``."""

import sys

from agent.ideas.expert import SOURCE
from agent.ideas.idea import Candidate
from agent.ideas.registry import Entry, entries
from agent.ideas.request import Request
from agent.ideas.source import implement, program, propose
from agent.source.diff import unified
from agent.source.document import parse
from agent.workload.directive import read_directive

HEAD = """\
# Ideas of the catalogue

What `cuda-lsp` can think of with no model and no network. Each idea is one file in `agent/ideas/catalog/`; this page is
made from them (`python -m agent.ideas.pages > docs/ideas.md`), and the changes shown are what the code writes.

An idea says in words what it would change, which counter should move and what could break. It applies only where its
preconditions are proved from the syntax tree; where one is not, the reason is given. Whatever an idea writes is then
judged like anybody else's rewrite.
"""


def page() -> str:
    """The whole page."""
    found = entries()
    links = "\n".join(f"- [{entry.title}](#{entry.name})" for entry in found)
    return "\n".join((HEAD, links, "", *(_section(entry) for entry in found)))


def example_request(entry: Entry) -> Request:
    """The request that an entry's example stands for. Raises ValueError where it has no directive."""
    document = parse(entry.example.encode(), "example.cu")
    for kernel in document.kernels:
        workload = read_directive(document, kernel)
        if workload is not None:
            return Request(document, kernel, workload, workload.plan)
    raise ValueError(f"the example of {entry.name} has no directive")


def example_candidates(entry: Entry) -> tuple[Candidate, ...]:
    request = example_request(entry)
    ideas = [idea for idea in propose(request).ideas if idea.name == entry.name and idea.source == SOURCE]
    return implement(ideas[0], request) if ideas else ()


def _section(entry: Entry) -> str:
    request = example_request(entry)
    idea = next(idea for idea in propose(request).ideas if idea.name == entry.name)
    candidates = example_candidates(entry)
    needs = "\n".join(f"- {need}" for need in entry.needs)
    expected = "; ".join(expectation.words for expectation in idea.expects)
    variants = "\n".join(f"- *{one.variant}* ({one.scope.value}): {one.rationale}." for one in candidates)
    made = program(request.document, request.kernel, candidates[0], "example")
    change = unified(request.document, made.document).rstrip("\n")
    links = f"\nEnables: {', '.join(entry.enables)}.\n" if entry.enables else ""
    return f"""\
## {entry.name}

**{entry.title}.** {entry.rationale}

Applies where

{needs}

Effect: {entry.effect}.

Risk: {entry.risk}.
{links}
Example:

```cuda
{entry.example.rstrip()}
```

What is said about it: {idea.why} (line {idea.line}; expects {expected}).

The change, in the variant *{candidates[0].variant}*:

```diff
{change}
```

Variants:

{variants}
"""


if __name__ == "__main__":
    sys.stdout.write(page())
