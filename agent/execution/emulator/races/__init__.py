"""Two threads touch the same bytes, one writes, and nothing orders them: found on shared and on global memory."""
