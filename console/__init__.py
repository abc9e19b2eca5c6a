"""What people type and see: the command line."""
