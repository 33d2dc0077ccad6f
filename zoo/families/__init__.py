"""The policies, a file for each family."""
