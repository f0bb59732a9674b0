"""Decoders from disk, whose walk the analyses and selections of this library take."""
