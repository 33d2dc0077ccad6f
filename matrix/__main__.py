"""`python -m matrix`."""

import sys

from matrix.run import main

sys.exit(main())
