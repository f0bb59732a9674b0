"""Pages on what is judged: the ledger, the gallery, a README for each result."""
