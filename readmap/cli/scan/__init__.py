"""readmap scan: queries and a database to hits."""
