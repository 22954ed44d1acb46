"""Write a plan as the arrays that kernels read: programs, pattern tables, jump tables, text predicates, user functions."""
