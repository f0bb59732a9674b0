"""Does depth make many demonstrations unequal, and what do duplicates do?"""
