"""What is said about a local table that every thread fills alike."""

from agent.ideas.idea import Expectation, Scope
from agent.ideas.registry import Match, Variant
from agent.ideas.rewriting import source_text
from agent.ideas.tables.site import Table
from agent.ideas.tables.write import once_a_block
from agent.ideas.view import View


def filled_once(view: View, found: Table) -> Match:
    """One copy in shared memory, filled by one thread, in place of each thread's own in local memory."""
    threads = view.threads or 256
    return Match(
        line=view.document.line(found.array.declarator.start_byte),
        title=f"fill {found.array.name} once a block, in shared memory",
        why=(
            f"every thread writes the same {found.elements} elements of {found.array.name} to local memory, as "
            f"`{source_text(view.document, found.read)}` is read at an index that only the data know"
        ),
        expects=(
            Expectation(
                "DRAM bytes", 0.5, f"no local memory for {found.array.name}: {found.bytes * threads >> 10} KB a block"
            ),
        ),
        variants=(
            Variant(
                "one thread fills it",
                "one thread of each block fills the table before all others read it",
                Scope.DROP_IN,
                lambda: once_a_block(view, found),
            ),
        ),
    )
