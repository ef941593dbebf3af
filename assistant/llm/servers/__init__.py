"""Language models that servers run: one file for each kind of server, what they have in common, and how they are met.

`openai_compatible` is what every kind can do; the others do more, or do it another way. `wire` talks to a server and
says in one sentence what went wrong, `meet` tells which kind it is and looks for servers on this computer, `probe` asks
one what it can do before anybody relies on it.
"""
