"""Does gradient matching keep a pool's minority, better than strata do, and the shares of several
classes at 128 shots, as A3's table says?"""
