"""The ``cuda-lsp`` command: one file per subcommand."""
