"""The subcommands of ``cuda-lsp``, one file each: a file here that defines ``command`` is a subcommand of its name."""
