"""One file for each system. Each runs as a process of its own, with its own packages, and imports nothing but `wire`.

What it needs stands in its first lines as script metadata (PEP 723), which pip reads. Its prompts, sizes and numbers of
passages are its own, as they come.
"""
