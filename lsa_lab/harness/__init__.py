"""The harness: lists, runs, judges, draws and reports any package of experiments; knows none.

An experiment is a folder with four doors: ``config``, ``compute``, ``claims`` and ``figure``.
``lsa-lab run NAME --package my_lab`` is the program; CONTRIBUTING.md shows a package.
"""
