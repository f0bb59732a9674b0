"""The models of this package, and how they are trained."""
