"""Does matching keep the shares of classes at 128 shots, as A3's table says?"""
