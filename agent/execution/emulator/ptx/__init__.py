"""PTX read once: text, names, declarations, bodies, and the decoded form that every back end reads."""
