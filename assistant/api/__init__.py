"""The API: grounded answers for programs, over HTTP as OpenAI's clients ask, and by the Model Context Protocol."""
