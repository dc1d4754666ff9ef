"""The parts of the index exchange: what it costs, and how it is written in two dimensions and in one."""
