"""What becomes of a value inside of one function: a walk over its source, forwards.

The walk knows which variables hold something that was made of the value. A branch on it makes
whatever the branch assigns depend on it as well, and so does a loop, a filter, or an exception that
is caught. It ends with `Decided` when the value reaches an output, memory that tensors share, or
code that may do anything. It knows nothing of types, and little of aliases: when in doubt the value
decides.

Code between `output_tensors` and the next `input_tensors` is in no node, and decides nothing.
"""

from __future__ import annotations

from veracity.tracing.flow.exceptions import LOOPS, meets
from veracity.tracing.flow.statements import walk
from veracity.tracing.flow.task import Around, Decided, Outcome, Taint, Task, has_marks

__all__ = ["LOOPS", "Around", "Decided", "Outcome", "Taint", "Task", "has_marks", "meets", "walk"]
