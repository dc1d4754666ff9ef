"""A kernel that does one element a thread, made into one whose threads take further elements, with something before and
after."""
