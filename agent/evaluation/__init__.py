"""Gates, comparators and estimates: from two programs and a workload to a Verdict with Evidence."""
