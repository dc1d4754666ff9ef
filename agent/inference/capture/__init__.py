"""Real launches of the user's own program, recorded on a card: arguments, sizes, and what the buffers held.

The program is run only on an explicit command, by name, in a process of its own. A library of ours (``injection.cpp``),
which the CUDA driver loads into it, writes launches into a private folder; what is read from there is checked like any
other input, and one launch becomes a workload.
"""
