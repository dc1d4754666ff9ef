"""The parts of taking several time steps in one launch: the loop in the plan, and the kernel that does them."""
