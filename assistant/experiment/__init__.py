"""What every experiment needs: data sets, runs that can be resumed, measures and tables."""
