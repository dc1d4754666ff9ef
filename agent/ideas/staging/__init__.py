"""Handing elements over through a tile in shared memory: the threads that touch memory on one side are not those that
touch it on the other."""
