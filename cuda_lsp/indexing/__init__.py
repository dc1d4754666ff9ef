"""The index of a workspace: built in a process of its own, asked by the server."""
