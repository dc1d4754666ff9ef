"""Values that hang on a loop's counter alone, in a table of the block: where there are some, and how it is written."""
