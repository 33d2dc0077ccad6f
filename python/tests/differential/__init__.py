"""Scripts that LEAPP and Veracity both run, and how their results must relate.

A script never imports either of them: it gets the module as an argument, so that the very same code
runs under both. What is right is not defined by either: outside a session annotations do nothing,
so the same code run plainly on fresh inputs says what the bundle has to compute.
"""
