"""One page, or one family of pages, a file; each has ``routes``."""
