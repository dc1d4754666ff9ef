"""Tables that every thread makes for itself, although they are the same for all."""
