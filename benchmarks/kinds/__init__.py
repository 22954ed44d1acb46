"""Compare the library with C++ loops over many kinds of questions, in the forms in which users ask them."""
