"""`python -m veracity.leapp`: see the package."""

import sys

from veracity.leapp import main

sys.exit(main(sys.argv[1:]))
