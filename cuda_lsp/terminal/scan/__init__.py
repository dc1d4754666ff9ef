"""How a scan is shown: a table for a terminal, a page for a browser."""
