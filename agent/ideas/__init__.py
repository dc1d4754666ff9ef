"""An Idea in words -> Candidates in code."""
