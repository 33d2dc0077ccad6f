"""Policies as robot teams write them: each is exported with every backend and run without Python.

`make zoo` installs the public packages they come from and prints a table. A policy is a class, or a
function that makes one step, as in `zoo/families/`; its weights are seeded.
"""
