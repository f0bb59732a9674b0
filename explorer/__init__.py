"""What one model does with one prompt, while its sizes and gates move: `make explore`."""
