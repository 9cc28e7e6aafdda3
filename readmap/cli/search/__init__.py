"""readmap search: map reads, or find their exact occurrences."""
