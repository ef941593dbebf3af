"""What is written by hand and stays, because it gained on data that it was not made from (docs/results/ablation.md)."""
