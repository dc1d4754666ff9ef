"""A launch that nobody wrote, for counting what a kernel's lines do where its host code is out of sight.

It is named as made up wherever it is used, and nothing is verified or optimized on it.
"""

from agent.inference.making.choosing import MadeUp, make_up
from agent.inference.making.elsewhere import at_other_numbers, invented, plausible

__all__ = ["MadeUp", "at_other_numbers", "invented", "make_up", "plausible"]
