"""One file per gate, cheap to dear; each names the cheat or fault that it answers."""
