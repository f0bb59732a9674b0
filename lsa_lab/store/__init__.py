"""Results of the experiments that are not yet one file each."""
