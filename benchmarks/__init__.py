"""What answers a question about speed or memory, beside the package."""
