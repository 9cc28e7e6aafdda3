"""The measurements of scripts/evaluate, a module for each kind of set."""
