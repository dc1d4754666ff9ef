"""The rights that a child gives up before it looks at text that nobody vouches for."""

from agent.execution.children.rights.giving_up import KEEP, LANDLOCK, SECCOMP, Fewer, give_up, reading_only

__all__ = ["KEEP", "LANDLOCK", "SECCOMP", "Fewer", "give_up", "reading_only"]
