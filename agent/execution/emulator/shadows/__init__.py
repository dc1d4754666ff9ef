"""The float64 shadow: beside every float the number that it would be had nothing been rounded."""
