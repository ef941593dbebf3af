"""Serves the page: `python app.py --help`."""

from __future__ import annotations

from assistant.commands.exit_status import end_with
from assistant.commands.serve import main

if __name__ == "__main__":
    end_with(main)
