"""Work on whole documents: every passage of them is read, and every line of the result is tied to its passages."""
