"""readmap search: reads to SAM, or to tables of exact occurrences."""
