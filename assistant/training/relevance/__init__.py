"""Trains relevance estimators."""
