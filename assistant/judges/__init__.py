"""Small trained models that judge passages and replies: relevance, support, suitability, quality."""
