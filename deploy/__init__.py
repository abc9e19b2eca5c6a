"""What does an installation need beside the package: the launcher of the real services (`deploy.services`)."""
