"""What compare.py is made of: runs of a command under several allocators, their figures, a table and a chart."""
