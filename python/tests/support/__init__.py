"""What tests of pages need."""
