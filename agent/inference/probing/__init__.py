"""Probing: a kernel is run in the emulator on buffers without ends, and what it touches becomes a workload to correct.

Nothing that was probed proves that the kernel keeps within bounds.
"""

from agent.inference.probing.outcome import Found, Probed, Stop, Stopped
from agent.inference.probing.probe import Limits, probe

__all__ = ["Found", "Limits", "Probed", "Stop", "Stopped", "probe"]
