"""Why host code cannot be written by us."""


class Inexpressible(Exception):
    """What keeps a launch site from being edited by us; shown to the user, who then edits it by hand."""
