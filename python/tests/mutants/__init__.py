"""Bundles with one fault each, and the bundles without it.

A fault is planted in the code that is exported, or in the files of a finished bundle; the recorded
values are always those of the right code. A proof that is worth its name finds every one of them.
"""
