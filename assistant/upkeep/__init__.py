"""Backups of everything that is stored about people, and the deletion of accounts."""
