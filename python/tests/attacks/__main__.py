"""`python -m attacks`."""

import sys

from attacks.harness import main

sys.exit(main())
