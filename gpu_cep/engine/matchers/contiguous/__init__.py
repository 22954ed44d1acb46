"""Read contiguous matches off labels, once the conditions between neighbours are label bits."""
