"""What a compiler must do again because two pointers might be one, where the plan shows that they are not."""
