"""What does a load test's report look like to a person? One HTML file that needs nothing else; see `document`."""

from .document import page_of

__all__ = ["page_of"]
