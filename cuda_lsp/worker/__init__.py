"""The background process: what takes seconds runs there, on the text as it was when the job began."""
