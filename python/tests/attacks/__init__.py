"""Small programs as people write them, and a harness that tries to catch a false proof.

A *hostile* program does something that an export can get wrong, often while it rests in recorded
passes. A *clean* program looks the same and has nothing to be told about. Both are recorded and
compiled, and the bundle is run over a fresh episode beside the Python code.

Nothing here knows how the product works: it is used as a user uses it, and judged by numbers.
"""
