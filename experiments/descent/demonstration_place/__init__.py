"""Does it matter where in a prompt the one relevant demonstration stands?"""
