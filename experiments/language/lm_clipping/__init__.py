"""Which layers of a language model tolerate clipping, and does A2's search for a rate improve it on
new sentences more than a shift of its threshold does?"""
