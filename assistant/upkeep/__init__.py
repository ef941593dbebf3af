"""All that is kept of people at once: backups of it, and the end of an account."""
