"""RE-RAG (Kim and Lee 2024): how relevant each passage is to the question, and what follows from that."""
