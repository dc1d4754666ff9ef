"""``cuda-lsp hints``: the rules over files and folders, for a terminal and for continuous integration."""
