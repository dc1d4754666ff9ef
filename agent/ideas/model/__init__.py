"""A language model as a source of ideas: what it is told, what it is asked, and what of its answers is believed."""
