"""Turns recorded nodes into models and bundles."""
