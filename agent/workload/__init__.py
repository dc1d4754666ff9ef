"""What a kernel is run on, as values: workloads, plans, directives, generators, static inference."""
