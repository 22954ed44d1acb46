"""Write a plan as the arrays that kernels read, and compile the functions that users bring."""
