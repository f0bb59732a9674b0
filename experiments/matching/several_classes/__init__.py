"""Does matching keep the shares of several classes at 128 shots, as far as A3's table says?"""
