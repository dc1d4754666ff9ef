"""Finding a workload by running code. What can be found by reading alone lives in ``agent.workload``."""
