"""An interactive page about one model: `make explore`."""
