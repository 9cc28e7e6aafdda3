"""What `readmap scan` writes."""
