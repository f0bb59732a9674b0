"""Layers as steps of an algorithm."""
