"""What runs inside child processes. Imports as little as it can; speaks in the frames of ``agent.execution.wire``."""
