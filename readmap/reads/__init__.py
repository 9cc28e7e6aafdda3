"""Bytes to reads on a device: chunks of whole records, parsed and packed."""
