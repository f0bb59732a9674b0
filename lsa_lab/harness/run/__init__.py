"""What computes an experiment, keeps and judges it, and says how long that takes."""
