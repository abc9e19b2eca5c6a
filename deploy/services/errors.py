"""What goes wrong with a service? One error, whose text says what to do, or quotes the end of the server's log."""


class ServiceError(Exception):
    """A service did not start, did not answer in time, or can't be started here."""
