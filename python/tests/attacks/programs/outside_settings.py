"""Settings as a module, which other programs import and write."""

tick = 0
