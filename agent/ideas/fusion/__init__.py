"""The parts of launch fusion: what two launches must have in common, and how the second's work joins the first's."""
