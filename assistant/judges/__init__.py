"""Small trained models that check what is shown, one file a judge."""
