"""Does A2's search for a clipping rate improve a language model on new sentences?"""
