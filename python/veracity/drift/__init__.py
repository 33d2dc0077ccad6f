"""What `veracity.parity` is made of. Imported when it is first called: torch is needed here."""
