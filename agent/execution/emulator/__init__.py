"""Runs PTX on the CPU, exactly and under watch: NumPy back end over whole batches of blocks."""

from agent.execution.emulator.engine import Emulator

__all__ = ["Emulator"]
